package publish

import "time"

// Without notes what the workspace is known not to have: streams, and types of blocks in
// messages. They are left alone for as long as if Slack had refused them just now.
func (s *Scheduler) Without(streams bool, blocks []string) {
	now := time.Now()
	for _, at := range []Place{InMessage, InEphemeral} {
		s.refusals.learn(at, blocks, true)
	}
	if streams {
		s.mu.Lock()
		s.noStreams[""] = now.Add(streamsAgain)
		s.mu.Unlock()
	}
}
