package publish

// Stats counts what the scheduler has done since it was created.
type Stats struct {
	// Keys is the number of messages that are remembered, Pending what waits,
	// InFlight what is under way, all at this moment.
	Keys, Pending, InFlight int
	// Sent counts calls that Slack accepted, Unchanged states that were not sent
	// since Slack has them, Coalesced states that a newer one replaced.
	Sent, Unchanged, Coalesced uint64
	// Streams counts messages that were begun as a stream, Open those that are one.
	Streams uint64
	Open    int
	// Limited counts answers that told us to wait, Retried attempts that failed
	// and were repeated, FellBack refusals after which less was sent, GaveUp what was
	// never delivered.
	Limited, Retried, FellBack, GaveUp uint64
}

// Stats returns the current counts.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Keys, st.Pending, st.InFlight = len(s.messages), len(s.pending), s.inFlight
	st.Open = len(s.open)
	return st
}
