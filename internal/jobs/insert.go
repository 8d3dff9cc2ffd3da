package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"deckhand/internal/store/pg"
)

// Inserter writes jobs in callers' transactions. It holds no connection, and the zero value is ready for use.
type Inserter struct{}

var _ pg.JobInserter = Inserter{}

// insertOnly is River's client without a pool, which needs none to insert.
var insertOnly = sync.OnceValues(func() (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(nil), &river.Config{Logger: slog.New(slog.DiscardHandler)})
})

// InsertTx implements [pg.JobInserter].
func (Inserter) InsertTx(ctx context.Context, tx pgx.Tx, jobs []pg.Job) error {
	client, err := insertOnly()
	if err != nil {
		return fmt.Errorf("prepare River: %w", err)
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		o := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: j.Once}}
		if j.At.After(time.Now()) { // otherwise it would wait for the leader's next poll
			o.ScheduledAt = j.At
		}
		params[i] = river.InsertManyParams{Args: j.Args, InsertOpts: o}
	}
	if slices.ContainsFunc(jobs, func(j pg.Job) bool { return j.Once }) {
		_, err = client.InsertManyTx(ctx, tx, params)
	} else { // by COPY: half the time, without conflict handling
		_, err = client.InsertManyFastTx(ctx, tx, params)
	}
	return err
}
