package slack

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
)

func (s *Server) getHome(_ http.ResponseWriter, r *http.Request) (any, error) {
	return s.openHome(r, r.URL.Query().Get("user"))
}

func (s *Server) postHome(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct{ User string }
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	return s.openHome(r, in.User)
}

// openHome opens the app's home tab and waits for the app to publish it.
func (s *Server) openHome(r *http.Request, person string) (any, error) {
	s.mu.Lock()
	u, err := s.person(person)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	if u.Stranger {
		s.mu.Unlock()
		return nil, refuse("%s is of another company and sees no home tab", u.RealName)
	}
	im := s.ws.openIM(u.ID, now())
	event := object{"type": "app_home_opened", "user": u.ID, "channel": im.ID, "tab": "home"}
	if v := s.ws.Homes[u.ID]; v != nil {
		event["view"] = s.wireView(v)
	}
	watch := s.watchEffects(u.ID, click{})
	defer watch.stop()
	s.emit(event, nil)
	s.mu.Unlock()
	watch.awaitHome(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.ws.Homes[u.ID]; v != nil {
		return object{"view": s.shownView(v), "published": watch.home != nil}, nil
	}
	return object{"view": nil, "published": false}, nil
}

// postAgent opens a person's direct messages with the app, which learns of it; with thread a
// new thread there, as people see it of an app that is shown beside what they look at
// (assistant_view).
func (s *Server) postAgent(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User   string `json:"user"`
		Thread bool   `json:"thread"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.person(in.User)
	if err != nil {
		return nil, err
	}
	if u.Stranger {
		return nil, refuse("%s is of another company and has no messages with the app", u.RealName)
	}
	im := s.ws.openIM(u.ID, now())
	if in.Thread {
		m := &message{Channel: im.ID, User: BotUser, Bot: true, Subtype: "assistant_app_thread", Text: "New conversation", TS: s.ws.nextTS(now())}
		s.ws.add(m)
		s.liveMessage(m)
		s.emit(object{"type": "assistant_thread_started", "assistant_thread": object{
			"user_id": u.ID, "channel_id": im.ID, "thread_ts": m.TS, "context": object{},
		}}, nil)
		return object{"channel": im.ID, "thread_ts": m.TS}, nil
	}
	s.emit(object{"type": "app_home_opened", "user": u.ID, "channel": im.ID, "tab": "messages"}, nil)
	return object{"channel": im.ID}, nil
}

func (s *Server) getViews(_ http.ResponseWriter, r *http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []any{}
	who := r.URL.Query().Get("user")
	for _, u := range s.ws.Users {
		if who == "" || who == u.ID {
			for _, v := range s.stacks[u.ID] {
				out = append(out, s.shownView(v))
			}
		}
	}
	return object{"views": out}, nil
}

func (s *Server) submitView(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User   string `json:"user"`
		Values object `json:"values"`
		Expect string `json:"expect"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	u, err := s.person(in.User)
	var v *view
	if err == nil {
		v, err = s.viewFor(u, r.PathValue("id"))
	}
	switch {
	case err != nil:
	case v.Type != "modal":
		err = refuse("view %q is a home tab; only modals are submitted", v.ID)
	case s.topView(u.ID) != v:
		err = refuse("view %q lies under another modal", v.ID)
	default:
		if e := v.State.enterAll(blocksOf(v.Def), in.Values); e != nil {
			err = refuse("%s", e)
		}
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	if missing := v.State.missing(blocksOf(v.Def)); len(missing) > 0 {
		defer s.mu.Unlock()
		return object{"view": s.shownView(v), "errors": missing, "cleared": false, "acked": false, "submitted": false}, nil
	}
	payload := s.interaction("view_submission", u)
	payload["trigger_id"] = s.newTrigger(u.ID, v.ID)
	payload["view"] = s.wireView(v)
	payload["response_urls"] = []any{}
	watch := s.watchEffects(u.ID, click{Expect: in.Expect})
	defer watch.stop()
	done := s.sockets.click(envelopeInteractive, payload)
	s.mu.Unlock()

	var sub submission
	var bad error
	result := <-done
	if result.acked {
		s.mu.Lock()
		sub, bad = s.submitAnswer(v, result.payload)
		s.mu.Unlock()
	}
	answer := object{"submitted": true, "acked": result.acked, "errors": nil, "cleared": sub.cleared}
	switch {
	case !result.acked:
		answer["errors"] = map[string]string{"": "We had some trouble connecting. Try again?"}
		s.warn(u.ID, notTaken)
	case errors.Is(bad, errBadAnswer):
		answer["errors"] = map[string]string{"": "We had some trouble connecting. Try again?"}
		answer["problem"] = bad.Error()
		s.warn(u.ID, bad.Error())
	case sub.errors != nil:
		answer["errors"] = sub.errors
	default:
		again := make(chan clickResult, 1)
		again <- result
		watch.await(again, func(json.RawMessage) {})
	}
	answer["ephemerals"] = watch.whisps
	answer["messages"] = watch.msgs
	s.mu.Lock()
	defer s.mu.Unlock()
	answer["view"] = nil
	if top := s.topView(u.ID); top != nil {
		answer["view"] = s.shownView(top)
	}
	return answer, nil
}

func (s *Server) closeView(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User string `json:"user"`
		All  bool   `json:"all"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	u, err := s.person(in.User)
	var v *view
	if err == nil {
		v, err = s.viewFor(u, r.PathValue("id"))
	}
	if err == nil && s.topView(u.ID) != v {
		err = refuse("view %q is not the topmost modal", v.ID)
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	defer s.mu.Unlock()
	all := in.All || v.Def["clear_on_close"] == true
	closed := []*view{v}
	if all {
		closed = slices.Clone(s.stacks[u.ID])
		slices.Reverse(closed)
	}
	s.popView(u.ID, all)
	for _, x := range closed {
		if x.Def["notify_on_close"] == true {
			payload := s.interaction("view_closed", u)
			payload["view"] = s.wireView(x)
			payload["is_cleared"] = all
			s.sockets.click(envelopeInteractive, payload)
		}
	}
	answer := object{"view": nil}
	if top := s.topView(u.ID); top != nil {
		answer["view"] = s.shownView(top)
	}
	return answer, nil
}
