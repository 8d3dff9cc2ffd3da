package slackui

// busy reports whether something is about to be handed to the publisher.
func (f *frontend) busy() bool {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.turns {
		if s.timer != nil {
			return true
		}
	}
	return len(f.reading) > 0
}
