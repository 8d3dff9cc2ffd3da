package slackui

import (
	"time"

	"deckhand/internal/slackui/publish"
	"deckhand/internal/store/threads"
)

// A message calls people when it is posted, and never when it is edited. So a turn posts
// nothing until it has an answer to give, as far as can be told, or has ended: that work
// goes on stands in the thread's status line, and what is waited for on a card, in whose
// message the turn goes on by edits.

const (
	// quietFor is how long a turn works without a word before it tells of its steps.
	quietFor = time.Minute
	// quietWithoutStop is the same where Slack shows no Stop button of its own: it is on
	// the turn's message.
	quietWithoutStop = 10 * time.Second
)

// stop ends what would render a turn again. f.mu is held.
func (s *shownTurn) stop() {
	for _, t := range []*time.Timer{s.timer, s.tell} {
		if t != nil {
			t.Stop()
		}
	}
}

// isQuiet reports whether a turn is not to post a message of steps alone yet, and has it
// rendered again when it may. f.mu is held.
func (f *turnScreen) isQuiet(s *shownTurn) bool {
	left := f.sessions.quietFor(s.latest.Thread) - time.Since(s.since)
	if left <= 0 || len(s.latest.Cards) > 0 || len(s.keys) > 0 {
		return false
	}
	if s.tell != nil {
		s.tell.Stop()
	}
	id := s.latest.ID
	s.tell = time.AfterFunc(left, func() { f.renderRunning(id) })
	return true
}

// renderRunning renders a turn again, if it runs.
func (f *turnScreen) renderRunning(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.shown[id]; s != nil && s.timer == nil {
		s.render(f, unchanged)
	}
}

// sayMore renders the turns of a thread, or all for nil, of which something is not shown
// elsewhere that was thought to be.
func (f *turnScreen) sayMore(k *threads.ThreadKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.shown {
		if s.timer == nil && (k == nil || s.latest.Thread == *k) {
			s.render(f, unchanged)
		}
	}
}

// quietFor is how long a thread shows by other means that work goes on: not at all where
// it has no status line.
func (s *sessions) quietFor(k threads.ThreadKey) time.Duration {
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
