package publish

// Remembered counts what is kept for messages, calls and groups in use.
func (s *Scheduler) Remembered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.messages) + len(s.lastCall) + len(s.pending)
	for _, g := range s.groups {
		n += g.refs
	}
	return n
}

// Rounds counts how often Run has looked for work.
func (s *Scheduler) Rounds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rounds
}

// Now is how many messages are remembered, are streams, and how many calls are under way.
func (s *Scheduler) Now() (keys, open, inFlight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages), len(s.open), s.inFlight
}
