package slack

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzControl sends what it likes to the control API and the Web API: nothing may
// make the workspace panic, and every answer is JSON with a sentence or a code.
func FuzzControl(f *testing.F) {
	for _, seed := range [][2]string{
		{"messages", `{"user":"U0ADA","channel":"C0ENG","text":"@deckhand <b> #engineering https://x.y"}`},
		{"messages", `{"user":"U0ADA","channel":"C0ENG","text":"x","files":[{"name":"a","text":"b"}]}`},
		{"actions", `{"user":"U0ADA","channel":"C0ENG","message_ts":"TS","action_id":"menu","selected":["a"]}`},
		{"actions", `{"user":"U0ADA","channel":"C0ENG","message_ts":"TS","action_id":"go","value":{"value":1}}`},
		{"state_values", `{"user":"U0ADA","channel":"C0ENG","message_ts":"TS","values":{"menu":"a","when":1}}`},
		{"slash", `{"user":"U0ADA","channel":"C0ENG","text":"/x y"}`},
		{"reactions", `{"user":"U0ADA","channel":"C0ENG","ts":"TS","name":"eyes","remove":true}`},
		{"faults", `[{"method":"chat.update","status":429,"times":2}]`},
		{"stop", `{"user":"U0ADA","channel":"C0ENG","thread_ts":"TS"}`},
		{"shortcut", `{"user":"U0ADA","callback_id":"x","channel":"C0ENG","message_ts":"TS"}`},
		{"api/chat.postMessage", `{"channel":"C0ENG","text":"x","blocks":[{"type":"divider"}],"attachments":[{"blocks":[]}]}`},
		{"api/chat.startStream", `{"channel":"D0ADA","thread_ts":"TS","chunks":[{"type":"task_update","id":"1","title":"x"}]}`},
		{"api/views.publish", `{"user_id":"U0ADA","view":{"type":"home","blocks":[]}}`},
		{"api/conversations.list", `{"limit":"1","cursor":"bmV4dDox","types":"im"}`},
		{"api/files.completeUploadExternal", `{"files":[{"id":1}],"channels":"C0ENG"}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		s, err := New(Options{NoRateLimits: true, Scopes: append(DefaultScopes(), "im:read", "im:write", "pins:write")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}()
		ask := func(path, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			r.Header.Set("Authorization", "Bearer "+s.ws.BotToken)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			return w
		}
		posted := ask("api/chat.postMessage", `{"channel":"C0ENG","text":"x","blocks":[{"type":"actions","block_id":"b","elements":[
			{"type":"button","action_id":"go","text":{"type":"plain_text","text":"Go"}},
			{"type":"multi_static_select","action_id":"menu","options":[{"text":{"type":"plain_text","text":"A"},"value":"a"}]},
			{"type":"datetimepicker","action_id":"when"}]}]}`)
		var answer struct{ TS string }
		if err := decodeJSON(posted.Body.Bytes(), &answer); err != nil || answer.TS == "" {
			t.Fatalf("post: %v %s", err, posted.Body)
		}
		if slices.Contains([]string{"messages", "messages/edit", "messages/delete", "actions", "state_values", "slash", "reactions", "members", "stop", "shortcut", "options", "faults"}, path) {
			path = "_control/" + path
		}
		if !strings.HasPrefix(path, "_control/") && !strings.HasPrefix(path, "api/") || strings.ContainsAny(path, " ?#%\\\"") || !utf8.ValidString(path) || strings.Contains(path, "..") || strings.Contains(path, "//") {
			return
		}
		for _, r := range path {
			if r < 0x21 || r > 0x7e {
				return
			}
		}
		w := ask(path, strings.ReplaceAll(body, "TS", answer.TS))
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("%s %s: %s", path, body, w.Body)
		}
		if strings.Contains(w.Header().Get("Content-Type"), "json") {
			var out any
			if err := decodeJSON(w.Body.Bytes(), &out); err != nil {
				t.Fatalf("%s %s: %v: %s", path, body, err, w.Body)
			}
		}
		if w := ask("api/conversations.history", `{"channel":"C0ENG"}`); !strings.Contains(w.Body.String(), `"ok":true`) {
			t.Fatalf("afterwards: %s", w.Body)
		}
	})
}

// FuzzComposed holds that what people type cannot become markup that they may
// not make: every < that is left begins a link that the workspace made.
func FuzzComposed(f *testing.F) {
	for _, seed := range []string{"@deckhand hi", "<!channel>", "<@U0ADA|x>", "@Ada Admin's", "a@b #general", "```x```", "`<b>`", "https://x.y/<z>", "@", "#", "<https://x|y>"} {
		f.Add(seed)
	}
	s, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close(context.Background()) })
	f.Fuzz(func(t *testing.T, typed string) {
		said := s.composed(typed)
		for rest := said; ; {
			i := strings.IndexByte(rest, '<')
			if i < 0 {
				break
			}
			rest = rest[i+1:]
			j := strings.IndexByte(rest, '>')
			if j < 0 || strings.ContainsAny(rest[:j], "<\n ") && !strings.Contains(rest[:j], "|") {
				t.Fatalf("%q became %q", typed, said)
			}
			if !strings.HasPrefix(rest, "@") && !strings.HasPrefix(rest, "#") && !strings.HasPrefix(rest, "!") && !strings.HasPrefix(rest, "http") {
				t.Fatalf("%q became %q", typed, said)
			}
		}
		if _, problems := checkBlocks(composedBlocks(said), surfaceMessage, "/blocks", nobody); said != "" && len(problems) > 0 {
			t.Fatalf("%q: %v", said, problems)
		}
	})
}
