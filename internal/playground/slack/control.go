package slack

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// controlRoutes are the control API. It needs no token: it is for loopback only,
// and pages of other sites cannot use it (the Host and the content type guard it).
func (s *Server) controlRoutes(mux *http.ServeMux) {
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request) (any, error){
		"GET /_control/state":               s.getState,
		"GET /_control/channels":            s.getChannels,
		"GET /_control/messages":            s.getMessages,
		"POST /_control/messages":           s.postMessage,
		"POST /_control/messages/edit":      s.editMessage,
		"POST /_control/messages/delete":    s.deleteMessage,
		"POST /_control/actions":            s.postAction,
		"POST /_control/state_values":       s.postStateValues,
		"POST /_control/slash":              s.postSlash,
		"POST /_control/shortcut":           s.postShortcut,
		"POST /_control/options":            s.postOptions,
		"POST /_control/reactions":          s.postReaction,
		"POST /_control/members":            s.postMember,
		"POST /_control/people":             s.postPerson,
		"POST /_control/stop":               s.postStop,
		"POST /_control/agent":              s.postAgent,
		"GET /_control/home":                s.getHome,
		"POST /_control/home":               s.postHome,
		"GET /_control/views":               s.getViews,
		"POST /_control/views/{id}/submit":  s.submitView,
		"POST /_control/views/{id}/close":   s.closeView,
		"POST /_control/views/{id}/actions": s.postAction,
		"GET /_control/calls":               s.getCalls,
		"GET /_control/notifications":       s.getNotifications,
		"GET /_control/accessibility":       s.getAccessibility,
		"GET /_control/warnings":            s.getWarnings,
		"GET /_control/faults":              s.getFaults,
		"POST /_control/faults":             s.postFaults,
		"DELETE /_control/faults":           s.deleteFaults,
		"GET /_control/refuse":              s.getRefusals,
		"POST /_control/refuse":             s.postRefusal,
		"DELETE /_control/refuse":           s.deleteRefusals,
	} {
		mux.HandleFunc(pattern, s.controlled(h))
	}
	mux.HandleFunc("GET /_control/events", func(w http.ResponseWriter, r *http.Request) {
		if guard(w, r) {
			s.seen(r)
			s.serveEvents(w, r)
		}
	})
}

// Guard refuses what must not reach a control API on loopback: requests whose
// Host is not loopback (a name that was rebound), those of other sites' pages,
// and posts that a form of another site could send. It answers them itself and
// returns false.
func Guard(w http.ResponseWriter, r *http.Request) bool { return guard(w, r) }

func guard(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !loopbackHost(r.Host):
		writeControl(w, http.StatusForbidden, object{"error": "the control API answers only to loopback addresses, not to the host " + strconv.Quote(r.Host)})
		return false
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" || r.Header.Get("Sec-Fetch-Site") == "same-site":
		writeControl(w, http.StatusForbidden, object{"error": "the control API does not answer to other sites' pages"})
		return false
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || media != "application/json" {
			writeControl(w, http.StatusUnsupportedMediaType, object{"error": "send JSON, with Content-Type: application/json"})
			return false
		}
	}
	return true
}

// loopbackHost says whether a Host header names this machine and no other.
func loopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// fromPage says whether a request comes from the playground's own page.
func fromPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return loopbackHost(r.Host) && (site == "same-origin" || site == "none")
}

// controlled wraps a handler of the control API: its result is the answer, its
// error a status with a sentence.
func (s *Server) controlled(h func(http.ResponseWriter, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !guard(w, r) {
			return
		}
		s.seen(r)
		answer, err := h(w, r)
		if err == nil {
			writeControl(w, http.StatusOK, answer)
			return
		}
		status := http.StatusBadRequest
		var refused errRefused
		var api *apiError
		switch {
		case errors.As(err, &refused):
		case errors.As(err, &api):
		default:
			status = http.StatusInternalServerError
		}
		writeControl(w, status, object{"error": err.Error()})
	}
}

func writeControl(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(mustJSON(answer), '\n'))
}

// readControl reads a request's JSON body.
func readControl(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpload*2))
	if err != nil {
		return refuse("the body cannot be read: %s", err)
	}
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if err := decodeJSON(raw, into); err != nil {
		return refuse("the body is not the JSON that is needed here: %s", err)
	}
	return nil
}

func (s *Server) getState(http.ResponseWriter, *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	users, groups, channels := []any{}, []any{}, []any{}
	for _, u := range s.ws.Users {
		users = append(users, s.shownUser(u))
	}
	for _, g := range s.ws.Groups {
		groups = append(groups, object{"id": g.ID, "handle": g.Handle, "name": g.Name, "users": g.Users})
	}
	for _, c := range s.ws.Channels {
		channels = append(channels, shownChannel(c))
	}
	n := s.sockets.count()
	return object{
		"team":  object{"id": TeamID, "name": teamName, "domain": teamDomain},
		"users": users, "groups": groups, "channels": channels,
		"bot":    object{"user": BotUser, "bot_id": BotID, "app_id": AppID, "scopes": s.scopes, "shortcuts": Shortcuts()},
		"tokens": object{"bot": s.ws.BotToken, "app": s.ws.AppToken},
		"ready":  n > 0, "connections": n,
	}, nil
}

func shownChannel(c *channel) object {
	o := object{
		"id": c.ID, "name": c.Name, "kind": c.Kind, "topic": c.Topic, "purpose": c.Purpose,
		"members": append([]string{}, c.Members...), "shared": c.ExtShared, "archived": c.Archived,
		"private": c.Kind == kindPrivate, "im": c.Kind == kindIM,
	}
	if c.Kind == kindIM {
		o["peer"] = c.peer()
	}
	return o
}

func (s *Server) getChannels(_ http.ResponseWriter, r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := r.URL.Query().Get("user")
	if who != "" && s.ws.user(who) == nil {
		return nil, refuse("user %q: nobody in this workspace has that id", who)
	}
	out := []any{}
	for _, c := range s.ws.Channels {
		if who == "" || c.has(who) {
			out = append(out, shownChannel(c))
		}
	}
	return object{"channels": out}, nil
}

func (s *Server) getMessages(_ http.ResponseWriter, r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	c := s.ws.channel(q.Get("channel"))
	if c == nil {
		c = s.ws.channelNamed(strings.TrimPrefix(q.Get("channel"), "#"))
	}
	if c == nil {
		return nil, refuse("channel %q: there is no such channel", q.Get("channel"))
	}
	thread, who := q.Get("thread_ts"), q.Get("user")
	belongs := func(m *message) bool {
		if thread == "" {
			return m.topLevel()
		}
		return m.TS == thread || m.ThreadTS == thread
	}
	var list []*message
	for _, m := range s.ws.Messages[c.ID] {
		if belongs(m) {
			list = append(list, m)
		}
	}
	if thread != "" && len(list) == 0 {
		return nil, refuse("thread_ts %q: there is no such message in %s", thread, c.ID)
	}
	for _, m := range s.ephemerals {
		if m.Channel == c.ID && belongs(m) && (who == "" || m.EphemeralTo == who) {
			list = append(list, m)
		}
	}
	sortByTS(list)
	out := []any{}
	for _, m := range list {
		out = append(out, s.shown(m))
	}
	return object{"messages": out}, nil
}

func (s *Server) getWarnings(_ http.ResponseWriter, r *http.Request) (any, error) {
	return object{"warnings": s.live.warned(r.URL.Query().Get("user"))}, nil
}

func (s *Server) getCalls(_ http.ResponseWriter, r *http.Request) (any, error) {
	since := 0
	if v := r.URL.Query().Get("since"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return nil, refuse("since %q: the seq of a call is needed", v)
		}
		since = n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.calls.since(since)
	if m := r.URL.Query().Get("method"); m != "" {
		kept := []*callRecord{}
		for _, c := range list {
			if c.Method == m {
				kept = append(kept, c)
			}
		}
		list = kept
	}
	return object{"calls": list, "seq": s.calls.seq}, nil
}
