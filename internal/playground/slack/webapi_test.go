package slack_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

func TestTokensAreChecked(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		form := "application/x-www-form-urlencoded"
		for _, c := range []struct{ name, method, token, body, want string }{
			{"none", "auth.test", "", "", "not_authed"},
			{"wrong", "auth.test", "xoxb-wrong", "", "invalid_auth"},
			{"the app's for a bot method", "auth.test", f.srv.AppToken(), "", "not_allowed_token_type"},
			{"the bot's for a socket", "apps.connections.open", f.srv.BotToken(), "", "not_allowed_token_type"},
			{"in the form", "auth.test", "", "token=" + f.srv.BotToken(), ""},
			{"in the header", "auth.test", f.srv.BotToken(), "", ""},
			{"an unknown method", "chat.shout", f.srv.BotToken(), "", "unknown_method"},
		} {
			_, out := f.do("POST", "/api/"+c.method, form, c.token, c.body)
			if code, _ := out["error"].(string); code != c.want {
				t.Errorf("%s: %v, want %q", c.name, out, c.want)
			}
		}
		if _, out := f.do("GET", "/api/auth.test?token="+f.srv.BotToken(), "", "", ""); out["ok"] != true {
			t.Errorf("GET: %v", out)
		}
		if _, out := f.do("POST", "/api/auth.test", "application/json; charset=utf-8", "", `{"token":"`+f.srv.BotToken()+`"}`); out["error"] != "not_authed" {
			t.Errorf("a token in a JSON body counts: %v", out)
		}
	})
}

func TestBodiesOfAllKinds(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		token := f.srv.BotToken()
		for _, c := range []struct{ kind, body, code, warning string }{
			{"application/json", `{"channel":"C0ENG","text":"x"}`, "", "missing_charset"},
			{"application/json; charset=utf-8", `{"channel":"C0ENG","text":"x"}`, "", ""},
			{"application/json; charset=latin-1", `{}`, "invalid_charset", ""},
			{"application/x-www-form-urlencoded; charset=utf-8", "channel=C0ENG&text=x", "", "superfluous_charset"},
			{"application/x-www-form-urlencoded", "channel=C0ENG&text=x", "", ""},
			{"application/json; charset=utf-8", `{"channel":`, "invalid_json", ""},
			{"application/json; charset=utf-8", `{} {}`, "invalid_json", ""},
			{"application/json; charset=utf-8", `[1]`, "json_not_object", ""},
			{"application/xml", `<x/>`, "invalid_post_type", ""},
			{"", `x`, "missing_post_type", ""},
			{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"channel\"\r\n\r\nC0ENG\r\n--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nx\r\n--b--\r\n", "", ""},
			{"multipart/form-data; boundary=b", "broken", "invalid_form_data", ""},
		} {
			time.Sleep(time.Second)
			_, out := f.do("POST", "/api/chat.postMessage", c.kind, token, c.body)
			code, _ := out["error"].(string)
			warning, _ := out["warning"].(string)
			if code != c.code || warning != c.warning {
				t.Errorf("%s %s: %v, want error %q and warning %q", c.kind, c.body, out, c.code, c.warning)
			}
		}
		if _, out := f.do("POST", "/api/chat.postMessage", "application/json; charset=utf-8", token, `{"text":"`+strings.Repeat("x", 5<<20)+`"}`); out["ok"] != false {
			t.Errorf("5 MB: %v", out)
		}
	})
}

func TestScopesAreTold(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{Scopes: []string{"chat:write", "im:history"}}, func(t *testing.T, f *fast) {
		resp, _ := f.do("POST", "/api/auth.test", "application/json; charset=utf-8", f.srv.BotToken(), "{}")
		if got := resp.Header.Get("X-Oauth-Scopes"); got != "chat:write,im:history" {
			t.Errorf("x-oauth-scopes %q", got)
		}
		out := f.fails("users.info", "missing_scope", obj{"user": slack.UserAda})
		if out["needed"] != "users:read" || out["provided"] != "chat:write,im:history" {
			t.Errorf("missing scope: %v", out)
		}
		f.fails("chat.postMessage", "missing_scope", obj{"channel": "C0ENG", "text": "x", "username": "Somebody"})
		f.fails("conversations.open", "missing_scope", obj{"users": slack.UserAda})
		// Without channels:history and app_mentions:read nothing of a channel is heard.
		s := f.hello()
		f.say(slack.UserAda, slack.ChannelEngineering, "@deckhand hello", "")
		s.none(time.Minute)
		f.say(slack.UserAda, "D0ADA", "hello", "")
		s.ack(s.next(), nil)
	})
}

func TestRateLimitsPerMethodAndMinute(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		ts := f.say(slack.UserAda, slack.ChannelEngineering, "hello", "")
		own := f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x"})["ts"]
		for method, c := range map[string]struct {
			limit int
			args  obj
		}{
			"chat.update":               {50, obj{"channel": "C0ENG", "ts": own, "text": "y"}},
			"conversations.replies":     {50, obj{"channel": "C0ENG", "ts": ts}},
			"usergroups.list":           {20, obj{}},
			"users.list":                {20, obj{}},
			"chat.postEphemeral":        {100, obj{"channel": "C0ENG", "user": slack.UserAda, "text": "x"}},
			"users.info":                {100, obj{"user": slack.UserAda}},
			"agents.sessions.setStatus": {50, obj{"channel_id": "C0ENG", "thread_ts": ts, "status": "active"}},
		} {
			for range c.limit {
				f.ok(method, c.args)
			}
			resp, out := f.do("POST", "/api/"+method, "application/json; charset=utf-8", f.srv.BotToken(), encode(t, c.args))
			if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "60" || out["error"] != "ratelimited" || out["ok"] != false {
				t.Errorf("%s: %d %v %v", method, resp.StatusCode, resp.Header, out)
			}
		}
		time.Sleep(59 * time.Second)
		resp, _ := f.do("POST", "/api/users.list", "application/json; charset=utf-8", f.srv.BotToken(), "{}")
		if resp.Header.Get("Retry-After") != "1" {
			t.Errorf("a second before: %v", resp.Header)
		}
		time.Sleep(time.Second)
		f.ok("users.list", obj{})
	})
}

func TestAMessageASecondInAChannelWithAShortBurst(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		for range 5 {
			f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x"})
		}
		resp, _ := f.do("POST", "/api/chat.postMessage", "application/json; charset=utf-8", f.srv.BotToken(), `{"channel":"C0ENG","text":"x"}`)
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("sixth: %d %v", resp.StatusCode, resp.Header)
		}
		f.ok("chat.postMessage", obj{"channel": "C0RANDOM", "text": "x"})
		for range 20 {
			time.Sleep(time.Second)
			f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x"})
		}
	})
}

func TestRateLimitsCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{NoRateLimits: true}, func(_ *testing.T, f *fast) {
		for range 50 {
			f.ok("chat.postMessage", obj{"channel": "C0ENG", "text": "x"})
		}
	})
}

func TestFaultsOfCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		status := func() (int, string, time.Duration) {
			start := time.Now()
			resp, out := f.do("POST", "/api/auth.test", "application/json; charset=utf-8", f.srv.BotToken(), "{}")
			code, _ := out["error"].(string)
			return resp.StatusCode, code + resp.Header.Get("Retry-After"), time.Since(start)
		}
		f.control("faults", obj{"method": "auth.test", "status": 429, "retry_after": 3, "times": 2})
		for range 2 {
			if s, e, _ := status(); s != 429 || e != "ratelimited3" {
				t.Errorf("429: %d %s", s, e)
			}
		}
		if s, e, _ := status(); s != 200 || e != "" {
			t.Errorf("after: %d %s", s, e)
		}
		resp, out := f.do("POST", "/_control/faults", "application/json", "", `[{"error":"fatal_error"},{"method":"auth.test","slow":"2s"},{"method":"auth.test","status":503}]`)
		if resp.StatusCode != 200 || out["faults"] != 3.0 {
			t.Errorf("list: %v", out)
		}
		if s, e, d := status(); s != 200 || e != "fatal_error" || d != 2*time.Second {
			t.Errorf("error: %d %s %v", s, e, d)
		}
		if s, _, d := status(); s != 503 || d != 2*time.Second {
			t.Errorf("503: %d %v", s, d)
		}
		if s, e, d := status(); s != 200 || e != "" || d != 2*time.Second {
			t.Errorf("slow stays: %d %s %v", s, e, d)
		}
		if got := len(f.control("faults", nil)["faults"].([]any)); got != 1 {
			t.Errorf("%d faults left", got)
		}
		f.do("DELETE", "/_control/faults", "", "", "")
		if _, _, d := status(); d != 0 {
			t.Errorf("cleared: %v", d)
		}
		for body, want := range map[string]string{
			`{}`:                                   "needs one of",
			`{"method":"x.y","status":500}`:        "no such method",
			`{"status":200}`:                       "400 to 599",
			`{"slow":"soon"}`:                      "duration",
			`{"late_events":"soon"}`:               "duration",
			`{"disconnect":"because"}`:             "one of",
			`{"drop_acks":-1}`:                     "negative",
			`{"stautus":500}`:                      "unknown field",
			`[{"drop_acks":1},{"disconnect":"x"}]`: "fault 1",
			`7`:                                    "fault 0",
		} {
			resp, out := f.do("POST", "/_control/faults", "application/json", "", body)
			if text, _ := out["error"].(string); resp.StatusCode != 400 || !strings.Contains(text, want) {
				t.Errorf("%s: %d %v, want %q", body, resp.StatusCode, out, want)
			}
		}
		s := f.hello() // of the refused list nothing was put to work
		f.say(slack.UserAda, "D0ADA", "x", "")
		s.ack(s.next(), nil)
		s.none(time.Minute)
	})
}

// sink takes faults of a model.
type sink struct{ got, cleared int }

func (k *sink) AddFault(raw []byte) (bool, error) {
	if !strings.Contains(string(raw), "model") {
		return false, nil
	}
	k.got++
	return true, nil
}

func (k *sink) ClearFaults() { k.cleared++ }

func TestOtherFaultsArePassedOn(t *testing.T) {
	t.Parallel()
	k := &sink{}
	inBubble(t, slack.Options{OtherFaults: k}, func(t *testing.T, f *fast) {
		f.control("faults", obj{"model": "overloaded"})
		f.do("DELETE", "/_control/faults", "", "", "")
		if diff := cmp.Diff(&sink{1, 1}, k, cmp.AllowUnexported(sink{})); diff != "" {
			t.Error(diff)
		}
		f.refused("faults", obj{"other": 1})
	})
}

func TestCallsAreRemembered(t *testing.T) {
	t.Parallel()
	inBubble(t, slack.Options{}, func(t *testing.T, f *fast) {
		f.ok("auth.test", obj{})
		f.fails("chat.postMessage", "no_text", obj{"channel": "C0ENG"})
		got := f.control("calls", nil)
		if dig(t, got, "calls/1/method") != "chat.postMessage" || dig(t, got, "calls/1/answer/error") != "no_text" || dig(t, got, "calls/1/args/channel") != "C0ENG" || got["seq"] != 2.0 {
			t.Errorf("calls: %v", got)
		}
		if strings.Contains(encode(t, got), f.srv.BotToken()) {
			t.Error("a token is in the list of calls")
		}
		if n := len(f.control("calls?since=1", nil)["calls"].([]any)); n != 1 {
			t.Errorf("since: %d", n)
		}
		if n := len(f.control("calls?method=auth.test", nil)["calls"].([]any)); n != 1 {
			t.Errorf("method: %d", n)
		}
		f.refused("calls?since=x", nil)
	})
}
