package slack_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

func TestTheControlAPIAnswersOnlyToLoopbackAndOwnPages(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		try := func(method, host, site, kind string) int {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, base+"/_control/messages?channel=C0ENG", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			req.Header.Set("Content-Type", kind)
			if site != "" {
				req.Header.Set("Sec-Fetch-Site", site)
			}
			resp, err := f.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		for _, c := range []struct {
			method, host, site, kind string
			want                     int
		}{
			{"GET", "127.0.0.1:8065", "", "", 200},
			{"GET", "localhost:8065", "same-origin", "", 200},
			{"GET", "LOCALHOST", "none", "", 200},
			{"GET", "[::1]:8065", "", "", 200},
			{"GET", "127.1.2.3", "", "", 200},
			{"GET", "evil.example:8065", "", "", 403},
			{"GET", "127.0.0.1.evil.example", "", "", 403},
			{"GET", "10.0.0.1:8065", "", "", 403},
			{"GET", "127.0.0.1:8065", "cross-site", "", 403},
			{"GET", "127.0.0.1:8065", "same-site", "", 403},
			{"POST", "127.0.0.1:8065", "", "text/plain", 415},
			{"POST", "127.0.0.1:8065", "", "application/x-www-form-urlencoded", 415},
			{"POST", "127.0.0.1:8065", "", "", 415},
			{"POST", "127.0.0.1:8065", "", "application/json", 400}, // nobody acts
		} {
			if got := try(c.method, c.host, c.site, c.kind); got != c.want {
				t.Errorf("%+v: %d", c, got)
			}
		}
	})
}

func TestTheStateListsEverybody(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		st := f.control("state", nil)
		if st["ready"] != false || dig(t, st, "tokens/bot") != f.srv.BotToken() || dig(t, st, "tokens/app") != f.srv.AppToken() || dig(t, st, "team/id") != slack.TeamID {
			t.Errorf("state: %v", st)
		}
		roles := map[string][]any{}
		for _, u := range st["users"].([]any) {
			u := u.(obj)
			roles[u["id"].(string)] = []any{u["groups"], u["admin"], u["bot"], u["guest"], u["stranger"]}
		}
		none := []any{}
		want := map[string][]any{
			slack.BotUser:     {none, false, true, false, false},
			slack.UserAda:     {[]any{slack.GroupApprovers}, true, false, false, false},
			slack.UserGrace:   {[]any{slack.GroupApprovers}, false, false, false, false},
			slack.UserLinus:   {[]any{slack.GroupEngineers}, false, false, false, false},
			slack.UserMallory: {none, false, false, false, false},
			slack.UserGuest:   {none, false, false, true, false},
			slack.UserConnect: {none, false, false, false, true},
		}
		if diff := cmp.Diff(want, roles); diff != "" {
			t.Error(diff)
		}
		f.hello()
		if st := f.control("state", nil); st["ready"] != true || st["connections"] != 1.0 {
			t.Errorf("with an app: %v", st)
		}
		var mine []string
		for _, c := range f.control("channels?user="+slack.UserGuest, nil)["channels"].([]any) {
			mine = append(mine, c.(obj)["id"].(string))
		}
		if diff := cmp.Diff([]string{slack.ChannelGeneral, "D0GUEST"}, mine); diff != "" {
			t.Error(diff)
		}
		f.refused("channels?user=U0X", nil)
	})
}

func TestWhatPeoplePost(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		s := f.hello()
		for typed, want := range map[string]string{
			"@deckhand hi":                 "<@U0DECKHAND> hi",
			"ask @Ada Admin, or @grace.":   "ask <@U0ADA>, or <@U0GRACE>.",
			"@Ada Please":                  "<@U0ADA> Please",
			"@U0LINUS":                     "<@U0LINUS>",
			"@approvers in #engineering":   "<!subteam^S0APPROVERS|@approvers> in <#C0ENG|engineering>",
			"@nobody #nowhere a@grace.org": "@nobody #nowhere a@grace.org",
			"@here @channel":               "<!here> <!channel>",
			"a < b && c > d":               "a &lt; b &amp;&amp; c &gt; d",
			"<@U0DECKHAND> <@U0X>":         "<@U0DECKHAND> &lt;@U0X&gt;",
			"see https://x.example/a?b&c.": "see <https://x.example/a?b&amp;c>.",
			"<script>":                     "&lt;script&gt;",
		} {
			got := f.control("messages", obj{"user": slack.UserLinus, "channel": "C0ENG", "text": typed})
			if dig(t, got, "message/text") != want {
				t.Errorf("%q: %v, want %q", typed, dig(t, got, "message/text"), want)
			}
		}
		_ = s
	})
}

func TestAPersonsMessageAsSlackSendsIt(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		s := f.hello()
		ts := f.say(slack.UserConnect, slack.ChannelShared, "@deckhand run `go test`:\n```\na < b\n```\nsee #partner", "")
		a, b := s.next(), s.next()
		s.ack(a, nil)
		s.ack(b, nil)
		ev := a.obj["payload"].(obj)["event"].(obj)
		want := obj{
			"type": "message", "channel": slack.ChannelShared, "channel_type": "channel", "user": slack.UserConnect,
			"ts": ts, "event_ts": ts, "team": slack.OtherTeamID, "user_team": slack.OtherTeamID, "source_team": slack.OtherTeamID,
			"text":          "<@U0DECKHAND> run `go test`:\n```\na &lt; b\n```\nsee <#C0SHARED|partner>",
			"client_msg_id": ev["client_msg_id"],
			"blocks": []any{obj{"type": "rich_text", "block_id": dig(t, ev, "blocks/0/block_id"), "elements": []any{
				obj{"type": "rich_text_section", "elements": []any{
					obj{"type": "user", "user_id": slack.BotUser},
					obj{"type": "text", "text": " run "},
					obj{"type": "text", "text": "go test", "style": obj{"code": true}},
					obj{"type": "text", "text": ":\n"},
				}},
				obj{"type": "rich_text_preformatted", "border": 0.0, "elements": []any{obj{"type": "text", "text": "a < b"}}},
				obj{"type": "rich_text_section", "elements": []any{obj{"type": "text", "text": "\nsee "}, obj{"type": "channel", "channel_id": slack.ChannelShared}}},
			}}},
		}
		if diff := cmp.Diff(want, ev); diff != "" {
			t.Error(diff)
		}
		if dig(t, a.obj, "payload/is_ext_shared_channel") != true {
			t.Errorf("payload: %v", a.obj)
		}
		if m := b.obj["payload"].(obj)["event"].(obj); m["type"] != "app_mention" || m["ts"] != ts || m["channel_type"] != nil {
			t.Errorf("mention: %v", m)
		}
		// In a direct message a mention is no app_mention.
		f.say(slack.UserAda, "D0ADA", "@deckhand hi", "")
		e := s.next()
		s.ack(e, nil)
		if dig(t, e.obj, "payload/event/channel_type") != "im" {
			t.Errorf("direct: %v", e.obj)
		}
		s.none(time.Minute)
	})
}

func TestAMentionWhereTheAppIsNotMember(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		f.control("members", obj{"channel": slack.ChannelRandom, "user": slack.BotUser, "remove": true})
		s, live := f.hello(), f.events()
		f.say(slack.UserLinus, slack.ChannelRandom, "@deckhand hello?", "")
		if w := await(t, live, "warning"); w["user"] != slack.UserLinus {
			t.Errorf("warning: %v", w)
		}
		s.none(time.Hour)
		f.control("members", obj{"channel": slack.ChannelRandom, "user": slack.BotUser})
		e := s.next()
		s.ack(e, nil)
		if dig(t, e.obj, "payload/event/type") != "member_joined_channel" || dig(t, e.obj, "payload/event/user") != slack.BotUser || dig(t, e.obj, "payload/event/inviter") != slack.UserAda {
			t.Errorf("joined: %v", e.obj)
		}
	})
}

func TestPeoplesFilesAndEdits(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true, Scopes: append(slack.DefaultScopes(), "files:read")}, func(t *testing.T, f *fast) {
		s := f.hello()
		got := f.control("messages", obj{"user": slack.UserLinus, "channel": "C0ENG", "text": "look", "files": []any{
			obj{"name": "a b.txt", "text": "hello"}, obj{"name": "../x.png", "content_base64": base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))},
		}})
		var kinds []any
		for range 3 {
			e := s.next()
			s.ack(e, nil)
			kinds = append(kinds, dig(t, e.obj, "payload/event/type"))
			if sub := e.obj["payload"].(obj)["event"].(obj)["subtype"]; sub != nil && sub != "file_share" {
				t.Errorf("subtype: %v", sub)
			}
		}
		if diff := cmp.Diff([]any{"file_shared", "file_shared", "message"}, kinds); diff != "" {
			t.Error(diff)
		}
		link := dig(t, got, "message/files/0/url_private").(string)
		resp, out := f.do("GET", strings.TrimPrefix(link, base), "", f.srv.BotToken(), "")
		if resp.StatusCode != 200 || out["text"] != "hello" || resp.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("download: %d %v %v", resp.StatusCode, out, resp.Header)
		}
		if !strings.HasSuffix(dig(t, got, "message/files/1/url_private").(string), "/.._x.png") || dig(t, got, "message/files/1/mimetype") != "image/png" {
			t.Errorf("image: %v", dig(t, got, "message/files/1"))
		}
		id := dig(t, got, "message/files/0/id")
		if info := f.ok("files.info", obj{"file": id}); dig(t, info, "file/user") != slack.UserLinus || dig(t, info, "file/size") != 5.0 {
			t.Errorf("info: %v", info)
		}
		f.fails("files.delete", "cant_delete_file", obj{"file": id})
		f.fails("files.info", "file_not_found", obj{"file": "F0X"})
		ts := got["ts"].(string)
		f.control("messages/edit", obj{"user": slack.UserLinus, "channel": "C0ENG", "ts": ts, "text": "look, @Ada"})
		e := s.next()
		s.ack(e, nil)
		if dig(t, e.obj, "payload/event/subtype") != "message_changed" || dig(t, e.obj, "payload/event/message/text") != "look, <@U0ADA>" || dig(t, e.obj, "payload/event/message/edited/user") != slack.UserLinus {
			t.Errorf("edited: %v", e.obj)
		}
		f.refused("messages/edit", obj{"user": slack.UserAda, "channel": "C0ENG", "ts": ts, "text": "mine"})
		for _, bad := range []obj{
			{"user": slack.UserLinus, "channel": "C0ENG"},
			{"user": slack.UserLinus, "channel": "C0ENG", "text": "x", "thread_ts": "1"},
			{"user": slack.UserGuest, "channel": "C0ENG", "text": "x"},
			{"user": slack.UserLinus, "channel": "C0ENG", "files": []any{obj{"name": "x", "content_base64": "%"}}},
			{"user": slack.UserLinus, "channel": "C0ENG", "files": []any{obj{"name": "x"}}},
			{"user": 7},
		} {
			f.refused("messages", bad)
		}
		long := f.control("messages", obj{"user": slack.UserLinus, "channel": "C0ENG", "text": strings.Repeat("x", 41000)})
		if n := len(dig(t, long, "message/text").(string)); n != 40000 {
			t.Errorf("41000 characters become %d", n)
		}
	})
}

func TestUploadsInThreeSteps(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true, Scopes: append(slack.DefaultScopes(), "files:read")}, func(t *testing.T, f *fast) {
		root := f.say(slack.UserLinus, slack.ChannelEngineering, "go", "")
		up := f.ok("files.getUploadURLExternal", obj{"filename": "diff.txt", "length": 5})
		path := strings.TrimPrefix(up["upload_url"].(string), base)
		f.fails("files.completeUploadExternal", "file_not_found", obj{"files": []any{obj{"id": up["file_id"]}}})
		if resp, _ := f.do("POST", path, "application/octet-stream", "", "hell"); resp.StatusCode != 400 {
			t.Errorf("too short: %d", resp.StatusCode)
		}
		if resp, out := f.do("POST", path, "application/octet-stream", "", "hello"); resp.StatusCode != 200 || out["text"] != "OK - 5" {
			t.Errorf("upload: %d %v", resp.StatusCode, out)
		}
		f.fails("files.completeUploadExternal", "channel_not_found", obj{"files": []any{obj{"id": up["file_id"]}}, "channel_id": "C0X"})
		f.fails("files.completeUploadExternal", "thread_not_found", obj{"files": []any{obj{"id": up["file_id"]}}, "channel_id": "C0ENG", "thread_ts": "1000000000.000000"})
		f.ok("files.completeUploadExternal", obj{"files": []any{obj{"id": up["file_id"], "title": "A diff"}}, "channel_id": "C0ENG", "thread_ts": root, "initial_comment": "see"})
		f.fails("files.completeUploadExternal", "file_not_found", obj{"files": []any{obj{"id": up["file_id"]}}})
		thread := f.control("messages?channel=C0ENG&thread_ts="+root, nil)
		if dig(t, thread, "messages/1/files/0/title") != "A diff" || dig(t, thread, "messages/1/text") != "see" {
			t.Errorf("thread: %v", thread)
		}
		if n := len(f.ok("files.list", obj{"channel": "C0ENG"})["files"].([]any)); n != 1 {
			t.Errorf("%d files", n)
		}
		link := strings.TrimPrefix(dig(t, thread, "messages/1/files/0/url_private").(string), base)
		f.ok("files.delete", obj{"file": up["file_id"]})
		f.fails("files.info", "file_deleted", obj{"file": up["file_id"]})
		if resp, _ := f.do("GET", link, "", f.srv.BotToken(), ""); resp.StatusCode != 404 {
			t.Errorf("deleted: %d", resp.StatusCode)
		}
		for _, bad := range []obj{{"length": 5}, {"filename": "x"}, {"filename": "x", "length": 0}, {"filename": "x", "length": "many"}} {
			f.fails("files.getUploadURLExternal", "invalid_arguments", bad)
		}
		f.fails("files.getUploadURLExternal", "file_upload_size_restricted", obj{"filename": "x", "length": 1 << 30})
		up = f.ok("files.getUploadURLExternal", obj{"filename": "x", "length": 1})
		time.Sleep(11 * time.Minute)
		if resp, _ := f.do("POST", strings.TrimPrefix(up["upload_url"].(string), base), "application/octet-stream", "", "x"); resp.StatusCode != 404 {
			t.Errorf("expired: %d", resp.StatusCode)
		}
	})
}

func TestAvatars(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		for _, id := range []string{slack.UserAda, slack.BotUser} {
			resp, out := f.do("GET", "/files/avatar/"+id+".svg", "", "", "")
			if svg, _ := out["text"].(string); resp.StatusCode != 200 || !strings.HasPrefix(svg, "<svg") || resp.Header.Get("Content-Type") != "image/svg+xml; charset=utf-8" {
				t.Errorf("%s: %d %v", id, resp.StatusCode, out)
			}
		}
		if resp, _ := f.do("GET", "/files/avatar/U0X.svg", "", "", ""); resp.StatusCode != 404 {
			t.Errorf("nobody: %d", resp.StatusCode)
		}
	})
}

func TestAWorkspaceSurvivesARestart(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "deep", "slack.json")
	var bot, app, root, live, link string
	inBubble(t, slack.Options{StateFile: state, NoRateLimits: true}, func(_ *testing.T, f *fast) {
		bot, app = f.srv.BotToken(), f.srv.AppToken()
		root, live = f.start(obj{"markdown_text": "half"})
		f.ok("reactions.add", obj{"channel": "C0ENG", "timestamp": root, "name": "eyes"})
		got := f.control("messages", obj{"user": slack.UserLinus, "channel": "C0ENG", "text": "file", "files": []any{obj{"name": "a.txt", "text": "kept"}}})
		link = strings.TrimPrefix(dig(f.t, got, "message/files/0/url_private").(string), base)
		f.card(slack.ChannelEngineering, root)
		time.Sleep(2 * time.Second)
	})
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("state file: %v, %v", info, err)
	}
	inBubble(t, slack.Options{StateFile: state, NoRateLimits: true}, func(t *testing.T, f *fast) {
		if f.srv.BotToken() != bot || f.srv.AppToken() != app {
			t.Error("the tokens changed")
		}
		thread := f.control("messages?channel=C0ENG&thread_ts="+root, nil)
		if dig(t, thread, "messages/1/stream/state") != "expired" || dig(t, thread, "messages/1/text") != "half" || dig(t, thread, "messages/0/reactions/0/name") != "eyes" || dig(t, thread, "messages/0/reply_count") != 2.0 {
			t.Errorf("thread: %v", thread)
		}
		f.ok("chat.update", obj{"channel": "C0ENG", "ts": live, "text": "recovered"})
		if _, out := f.do("GET", link, "", bot, ""); out["text"] != "kept" {
			t.Errorf("file: %v", out)
		}
		ts := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x"})["ts"].(string)
		if ts <= live {
			t.Errorf("%s is not after %s, though the clock went back", ts, live)
		}
	})
	inBubble(t, slack.Options{StateFile: state, Fresh: true}, func(t *testing.T, f *fast) {
		if f.srv.BotToken() == bot {
			t.Error("a fresh workspace has the old token")
		}
		if resp, _ := f.do("GET", link, "", f.srv.BotToken(), ""); resp.StatusCode != 404 {
			t.Errorf("old file: %d", resp.StatusCode)
		}
	})
	for _, broken := range []string{"{", `{"version":99}`, "null"} {
		if err := os.WriteFile(state, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := slack.New(slack.Options{StateFile: state}); err == nil || !strings.Contains(err.Error(), state) {
			t.Errorf("%s: %v", broken, err)
		}
	}
}

func TestCloseWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		f.hello()
		f.events()
		f.say(slack.UserAda, "D0ADA", "never acknowledged", "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := f.srv.Close(ctx); err != nil || time.Since(start) > 100*time.Millisecond {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		if err := f.srv.Close(ctx); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func TestLiveEventsTellWhatChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(t *testing.T, f *fast) {
		live := f.events()
		root := f.say(slack.UserAda, "C0ENG", "hello", "")
		if m := await(t, live, "message")["message"].(obj); m["ts"] != root {
			t.Errorf("message: %v", m)
		}
		reply := f.ok("chat.postMessage", obj{"channel": "C0ENG", "thread_ts": root, "text": "x"})["ts"]
		if m := await(t, live, "message")["message"].(obj); m["ts"] != reply {
			t.Errorf("reply: %v", m)
		}
		if m := await(t, live, "message")["message"].(obj); m["ts"] != root || m["reply_count"] != 1.0 {
			t.Errorf("root: %v", m)
		}
		f.ok("chat.delete", obj{"channel": "C0ENG", "ts": reply})
		if e := await(t, live, "deleted"); e["ts"] != reply || e["channel"] != "C0ENG" {
			t.Errorf("deleted: %v", e)
		}
		f.hello()
		if e := await(t, live, "connections"); e["connections"] != 1.0 {
			t.Errorf("connections: %v", e)
		}
		f.control("members", obj{"channel": "C0ENG", "user": slack.UserGuest})
		await(t, live, "channels")
	})
}
