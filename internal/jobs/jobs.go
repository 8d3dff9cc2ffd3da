// Package jobs has done what was scheduled for later, by River, whose queue is in our
// own database: [store.Job] is written through [Inserter] in the transaction that it
// follows from, and a [Runner] of any replica gives it to the [Handler] that was
// registered for its kind. A job whose handler fails, or whose replica dies, is done
// again.
//
// The package does not know what jobs are about: their arguments and handlers belong
// to whoever schedules them.
//
// A runner works for as long as its context lives. When the queue cannot be worked
// on, because the database is away or lacks River's tables or a grant, it tries again
// until it can (see [upkeep.Part]); nothing is lost meanwhile, as jobs are rows.
// [Runner.Run] owns River's goroutines and returns after they have ended.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"deckhand/internal/store"
	"deckhand/internal/upkeep"
)

const (
	// atOnce is how many jobs this replica does at the same time.
	atOnce = 4
	// stopGrace is what jobs in hand get to end by themselves when the runner stops.
	stopGrace = 5 * time.Second
	// jobTimeout is after how long a job's context ends, and stuckAfter when a job
	// whose replica has died is given to another.
	jobTimeout = time.Minute
	stuckAfter = 5 * time.Minute
	// checkEvery is how often is looked whether the queue can still be worked on.
	checkEvery   = 10 * time.Second
	checkTimeout = 5 * time.Second
)

// Job is a job in a handler's hands.
type Job[A store.JobArgs] struct {
	Args    A
	Attempt int // from 1
}

// Handler does the jobs of one kind.
type Handler struct {
	kind string
	add  func(*river.Workers) error
}

// Handle returns the handler that calls do for each job with arguments A. An error
// has the job done again, later each time; [Again] says when. do may run several
// times at once, for different jobs.
func Handle[A store.JobArgs](do func(context.Context, Job[A]) error) Handler {
	var args A
	return Handler{kind: args.Kind(), add: func(w *river.Workers) error {
		return river.AddWorkerSafely(w, river.WorkFunc(func(ctx context.Context, j *river.Job[A]) error {
			return do(ctx, Job[A]{Args: j.Args, Attempt: j.Attempt})
		}))
	}}
}

// Again is what a handler returns for a job that is to be done after some time, by
// whichever replica: it is no failure, and no attempt is counted.
func Again(after time.Duration) error { return river.JobSnooze(after) }

// Runner works on jobs, together with those of other replicas.
type Runner struct {
	pool     *pgxpool.Config
	handlers []Handler
	log      *slog.Logger
	part     *upkeep.Part
}

// New returns a runner that works on the database at url. Jobs of kinds that have no
// handler are left to replicas that have one.
func New(url string, log *zap.Logger, handlers ...Handler) (*Runner, error) {
	pool, err := store.ParsePool(url, true)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, h := range handlers {
		if known[h.kind] {
			return nil, fmt.Errorf("jobs of kind %s have two handlers", h.kind)
		}
		known[h.kind] = true
	}
	return &Runner{pool: pool, handlers: handlers, log: riverLog(log), part: upkeep.New("the job queue (deadlines, reminders, digests)", store.Cure, log)}, nil
}

// riverLog is quiet: River tells much that is nobody's business at the level of
// information, and the same trouble every second.
func riverLog(log *zap.Logger) *slog.Logger {
	core, err := zapcore.NewIncreaseLevelCore(log.Core(), zapcore.WarnLevel)
	if err != nil {
		core = log.Core() // it is quieter than that already
	}
	core = zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	return slog.New(zapslog.NewHandler(core, zapslog.WithName(log.Name()), zapslog.AddStacktraceAt(slog.LevelError+1)))
}

// Run works on jobs until ctx ends. Those in hand get a moment to end.
func (r *Runner) Run(ctx context.Context) { r.part.Keep(ctx, r.run) }

// State says whether this replica works on jobs, and if not why.
func (r *Runner) State() upkeep.State { return r.part.State() }

// run works until something is wrong.
func (r *Runner) run(ctx context.Context, tell func(error)) error {
	pool, err := pgxpool.NewWithConfig(ctx, r.pool.Copy())
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	// River starts on what it cannot work with, and complains for ever.
	if err := check(ctx, pool); err != nil {
		return err
	}
	workers := river.NewWorkers()
	for _, h := range r.handlers {
		if err := h.add(workers); err != nil {
			return fmt.Errorf("register the handler of %s: %w", h.kind, err)
		}
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger: r.log, Workers: workers, FetchOnlyKnownKinds: true,
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: atOnce}},
		JobTimeout: jobTimeout, RescueStuckJobsAfter: stuckAfter, SoftStopTimeout: stopGrace,
		ReindexerIndexNames: []string{}, // none: the bot's role need not own them, and they are small
	})
	if err != nil {
		return fmt.Errorf("prepare River: %w", err)
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	if err := client.Start(working); err != nil {
		return fmt.Errorf("start River: %w", err)
	}
	defer func() {
		stop()
		<-client.Stopped()
	}()
	tell(nil)
	look := time.NewTicker(checkEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-client.Stopped():
			return errors.New("the job queue has stopped by itself")
		case <-look.C:
			if err := check(ctx, pool); err != nil {
				tell(err) // River may take long to stop now
				return err
			}
		}
	}
}
