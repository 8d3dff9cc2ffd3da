package slackui

import (
	"context"
	"fmt"

	"deckhand/internal/store/outbox"
)

// Show implements [agent.Frontend]: what the database says of something is rendered, posted
// where there is no message of it yet, and edited where there is one. It is right whichever
// process posted that, and whichever changed what it shows.
func (f *frontend) Show(kind outbox.PostKind, id string) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	f.show(kind, id)
}

// show is Show while f.cardsMu is held.
func (f *frontend) show(kind outbox.PostKind, id string) {
	f.refresh(showKey(kind, id), func(ctx context.Context) (func(), error) { return f.read(ctx, kind, id) })
}

// showKey names what is shown in f.reading.
func showKey(kind outbox.PostKind, id string) string { return string(kind) + "/" + id }

// read reads something and its messages. show, which shows it, is called under f.cardsMu.
func (f *frontend) read(ctx context.Context, kind outbox.PostKind, id string) (show func(), err error) {
	switch kind {
	case outbox.CardPost:
		return f.readCard(ctx, id)
	case outbox.BudgetPost:
		return f.readBudget(ctx, id)
	case outbox.WaitPost:
		return f.readWait(ctx, id)
	case outbox.QueuePost:
		return f.readQueue(ctx, id)
	case outbox.PlacePost:
		return f.readPlace(ctx, id)
	case outbox.PullPost:
		return f.readPull(ctx, id)
	case outbox.TurnPost: // its state is not in the database until it has ended; see ShowTurn
	}
	return nil, fmt.Errorf("a %s is not read to be shown", kind)
}
