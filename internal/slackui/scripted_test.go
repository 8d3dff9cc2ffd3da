package slackui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
)

// fault is how Slack answers a call. The zero value is well, after 50 ms.
type fault struct {
	slow time.Duration // besides the 50 ms
	err  error         // instead of an effect
	deaf bool          // it has its effect, and no answer comes
}

// slackCall is a call that Slack got.
type slackCall struct {
	at     time.Time
	method string
	args   url.Values
	body   string // as it was sent
	ts     string // posted or edited
	ok     bool
}

// shownMessage is a message as people see it.
type shownMessage struct {
	channel, thread, text, blocks string
	metadata                      string // as it was posted
	deleted                       bool
	actions                       bool // has a button that changes something
}

// scripted is a Slack.
type scripted struct {
	answer func(n int, c slackCall) fault // n counts calls from 1; may be nil

	mu       sync.Mutex
	calls    []slackCall
	messages map[string]*shownMessage
	posted   []string
	flying   map[string]int
	problems []string
	files    []sharedIn
}

// sharedIn is a file in a thread.
type sharedIn struct{ id, name, thread string }

func newScripted() *scripted {
	return &scripted{messages: map[string]*shownMessage{}, flying: map[string]int{}}
}

// answers has calls answered by fn from now on.
func (s *scripted) answers(fn func(n int, c slackCall) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = fn
}

// Do answers a request of a real slack.Client.
func (s *scripted) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if err := req.ParseForm(); err != nil {
		return nil, err
	}
	c := slackCall{at: time.Now(), method: path.Base(req.URL.Path), args: req.Form, body: string(body), ts: req.Form.Get("ts")}
	s.mu.Lock()
	n := len(s.calls)
	s.calls = append(s.calls, c)
	var f fault
	if s.answer != nil {
		f = s.answer(n+1, c)
	}
	if c.ts != "" && c.method == "chat.update" {
		if s.flying[c.ts]++; s.flying[c.ts] > 1 {
			s.problems = append(s.problems, "two edits of "+c.ts+" at once")
		}
	}
	if f.deaf {
		c.ok = s.effect(&c, map[string]any{}) == nil
		s.calls[n] = c
		s.mu.Unlock()
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	s.mu.Unlock()
	select {
	case <-req.Context().Done():
		f.err = req.Context().Err()
	case <-time.After(50*time.Millisecond + f.slow):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ts != "" && c.method == "chat.update" {
		s.flying[c.ts]--
	}
	out := map[string]any{"ok": true}
	if f.err == nil {
		f.err = s.effect(&c, out)
	}
	c.ok = f.err == nil
	s.calls[n] = c
	rec := httptest.NewRecorder()
	switch err := f.err.(type) { //nolint:errorlint // the test made it, unwrapped
	case nil:
		_ = json.NewEncoder(rec).Encode(out)
	case *slack.RateLimitedError:
		rec.Header().Set("Retry-After", strconv.Itoa(int(err.RetryAfter.Seconds())))
		rec.WriteHeader(http.StatusTooManyRequests)
	case slack.StatusCodeError:
		rec.WriteHeader(err.Code)
	case *slack.SlackErrorResponse:
		_ = json.NewEncoder(rec).Encode(map[string]any{"ok": false, "error": err.Err})
	default:
		return nil, err
	}
	return rec.Result(), nil
}

// effect does what a call asks for. s.mu is held.
func (s *scripted) effect(c *slackCall, out map[string]any) error {
	arg := c.args.Get
	switch c.method {
	case "chat.postMessage", "chat.update":
		m := s.messages[c.ts]
		if c.method == "chat.postMessage" {
			c.ts = fmt.Sprintf("%d.%06d", 1000+len(s.posted), len(s.posted))
			m = &shownMessage{channel: arg("channel"), thread: arg("thread_ts"), metadata: arg("metadata")}
			s.messages[c.ts] = m
			s.posted = append(s.posted, c.ts)
		}
		if m == nil || m.deleted {
			return &slack.SlackErrorResponse{Err: "message_not_found"}
		}
		m.text, m.blocks = arg("text"), canonical(arg("blocks"))
		m.actions = strings.Count(m.blocks, `"type":"button"`) > strings.Count(m.blocks, `"action_id":"steps"`)
		out["ts"], out["channel"] = c.ts, m.channel
	case "chat.delete":
		m := s.messages[arg("ts")]
		if m == nil || m.deleted {
			return &slack.SlackErrorResponse{Err: "message_not_found"}
		}
		m.deleted = true
	case "users.info":
		out["user"] = map[string]any{"id": arg("user"), "team_id": deskTeam, "name": strings.ToLower(arg("user"))}
	case "conversations.info":
		out["channel"] = map[string]any{"id": arg("channel"), "is_private": arg("channel") == deskPrivate, "is_im": access.IsDirect(arg("channel"))}
	case "users.conversations":
		if arg("user") == "UGRACE" {
			out["channels"] = []any{map[string]any{"id": deskPrivate}}
		}
	case "conversations.open":
		out["channel"] = map[string]any{"id": "D" + arg("users")}
	case "conversations.history":
		var found []any
		for _, ts := range s.posted {
			if m := s.messages[ts]; m.channel == arg("channel") && m.thread == "" && !m.deleted {
				found = append(found, map[string]any{"ts": ts, "user": "UBOT", "text": m.text, "metadata": json.RawMessage(cmp.Or(m.metadata, "{}"))})
			}
		}
		out["messages"] = found
	case "conversations.replies":
		var found []any
		if m := s.messages[arg("latest")]; m != nil && !m.deleted {
			found = append(found, map[string]any{"ts": arg("latest"), "text": m.text, "blocks": json.RawMessage(cmp.Or(m.blocks, "[]"))})
		}
		for _, ts := range s.posted {
			if m := s.messages[ts]; arg("include_all_metadata") != "" && m.thread == c.ts && !m.deleted {
				found = append(found, map[string]any{"ts": ts, "user": "UBOT", "text": m.text, "metadata": json.RawMessage(cmp.Or(m.metadata, "{}"))})
			}
		}
		for i, f := range s.files {
			if f.thread == c.ts && f.thread != "" && arg("include_all_metadata") != "" {
				found = append(found, map[string]any{"ts": fmt.Sprintf("9.%06d", i), "user": "UBOT", "files": []any{map[string]any{"id": f.id, "name": f.name}}})
			}
		}
		out["messages"] = found
	case "files.getUploadURLExternal":
		id := "F" + strconv.Itoa(len(s.files)+1)
		s.files = append(s.files, sharedIn{id: id, name: arg("filename")})
		out["upload_url"], out["file_id"] = "https://slack.invalid/upload", id
	case "files.completeUploadExternal":
		for i := range s.files {
			if strings.Contains(arg("files"), `"`+s.files[i].id+`"`) {
				s.files[i].thread = arg("thread_ts")
			}
		}
		out["files"] = []any{map[string]any{"id": "F1", "title": "x"}}
	}
	return nil
}

// canonical is JSON in one form.
func canonical(raw string) string {
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil || string(b) == "[]" || string(b) == "null" {
		return ""
	}
	return string(b)
}

// delete takes the n-th message away, as a person may.
func (s *scripted) delete(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < len(s.posted) {
		s.messages[s.posted[n]].deleted = true
	}
}

// inThread are the messages that stand in a thread, in their order.
func (s *scripted) inThread(thread string) []shownMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []shownMessage
	for _, ts := range s.posted {
		if m := s.messages[ts]; m.thread == thread && !m.deleted {
			out = append(out, *m)
		}
	}
	return out
}

// filesIn are the names of the files in a thread.
func (s *scripted) filesIn(thread string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.thread == thread {
			names = append(names, f.name)
		}
	}
	return names
}

// postedIn are the texts of what was posted in a channel.
func (s *scripted) postedIn(channel string) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ts := range s.posted {
		if m := s.messages[ts]; m.channel == channel {
			texts = append(texts, m.text)
		}
	}
	return texts
}

// whispers are what people were told alone, in their order.
func (s *scripted) whispers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, c := range s.calls {
		if c.method == "chat.postEphemeral" && c.ok {
			out = append(out, c.args.Get("user")+": "+c.args.Get("text"))
		}
	}
	return out
}

func (s *scripted) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c.method == method {
			n++
		}
	}
	return n
}

// slackAllows are calls a minute, as Slack documents them.
var slackAllows = map[string]int{"chat.update": 50, "chat.postEphemeral": 100, "reactions.add": 50}

// check says what is wrong with what Slack has seen, whatever was to be shown.
func (s *scripted) check() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	problems := slices.Clone(s.problems)
	for method, most := range slackAllows {
		var at []time.Time
		for _, c := range s.calls {
			if c.method == method {
				at = append(at, c.at)
			}
		}
		for i := range at {
			if i+most < len(at) && at[i+most].Sub(at[i]) < time.Minute {
				problems = append(problems, fmt.Sprintf("more than %d calls of %s in a minute", most, method))
				break
			}
		}
	}
	return problems
}
