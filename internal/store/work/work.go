package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// WorkSaved reports whether the thread's work was saved since its last turn ended.
func (s *Store) WorkSaved(ctx context.Context, threadID int64) (saved bool, err error) {
	err = s.db.QueryRow(ctx, `
		SELECT COALESCE((SELECT min(saved_at) FROM work WHERE thread_id = $1) >= (SELECT max(ended_at) FROM turns WHERE thread_id = $1), false)`, threadID).Scan(&saved)
	return saved, pg.Wrap(err, "look when the work of thread %d was saved", threadID)
}

// Work is a thread's work in one of its repositories, stored so that another machine can continue it.
type Work struct {
	ThreadID int64
	// Repository is its short name; empty for the project's own.
	Repository string
	// Branch and Saved are the commits of the thread's branch and saved state; empty if there is none.
	Branch, Saved string
	// Packs hold the commits that the project's repository lacks; each may need earlier ones. Bytes is their size.
	Packs []uuid.UUID
	Bytes int64
	// LeftOut names, for people, what is not included.
	LeftOut string
	SavedAt time.Time
	// States are what the thread's folder was at the ends of its last turns, oldest first. Held is the commit by which the
	// packs have them; empty if they have not.
	States []State
	Held   string
}

// State is what a thread's folder was at the end of a turn, as of Work; of turn 0, before the first.
type State struct {
	Turn   int64     `json:"turn"`
	Branch string    `json:"branch"`
	Saved  string    `json:"saved"`
	At     time.Time `json:"at"`
}

// maxPart bounds a piece of a pack, in bytes, and so the memory.
const maxPart = 1 << 20

// Work returns a thread's stored work in one of its repositories, or [pg.ErrNotFound].
func (s *Store) Work(ctx context.Context, threadID int64, repository string) (Work, error) {
	w, err := pg.CollectOne[Work](s.db.Query(ctx, `
		SELECT thread_id, repository, branch, saved, packs, bytes, left_out, saved_at, NULLIF(states, '[]') AS states, held
		FROM work WHERE thread_id = $1 AND repository = $2`, threadID, repository))
	return w, pg.Wrap(err, "read the work of thread %d", threadID)
}

// WorkRepositories are the repositories in which work of a thread is stored.
func (s *Store) WorkRepositories(ctx context.Context, threadID int64) ([]string, error) {
	names, err := pg.CollectColumn[string](s.db.Query(ctx, `SELECT repository FROM work WHERE thread_id = $1`, threadID))
	return names, pg.Wrap(err, "read where the work of thread %d is", threadID)
}

// ReadPack writes a pack of a thread's work to to.
func (s *Store) ReadPack(ctx context.Context, threadID int64, pack uuid.UUID, to io.Writer) error {
	for part := 0; ; part++ {
		// One query per piece: no connection is held while to is slow.
		var data []byte
		err := s.db.QueryRow(ctx, `
			SELECT p.data FROM work w JOIN work_packs p ON p.thread_id = w.thread_id AND p.pack = ANY (w.packs)
			WHERE p.thread_id = $1 AND p.pack = $2 AND p.part = $3`, threadID, pack, part).Scan(&data)
		switch {
		case errors.Is(err, pgx.ErrNoRows) && part > 0:
			return nil
		case err != nil:
			return fmt.Errorf("read pack %s of thread %d: %w", pack, threadID, pg.NotFound(err))
		}
		if _, err := to.Write(data); err != nil {
			return fmt.Errorf("read pack %s of thread %d: %w", pack, threadID, err)
		}
	}
}

// KeepWork replaces the stored work of the lease's thread in a repository by w, and reads its last pack from pack unless
// that is nil; packs that no work names are deleted. Readers see the old or the new state. The thread's next call removes
// pieces of an interrupted one.
func (s *Store) KeepWork(ctx context.Context, l threads.Lease, w Work, pack io.Reader) error {
	if w.Packs == nil {
		w.Packs = []uuid.UUID{}
	}
	err := func() error {
		if pack != nil {
			if err := s.writePack(ctx, l.ThreadID, w.Packs[len(w.Packs)-1], pack); err != nil {
				return err
			}
		}
		return threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
			if _, err := tx.Exec(ctx, `
				INSERT INTO work (thread_id, repository, epoch, branch, saved, packs, bytes, left_out, saved_at, states, held)
				VALUES ($1, $9, $2, $3, $4, $5, $6, $7, $8, COALESCE($10::jsonb, '[]'), $11)
				ON CONFLICT (thread_id, repository) DO UPDATE SET epoch = excluded.epoch, branch = excluded.branch, saved = excluded.saved,
					packs = excluded.packs, bytes = excluded.bytes, left_out = excluded.left_out, saved_at = excluded.saved_at, states = excluded.states, held = excluded.held,
					looked_at = NULL, told = work.told AND work.branch = excluded.branch AND work.saved = excluded.saved`,
				l.ThreadID, l.Epoch, w.Branch, w.Saved, w.Packs, w.Bytes, w.LeftOut, w.SavedAt, w.Repository, w.States, w.Held); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `DELETE FROM work_packs p WHERE thread_id = $1 AND `+unnamed, l.ThreadID)
			return err
		})
	}()
	return pg.Wrap(err, "keep the work of thread %d", l.ThreadID)
}

// writePack writes a pack that nobody reads before a row of work names it: one piece and one thread at a time, to
// leave connections for others.
func (s *Store) writePack(ctx context.Context, threadID int64, id uuid.UUID, pack io.Reader) error {
	buf := make([]byte, maxPart)
	for part := 0; ; part++ {
		n, err := io.ReadFull(pack, buf)
		if n > 0 {
			if err := s.writePart(ctx, threadID, id, part, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (s *Store) writePart(ctx context.Context, threadID int64, pack uuid.UUID, part int, data []byte) error {
	select {
	case s.packing <- struct{}{}:
		defer func() { <-s.packing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err := s.db.Exec(ctx, `INSERT INTO work_packs (thread_id, pack, part, data) VALUES ($1, $2, $3, $4)`, threadID, pack, part, data)
	return err
}
