package publish

import "time"

// Without records what the workspace lacks: streams, and types of blocks in messages. They are avoided as long as
// after a refusal by Slack.
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
