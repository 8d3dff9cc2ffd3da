package slackui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// process is one process of the bot: when it is killed nothing that it does has an
// effect any more.
type process struct {
	app     *App
	dead    atomic.Bool
	refuse  atomic.Pointer[func() error] // an error of the database for each prompt that is to be accepted
	stop    context.CancelFunc
	stopped chan struct{}
}

// do implements slack-go's HTTP client.
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

// mortalBooks are the database of a process.
type mortalStore struct {
	*screenStore
	p *process
}

func (b mortalStore) save(ctx context.Context, write func(context.Context) error) error {
	if b.p.dead.Load() {
		return errors.New("killed")
	}
	return write(ctx)
}

func (b mortalStore) AcceptPrompt(ctx context.Context, p inbox.NewPrompt) (threads.Thread, bool, error) {
	if refuse := b.p.refuse.Load(); refuse != nil {
		if err := (*refuse)(); err != nil {
			return threads.Thread{}, false, fmt.Errorf("accept: %w", err)
		}
	}
	return b.screenStore.AcceptPrompt(ctx, p)
}

func (b mortalStore) ClaimOutbox(ctx context.Context, teamID string, limit int) (out []outbox.Row, err error) {
	err = b.save(ctx, func(ctx context.Context) error { out, err = b.screenStore.ClaimOutbox(ctx, teamID, limit); return err })
	return out, err
}

func (b mortalStore) HoldOutbox(ctx context.Context, ids []int64) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenStore.HoldOutbox(ctx, ids) })
}

func (b mortalStore) PutBackOutbox(ctx context.Context, ids []int64) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenStore.PutBackOutbox(ctx, ids) })
}

func (b mortalStore) EndOutbox(ctx context.Context, ids []int64, shown []outbox.Shown) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenStore.EndOutbox(ctx, ids, shown) })
}

func (b mortalStore) ReleaseOutbox(ctx context.Context) error {
	return b.save(ctx, b.screenStore.ReleaseOutbox)
}

func (b mortalStore) SavePosts(ctx context.Context, posts ...outbox.PostedMessage) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenStore.SavePosts(ctx, posts...) })
}

func (b mortalStore) ForgetPost(ctx context.Context, p outbox.PostedMessage, replica string) error {
	return b.save(ctx, func(ctx context.Context) error { return b.screenStore.ForgetPost(ctx, p, replica) })
}
