package slackui

import (
	"context"

	"deckhand/internal/report"
	"deckhand/internal/slackui/directory"
)

// people implements [chat.People] and [costs.People].
type people struct{ *directory.Directory }

// Names implements [costs.People].
func (p people) Names(ctx context.Context, users, channels []string, private func(id string) bool) report.Names {
	return p.Directory.Names(ctx, users, channels, private)
}
