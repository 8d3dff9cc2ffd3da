package slack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

func TestPostingAndItsErrors(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		root := f.say(slack.UserAda, slack.ChannelEngineering, "root", "")
		reply := f.ok("chat.postMessage", obj{"channel": "#engineering", "text": "x", "thread_ts": root})["ts"].(string)
		long := strings.Repeat("é", 40001)
		got := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": long})
		if n := len([]rune(dig(t, got, "message/text").(string))); n != 40000 {
			t.Errorf("a text of 40001 characters is cut to %d", n)
		}
		again := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x", "thread_ts": reply})
		if dig(t, again, "message/thread_ts") != root {
			t.Errorf("a reply's ts leads to %v", again)
		}
		im := f.ok("chat.postMessage", obj{"channel": slack.UserGrace, "text": "psst"})
		if im["channel"] != "D0GRACE" {
			t.Errorf("posting to a person: %v", im)
		}
		for _, c := range []struct {
			code string
			args obj
		}{
			{"channel_not_found", obj{"text": "x"}},
			{"channel_not_found", obj{"channel": "C0NOWHERE", "text": "x"}},
			{"no_text", obj{"channel": "C0ENG"}},
			{"no_text", obj{"channel": "C0ENG", "text": "  "}},
			{"invalid_thread_ts", obj{"channel": "C0ENG", "text": "x", "thread_ts": "now"}},
			{"thread_not_found", obj{"channel": "C0ENG", "text": "x", "thread_ts": "1000000000.000000"}},
			{"invalid_blocks_format", obj{"channel": "C0ENG", "text": "x", "blocks": "{"}},
			{"invalid_blocks_format", obj{"channel": "C0ENG", "text": "x", "blocks": "{}"}},
			{"invalid_blocks", obj{"channel": "C0ENG", "text": "x", "blocks": []any{"section"}}},
			{"markdown_text_conflict", obj{"channel": "C0ENG", "text": "x", "markdown_text": "y"}},
			{"msg_too_long", obj{"channel": "C0ENG", "markdown_text": strings.Repeat("x", 12001)}},
			{"invalid_attachments", obj{"channel": "C0ENG", "text": "x", "attachments": []any{1}}},
			{"too_many_attachments", obj{"channel": "C0ENG", "text": "x", "attachments": make([]any, 101)}},
			{"invalid_metadata_format", obj{"channel": "C0ENG", "text": "x", "metadata": "{"}},
			{"invalid_metadata_schema", obj{"channel": "C0ENG", "text": "x", "metadata": obj{"event_payload": obj{}}}},
			{"metadata_too_large", obj{"channel": "C0ENG", "text": "x", "metadata": obj{"event_type": "t", "event_payload": obj{"x": long}}}},
		} {
			f.fails("chat.postMessage", c.code, c.args)
		}
		f.control("members", obj{"channel": "C0RANDOM", "user": slack.BotUser, "remove": true})
		f.fails("chat.postMessage", "not_in_channel", obj{"channel": "C0RANDOM", "text": "x"})
		f.control("members", obj{"channel": "G0PRIVATE", "user": slack.BotUser, "remove": true})
		f.fails("chat.postMessage", "channel_not_found", obj{"channel": "G0PRIVATE", "text": "x"})
	})
}

func TestTooMuchTextInBlocks(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(_ *testing.T, f *fast) {
		section := func(n int) obj {
			return obj{"type": "section", "text": obj{"type": "mrkdwn", "text": strings.Repeat("x", n)}}
		}
		f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x", "blocks": []any{section(3000), section(3000), section(3000)}})
		f.fails("chat.postMessage", "msg_blocks_too_long", obj{"channel": "C0ENG", "text": "x", "blocks": []any{section(3000), section(3000), section(3000), section(1001)}})
		f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x", "blocks": []any{obj{"type": "markdown", "text": strings.Repeat("x", 12000)}}})
		f.fails("chat.postMessage", "msg_blocks_too_long", obj{"channel": "C0ENG", "text": "x", "blocks": []any{obj{"type": "markdown", "text": strings.Repeat("x", 12000)}, section(1300)}})
		f.fails("chat.postMessage", "invalid_blocks", obj{"channel": "C0ENG", "text": "x", "blocks": []any{obj{"type": "markdown", "text": strings.Repeat("x", 6001)}, obj{"type": "markdown", "text": strings.Repeat("x", 6000)}}})
	})
}

func TestUpdating(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		s := f.hello()
		ts := f.card(slack.ChannelEngineering, "")
		s.ack(s.next(), nil)
		got := f.ok("chat.update", obj{"channel": "C0ENG", "ts": ts, "text": "Approved"})
		if len(dig(t, got, "message/blocks").([]any)) != 2 {
			t.Errorf("blocks that are not mentioned stay: %v", got)
		}
		e := s.next()
		s.ack(e, nil)
		if dig(t, e.obj, "payload/event/subtype") != "message_changed" || dig(t, e.obj, "payload/event/message/text") != "Approved" || dig(t, e.obj, "payload/event/previous_message/text") != "Approve?" {
			t.Errorf("message_changed: %v", e.obj)
		}
		got = f.ok("chat.update", obj{"channel": "C0ENG", "ts": ts, "text": "Approved", "blocks": []any{}})
		if b := got["message"].(obj)["blocks"]; b != nil && len(b.([]any)) != 0 {
			t.Errorf("blocks are taken away: %v", got)
		}
		f.ok("chat.update", obj{"channel": "C0ENG", "ts": ts, "text": strings.Repeat("é", 4000)})
		theirs := f.say(slack.UserAda, slack.ChannelEngineering, "mine", "")
		for _, c := range []struct {
			code string
			args obj
		}{
			{"msg_too_long", obj{"channel": "C0ENG", "ts": ts, "text": strings.Repeat("é", 4001)}},
			{"message_not_found", obj{"channel": "C0ENG", "ts": "1000000000.000000", "text": "x"}},
			{"cant_update_message", obj{"channel": "C0ENG", "ts": theirs, "text": "x"}},
			{"no_text", obj{"channel": "C0ENG", "ts": ts}},
			{"channel_not_found", obj{"ts": ts, "text": "x"}},
		} {
			f.fails("chat.update", c.code, c.args)
		}
		list := f.control("messages?channel=C0ENG", nil)
		if dig(t, list, "messages/0/edits") != 3.0 || dig(t, list, "messages/0/edited/user") != slack.BotUser {
			t.Errorf("edits: %v", dig(t, list, "messages/0"))
		}
	})
}

func TestDeleting(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		root := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "root"})["ts"].(string)
		reply := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "reply", "thread_ts": root})["ts"].(string)
		f.ok("chat.delete", obj{"channel": "C0ENG", "ts": root})
		thread := f.control("messages?channel=C0ENG&thread_ts="+root, nil)
		if dig(t, thread, "messages/0/subtype") != "tombstone" || dig(t, thread, "messages/0/reply_count") != 1.0 {
			t.Errorf("tombstone: %v", thread)
		}
		f.ok("chat.delete", obj{"channel": "C0ENG", "ts": reply})
		f.fails("chat.delete", "message_not_found", obj{"channel": "C0ENG", "ts": reply})
		theirs := f.say(slack.UserAda, slack.ChannelEngineering, "mine", "")
		f.fails("chat.delete", "cant_delete_message", obj{"channel": "C0ENG", "ts": theirs})
		f.control("messages/delete", obj{"user": slack.UserAda, "channel": "C0ENG", "ts": theirs})
		f.refused("messages/delete", obj{"user": slack.UserAda, "channel": "C0ENG", "ts": theirs})
	})
}

func TestEphemeralsAreForOnePerson(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		root := f.say(slack.UserAda, slack.ChannelEngineering, "root", "")
		ts := f.ok("chat.postEphemeral", obj{"channel": "C0ENG", "user": slack.UserMallory, "thread_ts": root, "text": "not you", "blocks": []any{
			obj{"type": "actions", "elements": []any{obj{"type": "button", "action_id": "ok", "text": plain("OK")}}},
		}})["message_ts"].(string)
		if n := len(f.control("messages?channel=C0ENG&thread_ts="+root+"&user="+slack.UserMallory, nil)["messages"].([]any)); n != 2 {
			t.Errorf("Mallory sees %d messages", n)
		}
		if n := len(f.control("messages?channel=C0ENG&thread_ts="+root+"&user="+slack.UserAda, nil)["messages"].([]any)); n != 1 {
			t.Errorf("Ada sees %d messages", n)
		}
		root1 := f.control("messages?channel=C0ENG", nil)
		if dig(t, root1, "messages/0/reply_count") != 0.0 {
			t.Errorf("an ephemeral counts as a reply: %v", root1)
		}
		f.fails("chat.update", "message_not_found", obj{"channel": "C0ENG", "ts": ts, "text": "x"})
		f.fails("chat.postEphemeral", "user_not_in_channel", obj{"channel": "C0ENG", "user": slack.UserGuest, "text": "x"})
		f.fails("chat.postEphemeral", "no_text", obj{"channel": "C0ENG", "user": slack.UserAda})
		f.refused("actions", obj{"user": slack.UserAda, "channel": "C0ENG", "message_ts": ts, "action_id": "ok"})
		s := f.hello()
		got := make(chan envelope, 1)
		s.serve(func(e envelope) any {
			if e.obj["type"] == "interactive" {
				got <- e
			}
			return nil
		})
		f.control("actions", obj{"user": slack.UserMallory, "channel": "C0ENG", "message_ts": ts, "action_id": "ok"})
		e := <-got
		if dig(t, e.obj, "payload/container/is_ephemeral") != true || dig(t, e.obj, "payload/container/thread_ts") != root {
			t.Errorf("click: %v", e.obj)
		}
		hook := dig(t, e.obj, "payload/response_url").(string)
		f.respond(t, hook, obj{"delete_original": true}, 200)
		if n := len(f.control("messages?channel=C0ENG&thread_ts="+root, nil)["messages"].([]any)); n != 1 {
			t.Errorf("%d messages after delete_original", n)
		}
	})
}

// respond posts to a response URL and returns the answer.
func (f *fast) respond(t *testing.T, hook string, body obj, want int) obj {
	t.Helper()
	resp, out := f.do("POST", strings.TrimPrefix(hook, base), "application/json", "", encode(t, body))
	if resp.StatusCode != want {
		t.Errorf("response url: %d %v, want %d", resp.StatusCode, out, want)
	}
	return out
}

func TestAResponseURLTakesFiveAnswersInHalfAnHour(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		ts := f.card(slack.ChannelEngineering, "")
		s := f.hello()
		hooks := make(chan string, 10)
		s.serve(func(e envelope) any {
			if e.obj["type"] == "interactive" {
				hooks <- dig(t, e.obj, "payload/response_url").(string)
			}
			return nil
		})
		click := obj{"user": slack.UserAda, "channel": "C0ENG", "message_ts": ts, "action_id": "approve"}
		f.control("actions", click)
		hook := <-hooks
		f.respond(t, hook, obj{"text": "replaced"}, 200)
		f.respond(t, hook, obj{"text": "for you", "response_type": "ephemeral"}, 200)
		f.respond(t, hook, obj{"text": "for all", "response_type": "in_channel"}, 200)
		f.respond(t, hook, obj{}, 400)
		f.respond(t, hook, obj{"text": "x", "blocks": []any{obj{"type": "nonsense"}}}, 400)
		f.respond(t, hook, obj{"text": "not replaced", "replace_original": false}, 200)
		f.respond(t, hook, obj{"text": "fifth", "replace_original": true, "thread_ts": ts}, 200)
		if out := f.respond(t, hook, obj{"text": "sixth"}, 404); out["error"] != "used_url" {
			t.Errorf("sixth: %v", out)
		}
		var texts []string
		for _, m := range f.control("messages?channel=C0ENG&user="+slack.UserAda, nil)["messages"].([]any) {
			texts = append(texts, m.(obj)["text"].(string))
		}
		if diff := cmp.Diff([]string{"fifth", "for you", "for all", "not replaced"}, texts); diff != "" {
			t.Error(diff)
		}
		ts = f.card(slack.ChannelEngineering, "")
		click["message_ts"] = ts
		f.control("actions", click)
		hook = <-hooks
		time.Sleep(31 * time.Minute)
		if out := f.respond(t, hook, obj{"text": "late"}, 404); out["error"] != "expired_url" {
			t.Errorf("late: %v", out)
		}
		resp, _ := f.do("POST", "/hooks/actions/T0PLAYGRND/1/guess", "application/json", "", `{"text":"x"}`)
		if resp.StatusCode != 404 {
			t.Errorf("guessed: %d", resp.StatusCode)
		}
		resp, _ = f.do("POST", strings.TrimPrefix(hook, base), "application/json", "", `{`)
		if resp.StatusCode != 400 {
			t.Errorf("broken: %d", resp.StatusCode)
		}
	})
}

func TestTimestampsAreUniqueAndIncrease(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		last := ""
		for range 100 { // time stands still here
			ts := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x"})["ts"].(string)
			if ts <= last || len(ts) != len("1732145678.000100") {
				if last != "" || !strings.Contains(ts, ".") {
					t.Fatalf("%q after %q", ts, last)
				}
			}
			last = ts
		}
	})
}

func TestReactions(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true, Scopes: append(slack.DefaultScopes(), "reactions:read", "pins:write", "pins:read")}, func(t *testing.T, f *fast) {
		ts := f.say(slack.UserAda, slack.ChannelEngineering, "hello", "")
		s := f.hello()
		s.ack(s.next(), nil) // the message itself, sent while nobody was there
		on := obj{"channel": "C0ENG", "timestamp": ts, "name": "eyes"}
		f.ok("reactions.add", on)
		e := s.next()
		s.ack(e, nil)
		if dig(t, e.obj, "payload/event/type") != "reaction_added" || dig(t, e.obj, "payload/event/item/ts") != ts || dig(t, e.obj, "payload/event/item_user") != slack.UserAda {
			t.Errorf("reaction_added: %v", e.obj)
		}
		f.fails("reactions.add", "already_reacted", on)
		f.control("reactions", obj{"user": slack.UserGrace, "channel": "C0ENG", "ts": ts, "name": ":eyes:"})
		got := f.ok("reactions.get", obj{"channel": "C0ENG", "timestamp": ts})
		if diff := cmp.Diff([]any{obj{"name": "eyes", "count": 2.0, "users": []any{slack.BotUser, slack.UserGrace}}}, dig(t, got, "message/reactions")); diff != "" {
			t.Error(diff)
		}
		f.ok("reactions.remove", on)
		f.fails("reactions.remove", "no_reaction", on)
		for _, c := range []struct {
			code string
			args obj
		}{
			{"no_item_specified", obj{"name": "eyes"}},
			{"bad_timestamp", obj{"channel": "C0ENG", "timestamp": "x", "name": "eyes"}},
			{"message_not_found", obj{"channel": "C0ENG", "timestamp": "1000000000.000000", "name": "eyes"}},
			{"channel_not_found", obj{"channel": "C0X", "timestamp": ts, "name": "eyes"}},
			{"invalid_name", obj{"channel": "C0ENG", "timestamp": ts, "name": "👀"}},
			{"invalid_name", obj{"channel": "C0ENG", "timestamp": ts}},
		} {
			f.fails("reactions.add", c.code, c.args)
		}
		f.ok("pins.add", obj{"channel": "C0ENG", "timestamp": ts})
		f.fails("pins.add", "already_pinned", obj{"channel": "C0ENG", "timestamp": ts})
		if n := len(f.ok("pins.list", obj{"channel": "C0ENG"})["items"].([]any)); n != 1 {
			t.Errorf("%d pins", n)
		}
		f.ok("pins.remove", obj{"channel": "C0ENG", "timestamp": ts})
		f.fails("pins.remove", "no_pin", obj{"channel": "C0ENG", "timestamp": ts})
	})
}
