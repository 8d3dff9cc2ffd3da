package slack

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// method is one Web API method.
type method struct {
	run    func(*Server, *call) (object, error)
	scopes []string // any one of them is enough; none are needed if empty
	app    bool     // takes the app-level token
	open   bool     // takes no token
	limit  int      // calls a minute
}

// call is one request to a method, as the method sees it. It runs under the
// workspace's mutex.
type call struct {
	args
	method string
	host   string
}

// apiError is an answer with ok:false.
type apiError struct {
	code     string
	messages []string // response_metadata.messages, without the [ERROR] in front
	extra    object
}

func (e *apiError) Error() string { return e.code }

func fail(code string) error { return &apiError{code: code} }

// failBecause is an error whose reason is told in response_metadata.messages.
func failBecause(code string, messages ...string) error {
	return &apiError{code: code, messages: messages}
}

// serveAPI answers one Web API call.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	s.seen(r)
	started := now()
	name := r.PathValue("method")
	in, err := readArgs(w, r)
	rec := &callRecord{Time: started, Method: name, Args: in.shown()}
	var status int
	var answer object
	var header http.Header
	if err != nil {
		status, answer = http.StatusOK, s.errorAnswer(err)
	} else {
		status, answer, header = s.answer(r, name, in)
	}
	if in.warning != "" {
		addWarning(answer, in.warning)
	}
	rec.Status, rec.Answer, rec.Millis = status, answer, now().Sub(started).Milliseconds()
	s.mu.Lock()
	s.calls.add(rec)
	s.mu.Unlock()

	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "private, no-cache, no-store, must-revalidate")
	w.Header().Set("X-Slack-Req-Id", randomString(32, lowerHex))
	raw, err := json.Marshal(answer)
	if err != nil { // a number that JSON cannot hold; nothing else can fail
		status, raw = http.StatusInternalServerError, []byte(`{"ok":false,"error":"fatal_error"}`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the client may have gone
}

// answer runs a call through the gates in Slack's order: the token, the scope,
// the rate, and then the method itself.
func (s *Server) answer(r *http.Request, name string, in args) (int, object, http.Header) {
	header := http.Header{}
	m, known := methods[name]
	if !known {
		a := s.errorAnswer(fail("unknown_method"))
		a["req_method"] = name
		return http.StatusOK, a, header
	}
	s.mu.Lock()
	f := s.faults.take(name)
	s.mu.Unlock()
	if f.slow > 0 {
		t := time.NewTimer(f.slow)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.authorise(m, in.token); err != nil {
		return http.StatusOK, s.errorAnswer(err), header
	}
	if m.app {
		header.Set("X-Oauth-Scopes", "connections:write")
	} else if !m.open {
		header.Set("X-Oauth-Scopes", strings.Join(s.scopes, ","))
		header.Set("X-Accepted-Oauth-Scopes", strings.Join(m.scopes, ","))
	}
	if err := s.scoped(m.scopes...); err != nil {
		return http.StatusOK, s.errorAnswer(err), header
	}
	if err := s.refuseMethod(name); err != nil {
		return http.StatusOK, s.errorAnswer(err), header
	}
	if f.status == 0 && f.err == "" && !s.opts.NoRateLimits {
		if wait := s.limits.take(name, in.str("channel"), m.limit, now()); wait > 0 {
			f.status, f.retryAfter = http.StatusTooManyRequests, int((wait+time.Second-1)/time.Second)
		}
	}
	switch {
	case f.status == http.StatusTooManyRequests:
		header.Set("Retry-After", strconv.Itoa(max(f.retryAfter, 1)))
		return f.status, object{"ok": false, "error": "ratelimited"}, header
	case f.status != 0 && f.status != http.StatusOK:
		return f.status, object{"ok": false, "error": "fatal_error"}, header
	case f.err != "":
		return http.StatusOK, s.errorAnswer(fail(f.err)), header
	}
	c := &call{args: in, method: name, host: r.Host}
	answer, err := m.run(s, c)
	if err != nil {
		return http.StatusOK, s.errorAnswer(err), header
	}
	s.judgeAccess(c)
	if answer == nil {
		answer = object{}
	}
	answer["ok"] = true
	s.touch()
	return http.StatusOK, answer, header
}

// errorAnswer renders an error as Slack does.
func (s *Server) errorAnswer(err error) object {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = &apiError{code: "fatal_error"}
	}
	a := object{"ok": false, "error": e.code}
	maps.Copy(a, e.extra)
	if len(e.messages) > 0 {
		var tagged []any
		for _, m := range e.messages {
			tagged = append(tagged, "[ERROR] "+m)
		}
		a["response_metadata"] = object{"messages": tagged}
		if e.code == "invalid_blocks" {
			a["errors"] = e.messages
		}
	}
	return a
}

func addWarning(a object, warning string) {
	a["warning"] = warning
	meta, _ := a["response_metadata"].(object)
	if meta == nil {
		meta = object{}
	}
	meta["warnings"] = []string{warning}
	a["response_metadata"] = meta
}

// authorise checks that a token is the one for the method.
func (s *Server) authorise(m method, token string) error {
	switch {
	case m.open:
		return nil
	case token == "":
		return fail("not_authed")
	case m.app && token == s.ws.AppToken, !m.app && token == s.ws.BotToken:
		return nil
	case token == s.ws.AppToken || token == s.ws.BotToken:
		return fail("not_allowed_token_type")
	default:
		return fail("invalid_auth")
	}
}

// scoped checks that the app holds one of the scopes.
func (s *Server) scoped(enough ...string) error {
	if len(enough) == 0 {
		return nil
	}
	for _, want := range enough {
		if slices.Contains(s.scopes, want) {
			return nil
		}
	}
	return &apiError{code: "missing_scope", extra: object{
		"needed": strings.Join(enough, ","), "provided": strings.Join(s.scopes, ","),
	}}
}

// DefaultScopes are the bot scopes of the app's manifest.
func DefaultScopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands",
		"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write", "reactions:read", "reactions:write",
		"usergroups:read", "users:read", "users:read.email",
	}
}
