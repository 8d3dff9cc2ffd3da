package slack_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

// start starts a stream in a thread of #engineering.
func (f *fast) start(more obj) (root, ts string) {
	f.t.Helper()
	root = f.say(slack.UserLinus, slack.ChannelEngineering, "go", "")
	args := obj{"channel": "C0ENG", "thread_ts": root, "recipient_team_id": slack.TeamID, "recipient_user_id": slack.UserLinus}
	maps.Copy(args, more)
	return root, f.ok("chat.startStream", args)["ts"].(string)
}

func TestAStreamGrowsAndStops(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		live := f.events()
		root, ts := f.start(obj{"markdown_text": "I **look"})
		f.ok("chat.appendStream", obj{"channel": "C0ENG", "ts": ts, "markdown_text": "** at it. "})
		f.ok("chat.appendStream", obj{"channel": "C0ENG", "ts": ts, "chunks": []any{
			obj{"type": "task_update", "id": "1", "title": "Read", "status": "in_progress", "details": "auth.go"},
			obj{"type": "markdown_text", "text": "Then"},
			obj{"type": "task_update", "id": "1", "title": "Read auth.go", "status": "complete", "output": "42 lines"},
		}})
		f.fails("chat.update", "streaming_state_conflict", obj{"channel": "C0ENG", "ts": ts, "text": "x"})
		got := f.ok("chat.stopStream", obj{"channel": "C0ENG", "ts": ts, "markdown_text": " done.", "blocks": []any{
			obj{"type": "context_actions", "elements": []any{obj{
				"type": "feedback_buttons", "action_id": "fb",
				"positive_button": obj{"text": plain("Good"), "value": "up"}, "negative_button": obj{"text": plain("Bad"), "value": "down"},
			}}},
		}})
		if dig(t, got, "message/text") != "I **look** at it. Then done." {
			t.Errorf("text: %v", got)
		}
		var kinds []string
		for _, b := range dig(t, got, "message/blocks").([]any) {
			kinds = append(kinds, b.(obj)["type"].(string))
		}
		if diff := cmp.Diff([]string{"markdown", "task_card", "markdown", "context_actions"}, kinds); diff != "" {
			t.Error(diff)
		}
		card := dig(t, got, "message/blocks/1").(obj)
		if card["title"] != "Read auth.go" || card["status"] != "complete" || dig(t, card, "details/elements/0/elements/0/text") != "auth.go" {
			t.Errorf("card: %v", card)
		}
		f.fails("chat.appendStream", "message_not_in_streaming_state", obj{"channel": "C0ENG", "ts": ts, "markdown_text": "x"})
		f.fails("chat.stopStream", "message_not_in_streaming_state", obj{"channel": "C0ENG", "ts": ts})
		updated := f.ok("chat.update", obj{"channel": "C0ENG", "ts": ts, "text": "rewritten"})
		if dig(t, updated, "message/text") != "rewritten" || updated["message"].(obj)["blocks"] != nil {
			t.Errorf("what Slack made of a stream goes with an update: %v", updated)
		}
		var states []string
		for {
			m := await(t, live, "message")["message"].(obj)
			if m["ts"] != ts {
				continue
			}
			states = append(states, dig(t, m, "stream/state").(string))
			if m["text"] == "rewritten" {
				break
			}
		}
		if diff := cmp.Diff([]string{"live", "live", "live", "stopped", "stopped"}, states); diff != "" {
			t.Error(diff)
		}
		_ = root
	})
}

func TestAPlanGathersItsTasks(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		_, ts := f.start(obj{"task_display_mode": "plan"})
		got := f.ok("chat.stopStream", obj{"channel": "C0ENG", "ts": ts, "chunks": []any{
			obj{"type": "plan_update", "title": "The plan"},
			obj{"type": "task_update", "id": "1", "title": "One"},
			obj{"type": "markdown_text", "text": "between"},
			obj{"type": "task_update", "id": "2", "title": "Two", "status": "error"},
			obj{"type": "blocks", "blocks": []any{obj{"type": "alert", "text": plain("Mind"), "level": "warning"}}},
		}})
		if dig(t, got, "message/blocks/0/title") != "The plan" || dig(t, got, "message/blocks/0/tasks/1/status") != "error" || dig(t, got, "message/blocks/2/type") != "alert" {
			t.Errorf("plan: %v", got)
		}
	})
}

func TestAStreamExpiresAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		root, ts := f.start(nil)
		for range 11 { // appending does not prolong it
			time.Sleep(27 * time.Second)
			f.ok("chat.appendStream", obj{"channel": "C0ENG", "ts": ts, "markdown_text": "x"})
		}
		time.Sleep(5 * time.Second)
		f.fails("chat.appendStream", "message_not_in_streaming_state", obj{"channel": "C0ENG", "ts": ts, "markdown_text": "x"})
		thread := f.control("messages?channel=C0ENG&thread_ts="+root, nil)
		if dig(t, thread, "messages/1/stream/state") != "expired" || dig(t, thread, "messages/1/text") != "xxxxxxxxxxx" {
			t.Errorf("thread: %v", thread)
		}
		f.ok("chat.update", obj{"channel": "C0ENG", "ts": ts, "text": "recovered"})
	})
}

func TestAnIdleStreamEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(_ *testing.T, f *fast) {
		_, ts := f.start(nil)
		f.fails("chat.delete", "cant_delete_message", obj{"channel": "C0ENG", "ts": ts})
		time.Sleep(31 * time.Second)
		f.fails("chat.appendStream", "message_not_in_streaming_state", obj{"channel": "C0ENG", "ts": ts, "markdown_text": "x"})
		f.fails("chat.stopStream", "message_not_in_streaming_state", obj{"channel": "C0ENG", "ts": ts})
		f.ok("chat.delete", obj{"channel": "C0ENG", "ts": ts})
	})
}

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(_ *testing.T, f *fast) {
		root, ts := f.start(nil)
		to := func(more obj) obj {
			o := obj{"channel": "C0ENG", "thread_ts": root, "recipient_team_id": slack.TeamID, "recipient_user_id": slack.UserLinus}
			maps.Copy(o, more)
			return o
		}
		for _, c := range []struct {
			code string
			args obj
		}{
			{"missing_recipient_team_id", to(obj{"recipient_team_id": ""})},
			{"missing_recipient_user_id", to(obj{"recipient_user_id": ""})},
			{"user_not_found", to(obj{"recipient_user_id": "U0NOBODY"})},
			{"channel_not_found", to(obj{"channel": "C0X"})},
			{"thread_not_found", to(obj{"thread_ts": "1000000000.000000"})},
			{"invalid_arguments", to(obj{"task_display_mode": "sideways"})},
			{"invalid_thread_ts", obj{"channel": "D0ADA"}},
		} {
			f.fails("chat.startStream", c.code, c.args)
		}
		chunk := func(o obj) obj { return obj{"channel": "C0ENG", "ts": ts, "chunks": []any{o}} }
		for _, c := range []struct {
			code string
			args obj
		}{
			{"no_text", obj{"channel": "C0ENG", "ts": ts}},
			{"message_not_found", obj{"channel": "C0ENG", "ts": "1000000000.000000", "markdown_text": "x"}},
			{"message_not_owned_by_app", obj{"channel": "C0ENG", "ts": root, "markdown_text": "x"}},
			{"invalid_chunks", obj{"channel": "C0ENG", "ts": ts, "chunks": "x"}},
			{"invalid_chunks", obj{"channel": "C0ENG", "ts": ts, "chunks": []any{1}}},
			{"invalid_chunks", chunk(obj{"type": "video"})},
			{"invalid_chunks", chunk(obj{"type": "markdown_text"})},
			{"invalid_chunks", chunk(obj{"type": "task_update", "title": "x"})},
			{"invalid_chunks", chunk(obj{"type": "task_update", "id": "1", "title": "x", "status": "maybe"})},
			{"invalid_chunks", chunk(obj{"type": "task_update", "id": "1", "title": "x", "details": strings.Repeat("x", 257)})},
			{"invalid_chunks", chunk(obj{"type": "plan_update"})},
			{"invalid_chunks", chunk(obj{"type": "blocks"})},
			{"invalid_blocks", chunk(obj{"type": "blocks", "blocks": []any{obj{"type": "x"}}})},
			{"msg_too_long", obj{"channel": "C0ENG", "ts": ts, "markdown_text": strings.Repeat("x", 12001)}},
			{"msg_too_long", obj{"channel": "C0ENG", "ts": ts, "markdown_text": strings.Repeat("x", 11001)}},
		} {
			f.fails("chat.appendStream", c.code, c.args)
		}
		f.ok("chat.appendStream", obj{"channel": "C0ENG", "ts": ts, "markdown_text": strings.Repeat("é", 11000)})
		f.fails("chat.appendStream", "msg_too_long", obj{"channel": "C0ENG", "ts": ts, "markdown_text": "x"})
		f.ok("chat.stopStream", obj{"channel": "C0ENG", "ts": ts})
	})
}

func TestStatusLinesEndWithAMessageOrAfterTwoMinutes(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		root := f.say(slack.UserLinus, slack.ChannelEngineering, "go", "")
		status := func() any {
			return f.control("messages?channel=C0ENG&thread_ts="+root, nil)["messages"].([]any)[0].(obj)["status"]
		}
		live := f.events()
		set := obj{"channel_id": "C0ENG", "thread_ts": root, "status": "is reading auth.go …", "loading_messages": []any{"a", "b"}}
		f.ok("assistant.threads.setStatus", set)
		if e := await(t, live, "status"); e["status"] != "is reading auth.go …" || e["thread_ts"] != root || len(e["loading_messages"].([]any)) != 2 {
			t.Errorf("status: %v", e)
		}
		if status() != "is reading auth.go …" {
			t.Errorf("status: %v", status())
		}
		f.ok("chat.postMessage", obj{"channel": "C0ENG", "thread_ts": root, "text": "here"})
		if status() != nil {
			t.Errorf("after a message: %v", status())
		}
		f.ok("assistant.threads.setStatus", set)
		time.Sleep(100 * time.Second)
		f.ok("assistant.threads.setStatus", set)
		time.Sleep(100 * time.Second)
		if status() == nil {
			t.Error("a new status starts its own two minutes")
		}
		time.Sleep(21 * time.Second)
		if status() != nil {
			t.Errorf("after two minutes: %v", status())
		}
		f.ok("assistant.threads.setStatus", set)
		f.ok("assistant.threads.setStatus", obj{"channel_id": "C0ENG", "thread_ts": root, "status": ""})
		if status() != nil {
			t.Errorf("cleared: %v", status())
		}
		f.fails("assistant.threads.setStatus", "invalid_thread_ts", obj{"channel_id": "C0ENG", "status": "x"})
		f.fails("assistant.threads.setStatus", "channel_not_found", obj{"channel_id": "C0X", "thread_ts": root, "status": "x"})
		f.ok("assistant.threads.setTitle", obj{"channel_id": "C0ENG", "thread_ts": root, "title": "The test"})
		f.ok("assistant.threads.setSuggestedPrompts", obj{"channel_id": "C0ENG", "thread_ts": root, "prompts": []any{obj{"title": "a", "message": "b"}}})
		f.fails("assistant.threads.setSuggestedPrompts", "invalid_arguments", obj{"channel_id": "C0ENG", "prompts": []any{}})
	})
}

func TestTheStopButtonEndsStreamsAndTellsTheApp(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		root, ts := f.start(obj{"markdown_text": "working"})
		f.ok("agents.sessions.setStatus", obj{"channel_id": "C0ENG", "thread_ts": root, "status": "processing", "title": "Fix it", "initiator_user_id": slack.UserLinus})
		shown := f.control("messages?channel=C0ENG&thread_ts="+root, nil)
		if dig(t, shown, "messages/0/session/status") != "processing" {
			t.Errorf("session: %v", shown)
		}
		s := f.hello()
		stopped := make(chan envelope, 10)
		s.serve(func(e envelope) any {
			if dig(t, e.obj, "payload/event/type") == "agent_session_stopped" {
				stopped <- e
			}
			return nil
		})
		f.control("stop", obj{"user": slack.UserLinus, "channel": "C0ENG", "thread_ts": root})
		e := <-stopped
		if dig(t, e.obj, "payload/event/streaming_message_ts/0") != ts || dig(t, e.obj, "payload/event/user") != slack.UserLinus || dig(t, e.obj, "payload/event/thread_ts") != root {
			t.Errorf("event: %v", e.obj)
		}
		f.fails("chat.appendStream", "message_not_in_streaming_state", obj{"channel": "C0ENG", "ts": ts, "markdown_text": "x"})
		f.ok("agents.sessions.rename", obj{"channel_id": "C0ENG", "thread_ts": root, "title": "Fixed"})
		got := f.ok("agents.sessions.setStatus", obj{"channel_id": "C0ENG", "thread_ts": root, "status": "closed"})
		if got["title"] != "Fixed" || got["agent_status"] != "closed" {
			t.Errorf("session: %v", got)
		}
		f.fails("agents.sessions.setStatus", "invalid_arguments", obj{"channel_id": "C0ENG", "thread_ts": root, "status": "asleep"})
		other := f.say(slack.UserLinus, slack.ChannelEngineering, "other", "")
		f.fails("agents.sessions.rename", "session_not_found", obj{"channel_id": "C0ENG", "thread_ts": other, "title": "x"})
		f.fails("agents.sessions.setStatus", "user_not_in_channel", obj{"channel_id": "C0ENG", "thread_ts": other, "status": "active", "initiator_user_id": slack.UserGuest})
		f.refused("stop", obj{"user": slack.UserLinus, "channel": "C0ENG", "thread_ts": "1"})
	})
}
