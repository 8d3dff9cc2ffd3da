package slackui

import (
	"maps"
	"slices"
	"time"

	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// A message calls people when it is posted, and never when it is edited. So a turn posts
// nothing until it has an answer to give, as far as can be told, or has ended: that work
// goes on stands in the thread's status line, and what is waited for on a card. What was
// said and done between two cards goes into the message above them, by an edit.

const (
	// quietFor is how long a turn works without a word before it tells of its steps.
	quietFor = time.Minute
	// quietWithoutStop is the same where Slack shows no Stop button of its own: it is on
	// the turn's message.
	quietWithoutStop = 10 * time.Second
	// joinedMost bounds the turns of which it is kept where their messages begin.
	joinedMost = 1000
)

// quiet is what a turn has posted, and until when it waits with more.
type quiet struct {
	since  time.Time   // when it began to work without a word
	shown  int         // more than the number of its last page; 0 before there is one
	breaks int         // of the turn, that were looked at
	waits  bool        // for people, when it was shown last
	timer  *time.Timer // tells of its steps in the end
}

// stop ends what would render a turn again. f.mu is held.
func (s *shownTurn) stop() {
	for _, t := range []*time.Timer{s.timer, s.quiet.timer} {
		if t != nil {
			t.Stop()
		}
	}
}

// keepQuiet notes what a turn that is shown waits for, and where its messages begin. f.mu
// is held.
func (f *frontend) keepQuiet(s *shownTurn) {
	t := s.latest
	q := &s.quiet
	fresh := len(t.Breaks) > q.breaks
	if fresh && !t.State.Ended() && f.app.sessions.quietFor(t.Thread) > 0 {
		o := f.rendering(t)
		o.Shown = q.shown
		if joined := render.Joins(t, o); len(joined) > 0 {
			f.join(t.ID, joined)
		}
	}
	q.breaks = len(t.Breaks)
	if fresh || q.waits { // how long people took does not count
		q.since = time.Now()
	}
	q.waits = t.Waiting > 0
}

// Joined implements [agent.Frontend].
func (f *frontend) Joined(turnID int64) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.joined[turnID]
}

// rise has what the turn has said and done below its last card, and has not posted yet,
// stand in the message above it: another card is about to be posted. f.mu is held.
func (f *frontend) rise(s *shownTurn) {
	t := s.latest
	if f.app.sessions.quietFor(t.Thread) == 0 {
		return
	}
	o := f.rendering(t)
	o.Shown = s.quiet.shown
	if breaks := render.Rises(t, o); len(breaks) > 0 {
		f.join(t.ID, append(slices.Clip(f.joined[t.ID]), breaks...))
	}
}

// join notes at which of a turn's breaks no message begins. f.mu is held.
func (f *frontend) join(turnID int64, breaks []int) {
	f.joined[turnID] = breaks
	if len(f.joined) > joinedMost {
		delete(f.joined, slices.Min(slices.Collect(maps.Keys(f.joined))))
	}
}

// isQuiet reports whether a turn is not to post a message of steps alone yet, and has it
// rendered again when it may. f.mu is held.
func (f *frontend) isQuiet(s *shownTurn) bool {
	t := s.latest
	long := f.app.sessions.quietFor(t.Thread)
	if t.Waiting > 0 { // its card says all
		return long > 0
	}
	left := long - time.Since(s.quiet.since)
	if left <= 0 {
		return false
	}
	if s.quiet.timer != nil {
		s.quiet.timer.Stop()
	}
	s.quiet.timer = time.AfterFunc(left, func() { f.renderRunning(t.ID) })
	return true
}

// renderRunning renders a turn again, if it runs.
func (f *frontend) renderRunning(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.turns[id]; s != nil && s.timer == nil {
		s.render(f, false)
	}
}

// sayMore renders the turns of a thread, or all for nil, of which something is not shown
// elsewhere that was thought to be.
func (f *frontend) sayMore(k *store.ThreadKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.turns {
		if s.timer == nil && (k == nil || s.latest.Thread == *k) {
			s.render(f, false)
		}
	}
}

// quietFor is how long a thread shows by other means that work goes on: not at all where
// it has no status line.
func (s *sessions) quietFor(k store.ThreadKey) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.shown[k]
	switch {
	case s.lacking(publish.SetStatus), now != nil && now.lacks[publish.SetStatus]:
		return 0
	case s.noStop, s.lacking(publish.SetSession), now != nil && now.lacks[publish.SetSession]:
		return quietWithoutStop
	}
	return quietFor
}
