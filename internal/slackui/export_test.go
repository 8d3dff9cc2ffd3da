package slackui

// busy reports whether something is about to be handed to the publisher.
func (f *turnScreen) busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.shown {
		if s.timer != nil {
			return true
		}
	}
	return false
}
