package place

import (
	"context"
	"errors"
	"io"

	"github.com/google/uuid"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/work"
	"deckhand/internal/workspace"
)

// Works keep what threads have made where every machine finds it: [*store.Store], which
// tells what each method does.
type Works interface {
	Work(ctx context.Context, threadID int64, repository string) (work.Work, error)
	WorkRepositories(ctx context.Context, threadID int64) ([]string, error)
	ReadPack(ctx context.Context, threadID int64, pack uuid.UUID, to io.Writer) error
	KeepWork(ctx context.Context, l threads.Lease, w work.Work, pack io.Reader) error
}

// shelf is a thread's part of them, of one of its repositories, under a lease.
type shelf struct {
	works      Works
	lease      threads.Lease
	repository string // empty for the project's own
}

func (s shelf) Kept(ctx context.Context) (workspace.Kept, error) {
	w, err := s.works.Work(ctx, s.lease.ThreadID, s.repository)
	if errors.Is(err, pg.ErrNotFound) {
		return workspace.Kept{}, nil
	}
	return workspace.Kept{Branch: w.Branch, Saved: w.Saved, Packs: w.Packs, Bytes: w.Bytes, LeftOut: w.LeftOut, At: w.SavedAt, States: states(w.States), Held: w.Held}, err
}

func (s shelf) Read(ctx context.Context, pack uuid.UUID, to io.Writer) error {
	return s.works.ReadPack(ctx, s.lease.ThreadID, pack, to)
}

func (s shelf) Keep(ctx context.Context, k workspace.Kept, pack io.Reader) error {
	w := work.Work{
		ThreadID: s.lease.ThreadID, Repository: s.repository, Branch: k.Branch, Saved: k.Saved, Packs: k.Packs, Bytes: k.Bytes, LeftOut: k.LeftOut, SavedAt: k.At, Held: k.Held, States: []work.State{},
	}
	for _, state := range k.States {
		w.States = append(w.States, work.State(state))
	}
	return s.works.KeepWork(ctx, s.lease, w, pack)
}

func states(of []work.State) (out []workspace.State) {
	for _, s := range of {
		out = append(out, workspace.State(s))
	}
	return out
}
