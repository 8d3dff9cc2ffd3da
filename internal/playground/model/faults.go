package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Fault is a failure that calls run into on purpose. Conditions that are set
// must all hold; the first fault that fits a call is used up by one.
type Fault struct {
	// Times is how many calls it hits; 0 = every call until it is cleared.
	Times int `json:"times,omitempty"`
	// Match must stand in the last message (not case sensitive); "" = any.
	Match string `json:"match,omitempty"`
	// Session must be the session of the call; "" = any.
	Session string `json:"session,omitempty"`
	// Model must stand in the requested model id; "" = any.
	Model string `json:"model,omitempty"`

	// Status answers with this HTTP status and Anthropic's error for it.
	Status int `json:"status,omitempty"`
	// Message replaces the error's usual text.
	Message string `json:"message,omitempty"`
	// RetryAfter is sent as the Retry-After header, in seconds; 0 = none.
	RetryAfter int `json:"retry_after,omitempty"`
	// Hang waits before anything is answered (then the call goes on, with
	// Status if set). It ends early when the client leaves.
	Hang Duration `json:"hang,omitempty"`
	// CutAfterBytes breaks the connection after that many bytes of a stream.
	CutAfterBytes int `json:"cut_after_bytes,omitempty"`
	// CutAfterChars breaks the connection after that many characters of text,
	// thinking and tool input.
	CutAfterChars int `json:"cut_after_chars,omitempty"`
	// StallAfterChars says nothing more after that many characters, until the
	// client leaves.
	StallAfterChars int `json:"stall_after_chars,omitempty"`
	// Garbage answers 200 with bytes that are no JSON and no event stream.
	Garbage bool `json:"garbage,omitempty"`
	// Mute says nothing of what a streamed answer has used, which is billed all the same.
	Mute bool `json:"mute,omitempty"`
	// CharsPerSecond streams at this pace; 0 = unchanged.
	CharsPerSecond int `json:"chars_per_second,omitempty"`
}

// Duration is a time.Duration that is "1.5s" in JSON; a number is seconds.
type Duration time.Duration

// UnmarshalJSON reads "5s" or a number of seconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		v, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("read duration: %w", err)
		}
		*d = Duration(v)
		return nil
	}
	var n float64
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("read duration: %w", err)
	}
	*d = Duration(n * float64(time.Second))
	return nil
}

// MarshalJSON writes the duration as Go does.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

type faults struct {
	mu   sync.Mutex
	list []Fault
}

// SetFaults replaces the faults. Calls already being answered are not
// affected.
func (s *Server) SetFaults(f []Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = append([]Fault(nil), f...)
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() { s.SetFaults(nil) }

// Faults returns the faults that are left.
func (s *Server) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return append([]Fault{}, s.faults.list...)
}

// take returns the first fault that fits a call and counts it.
func (f *faults) take(session, model, last string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.list {
		c := f.list[i]
		if c.Session != "" && c.Session != session ||
			c.Model != "" && !strings.Contains(model, c.Model) ||
			c.Match != "" && !strings.Contains(strings.ToLower(last), strings.ToLower(c.Match)) {
			continue
		}
		switch {
		case c.Times == 1:
			f.list = append(f.list[:i:i], f.list[i+1:]...)
		case c.Times > 1:
			f.list[i].Times--
		}
		return c, true
	}
	return Fault{}, false
}
