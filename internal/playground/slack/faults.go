package slack

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// fault is one trouble asked for by POST /_control/faults.
type fault struct {
	Method     string `json:"method,omitempty"` // "" or "*": every method
	Status     int    `json:"status,omitempty"`
	RetryAfter int    `json:"retry_after,omitempty"` // seconds
	Error      string `json:"error,omitempty"`
	Slow       string `json:"slow,omitempty"` // a duration
	Times      int    `json:"times,omitempty"`

	Disconnect      string `json:"disconnect,omitempty"`
	DuplicateEvents int    `json:"duplicate_events,omitempty"`
	LoseEvents      int    `json:"lose_events,omitempty"`
	LateEvents      string `json:"late_events,omitempty"` // a duration
	DropClicks      int    `json:"drop_clicks,omitempty"`
	DropAcks        int    `json:"drop_acks,omitempty"`

	slow    time.Duration
	forever bool
}

// faultSet are the faults of Web API calls that are still to come.
type faultSet struct{ list []*fault }

// trouble is what is to go wrong with one call.
type trouble struct {
	slow       time.Duration
	status     int
	retryAfter int
	err        string
}

// take uses up one occurrence of every fault that a call meets: all the slow
// ones, and the first that decides the answer.
func (f *faultSet) take(method string) trouble {
	var t trouble
	for _, x := range f.list {
		if x.Method != "" && x.Method != "*" && x.Method != method {
			continue
		}
		if (x.Status != 0 || x.Error != "") && (t.status != 0 || t.err != "") {
			continue
		}
		t.slow += x.slow
		if x.Status != 0 || x.Error != "" {
			t.status, t.retryAfter, t.err = x.Status, x.RetryAfter, x.Error
		}
		if !x.forever {
			x.Times--
		}
	}
	f.list = slices.DeleteFunc(f.list, func(x *fault) bool { return !x.forever && x.Times <= 0 })
	return t
}

// disconnectReasons are those of disconnect frames, and "drop" for a connection
// that just breaks.
var disconnectReasons = []string{"warning", "refresh_requested", "link_disabled", "too_many_websockets", "drop"}

// check completes a fault, or says what is wrong with it.
func (x *fault) check() error {
	call := x.Status != 0 || x.Error != "" || x.Slow != ""
	events := x.Disconnect != "" || x.DuplicateEvents != 0 || x.LoseEvents != 0 || x.LateEvents != "" || x.DropClicks != 0 || x.DropAcks != 0
	switch {
	case !call && !events:
		return errors.New("a fault needs one of status, error, slow, disconnect, duplicate_events, lose_events, late_events, drop_clicks, drop_acks")
	case x.Method != "" && x.Method != "*" && methods[x.Method].run == nil:
		return fmt.Errorf("method %q: the workspace has no such method", x.Method)
	case x.Status != 0 && (x.Status < 400 || x.Status > 599):
		return fmt.Errorf("status %d: an HTTP error status is needed, 400 to 599", x.Status)
	case x.Times < 0 || x.DuplicateEvents < 0 || x.LoseEvents < 0 || x.DropClicks < 0 || x.DropAcks < 0 || x.RetryAfter < 0:
		return errors.New("numbers may not be negative")
	case x.Disconnect != "" && !slices.Contains(disconnectReasons, x.Disconnect):
		return fmt.Errorf("disconnect %q: one of %v is needed", x.Disconnect, disconnectReasons)
	}
	if x.Slow != "" {
		d, err := time.ParseDuration(x.Slow)
		if err != nil || d < 0 {
			return fmt.Errorf("slow %q: a duration such as \"2s\" is needed", x.Slow)
		}
		x.slow = d
	}
	if x.LateEvents != "" {
		if d, err := time.ParseDuration(x.LateEvents); err != nil || d < 0 {
			return fmt.Errorf("late_events %q: a duration such as \"5s\" is needed", x.LateEvents)
		}
	}
	// What breaks an answer happens once unless told otherwise; what is merely
	// slow stays slow until it is cleared.
	if x.Times == 0 {
		if x.Status == 0 && x.Error == "" {
			x.forever = true
		} else {
			x.Times = 1
		}
	}
	return nil
}

// inject puts a fault that was checked to work.
func (s *Server) inject(x *fault) {
	if x.Status != 0 || x.Error != "" || x.Slow != "" {
		s.mu.Lock()
		s.faults.list = append(s.faults.list, x)
		s.mu.Unlock()
	}
	b := s.sockets
	b.mu.Lock()
	b.duplicates += x.DuplicateEvents
	b.loseEvents += x.LoseEvents
	b.dropClicks += x.DropClicks
	b.dropAcks += x.DropAcks
	if x.LateEvents != "" {
		b.late, _ = time.ParseDuration(x.LateEvents) // checked
		b.lateTimes = x.Times
	}
	b.mu.Unlock()
	if x.Disconnect != "" {
		b.disconnect(x.Disconnect)
	}
}

// clearFaults makes everything well again.
func (s *Server) clearFaults() {
	s.mu.Lock()
	s.faults.list = nil
	s.mu.Unlock()
	b := s.sockets
	b.mu.Lock()
	b.duplicates, b.loseEvents, b.dropClicks, b.dropAcks, b.late, b.lateTimes = 0, 0, 0, 0, 0, 0
	b.mu.Unlock()
}
