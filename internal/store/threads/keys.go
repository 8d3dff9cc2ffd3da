package threads

// ThreadKey names a Slack thread.
type ThreadKey struct {
	TeamID    string
	ChannelID string
	ThreadTS  string
}
