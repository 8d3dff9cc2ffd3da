// Package jobs runs scheduled jobs with River, whose queue is in our own database: [Inserter] writes a [pg.Job]
// in the transaction that causes it, and a [Runner] of any replica passes it to the [Handler] of its kind. A job
// whose handler fails, or whose replica dies, is retried.
//
// The package does not know what jobs are about: whoever schedules them owns their arguments and handlers.
//
// A runner works until its context ends. While the queue is unusable, because the database is unreachable or lacks
// River's tables or a grant, it retries (see [upkeep.Part]); jobs are rows, so nothing is lost. [Runner.Run] owns
// River's goroutines and returns after they have ended.
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

	"deckhand/internal/store/pg"
	"deckhand/internal/upkeep"
)

const (
	// atOnce is how many jobs this replica runs concurrently.
	atOnce = 4
	// stopGrace is how long running jobs may take when the runner stops.
	stopGrace = 5 * time.Second
	// jobTimeout is when a job's context ends, and stuckAfter when another replica takes over a dead one's job.
	jobTimeout = time.Minute
	stuckAfter = 5 * time.Minute
	// checkEvery is the interval of checks of the queue.
	checkEvery   = 10 * time.Second
	checkTimeout = 5 * time.Second
	// fetchEvery is the interval of fetches without a notice. River moves jobs whose time has come every five
	// seconds, and sends one then.
	fetchEvery = 5 * time.Second
)

// Job is a job for a handler.
type Job[A pg.JobArgs] struct {
	Args    A
	Attempt int // from 1
}

// Handler handles jobs of one kind.
type Handler struct {
	kind string
	add  func(*river.Workers) error
}

// Handle returns the handler that calls do for each job with arguments A. After an error the job is retried with
// growing delays, or as [Again] says. do may run concurrently for different jobs.
func Handle[A pg.JobArgs](do func(context.Context, Job[A]) error) Handler {
	var args A
	return Handler{kind: args.Kind(), add: func(w *river.Workers) error {
		return river.AddWorkerSafely(w, river.WorkFunc(func(ctx context.Context, j *river.Job[A]) error {
			return do(ctx, Job[A]{Args: j.Args, Attempt: j.Attempt})
		}))
	}}
}

// Again is a handler's result to run the job again after some time, on any replica: it is not a failure, and not
// counted as an attempt.
func Again(after time.Duration) error { return river.JobSnooze(after) }

// Runner runs jobs, together with those of other replicas.
type Runner struct {
	pool     *pgxpool.Config
	handlers []Handler
	log      *slog.Logger
	part     *upkeep.Part
}

// New returns a runner on the database at url. Jobs without a handler here are left to other replicas.
func New(url string, log *zap.Logger, handlers ...Handler) (*Runner, error) {
	pool, err := pg.ParsePool(url, true)
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
	return &Runner{pool: pool, handlers: handlers, log: riverLog(log), part: upkeep.New("the job queue (deadlines, reminders, digests)", pg.Cure, log)}, nil
}

// riverLog is quiet: River logs much that is irrelevant at the info level, and the same trouble every second.
func riverLog(log *zap.Logger) *slog.Logger {
	core, err := zapcore.NewIncreaseLevelCore(log.Core(), zapcore.WarnLevel)
	if err != nil {
		core = log.Core() // it is already quieter
	}
	core = zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	return slog.New(zapslog.NewHandler(core, zapslog.WithName(log.Name()), zapslog.AddStacktraceAt(slog.LevelError+1)))
}

// Run runs jobs until ctx ends. Running ones get a moment to finish.
func (r *Runner) Run(ctx context.Context) { r.part.Keep(ctx, r.run) }

// State says whether this replica runs jobs, and if not why.
func (r *Runner) State() upkeep.State { return r.part.State() }

// run runs jobs until something fails.
func (r *Runner) run(ctx context.Context, tell func(error)) error {
	pool, err := pgxpool.NewWithConfig(ctx, r.pool.Copy())
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	// River starts on an unusable database, and logs errors for ever.
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
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: atOnce}},
		FetchPollInterval: fetchEvery,
		JobTimeout:        jobTimeout, RescueStuckJobsAfter: stuckAfter, SoftStopTimeout: stopGrace,
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
