package slackui

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"deckhand/internal/store"
)

// process is one process of the bot: when it is killed nothing that it does has an
// effect any more.
type process struct {
	app     *App
	dead    atomic.Bool
	stop    context.CancelFunc
	stopped chan struct{}
}

// Do implements slack-go's HTTP client.
func (p *process) do(s *scripted) httpClient {
	return func(r *http.Request) (*http.Response, error) {
		if p.dead.Load() {
			return nil, errors.New("killed")
		}
		return s.Do(r)
	}
}

type httpClient func(*http.Request) (*http.Response, error)

func (f httpClient) Do(r *http.Request) (*http.Response, error) { return f(r) }

// mortalBooks are the books of a process.
type mortalBooks struct {
	*screenBooks
	p *process
}

func (b mortalBooks) save(ctx context.Context, write func(context.Context) error) error {
	if b.p.dead.Load() {
		return errors.New("killed")
	}
	return write(ctx)
}

func (b mortalBooks) ClaimWords(ctx context.Context, teamID string, limit int) (out []store.Word, err error) {
	err = b.save(ctx, func(ctx context.Context) error { out, err = b.screenBooks.ClaimWords(ctx, teamID, limit); return err })
	return out, err
}

func (b mortalBooks) HoldWords(ctx context.Context, ids []int64) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.HoldWords(ctx, ids) })
}

func (b mortalBooks) PutBackWords(ctx context.Context, ids []int64) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.PutBackWords(ctx, ids) })
}

func (b mortalBooks) EndWords(ctx context.Context, ids []int64, shown []store.Shown) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.EndWords(ctx, ids, shown) })
}

func (b mortalBooks) LetWordsGo(ctx context.Context) error {
	return b.save(ctx, b.screenBooks.LetWordsGo)
}

func (b mortalBooks) SaveTurnMessage(ctx context.Context, turnID int64, m store.PostedMessage) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.SaveTurnMessage(ctx, turnID, m) })
}

func (b mortalBooks) AddCardCopies(ctx context.Context, copies []store.CardCopy) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.AddCardCopies(ctx, copies) })
}

func (b mortalBooks) SaveCardCopy(ctx context.Context, c store.CardCopy) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.SaveCardCopy(ctx, c) })
}

func (b mortalBooks) SaveApprovalMessage(ctx context.Context, cardID string, m store.PostedMessage) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenBooks.SaveApprovalMessage(ctx, cardID, m) })
}
