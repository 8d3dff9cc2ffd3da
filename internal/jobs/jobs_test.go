package jobs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"deckhand/internal/jobs"
	"deckhand/internal/playground/postgres"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
)

// work is what the tests schedule.
type work struct {
	What string `json:"what"`
}

func (work) Kind() string { return "test_work" }

// run runs a runner, as the bot's role, until the test ends, or until stop. told are the lines that it
// writes to the log about itself.
func run(t *testing.T, url string, handlers ...jobs.Handler) (r *jobs.Runner, told <-chan string, stop func()) {
	t.Helper()
	lines := make(chan string, 100)
	log := zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(nowhere{}), zapcore.DebugLevel),
		zap.Hooks(func(e zapcore.Entry) error {
			if strings.HasPrefix(e.Message, "the job queue") {
				lines <- e.Message
			}
			return nil
		}))
	r, err := jobs.New(storetest.Bot(url), log, handlers...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return r, lines, stop
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// await waits for an event.
func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(waittest.Limit):
		t.Fatalf("%s: nothing in %s", what, waittest.Limit)
		panic("unreachable")
	}
}

const (
	broken = "the job queue (deadlines, reminders, digests) does not work; it is tried again and again"
	mended = "the job queue (deadlines, reminders, digests) works again"
)

// TestAJobIsDoneOnce: two replicas schedule it, and either may do it.
func TestAJobIsDoneOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	at := time.Now().Add(-time.Minute)
	schedule := func(what string) {
		t.Helper()
		if err := s.Schedule(t.Context(), pg.Job{Args: work{what}, At: at, Once: true}); err != nil {
			t.Fatal(err)
		}
	}
	schedule("one")
	schedule("one")
	var mu sync.Mutex
	var did []jobs.Job[work]
	done := make(chan struct{}, 10)
	do := func(_ context.Context, j jobs.Job[work]) error {
		mu.Lock()
		defer mu.Unlock()
		did = append(did, j)
		done <- struct{}{}
		return nil
	}
	_, _, stopOne := run(t, url, jobs.Handle(do))
	_, _, stopTwo := run(t, url, jobs.Handle(do))
	await(t, "the first job", done)
	// What was done is known, so that it is not scheduled anew.
	schedule("one")
	// Once another has been done, a second run of the first would have too.
	schedule("two")
	await(t, "the second job", done)
	stopOne()
	stopTwo()
	if diff := cmp.Diff([]jobs.Job[work]{{Args: work{"one"}, Attempt: 1}, {Args: work{"two"}, Attempt: 1}}, did); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// TestAJobThatFailsIsDoneAgain, and one that is put off is no failure.
func TestAJobThatFailsIsDoneAgain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	attempts := make(chan int, 10)
	putOff := true
	run(t, url, jobs.Handle(func(_ context.Context, j jobs.Job[work]) error {
		attempts <- j.Attempt
		switch {
		case putOff:
			putOff = false
			return jobs.Again(time.Second)
		case j.Attempt == 1:
			return errors.New("not yet")
		}
		return nil
	}))
	s := storetest.Open(t, url, store.Options{})
	if err := s.Schedule(t.Context(), pg.Job{Args: work{"it"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 1, 2} {
		if got := await(t, "an attempt", attempts); got != want {
			t.Fatalf("attempt %d, want %d", got, want)
		}
	}
}

// TestJobsInHandEndBeforeTheRunner.
func TestJobsInHandEndBeforeTheRunner(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	begun, end := make(chan struct{}), make(chan struct{})
	var interrupted error
	_, _, stop := run(t, url, jobs.Handle(func(ctx context.Context, _ jobs.Job[work]) error {
		close(begun)
		<-end
		interrupted = ctx.Err()
		return nil
	}))
	s := storetest.Open(t, url, store.Options{})
	if err := s.Schedule(t.Context(), pg.Job{Args: work{"it"}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the job", begun)
	time.AfterFunc(100*time.Millisecond, func() { close(end) })
	stop()
	if interrupted != nil {
		t.Errorf("the job was interrupted: %v", interrupted)
	}
	var state string
	query(t, url, `SELECT state::text FROM river_job`, &state)
	if state != "completed" {
		t.Errorf("the job is %s", state)
	}
}

// TestJobsStartOnceTheirTablesAreThere.
func TestJobsStartOnceTheirTablesAreThere(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.Exec(t, url, `DROP TABLE river_notification; ALTER TABLE river_job RENAME TO elsewhere`)
	done := make(chan struct{})
	r, told, _ := run(t, url, jobs.Handle(func(context.Context, jobs.Job[work]) error {
		close(done)
		return nil
	}))
	if line := await(t, "the trouble", told); line != broken {
		t.Fatalf("the log says %q", line)
	}
	if s := r.State(); !s.Down() || s.Cure != "run `bot migrate up`" || s.Err.Error() != "the database has no river_job, river_notification" {
		t.Errorf("state %+v", s)
	}
	storetest.Exec(t, url, `ALTER TABLE elsewhere RENAME TO river_job; CREATE UNLOGGED TABLE river_notification (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz DEFAULT now() NOT NULL, payload text NOT NULL, topic text NOT NULL)`)
	storetest.LetBotIn(t, url)
	if line := await(t, "the end of the trouble", told); line != mended {
		t.Fatalf("the log says %q", line)
	}
	if s := r.State(); !s.Up {
		t.Errorf("state %+v", s)
	}
	if err := storetest.Open(t, url, store.Options{}).Schedule(t.Context(), pg.Job{Args: work{"it"}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the job", done)
}

// TestAMissingGrantIsNamed, and what the cure says cures.
func TestAMissingGrantIsNamed(t *testing.T) {
	t.Parallel()
	owner := storetest.URL(t)
	role, url := storetest.Role(t, owner, "")
	storetest.Exec(t, owner, `GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO `+role+`; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO `+role+`;
		GRANT DELETE ON river_job, river_queue, river_notification TO `+role+`; REVOKE UPDATE ON river_job FROM `+role)
	done := make(chan struct{})
	r, told, _ := run(t, url, jobs.Handle(func(context.Context, jobs.Job[work]) error {
		close(done)
		return nil
	}))
	await(t, "the trouble", told)
	state := r.State()
	if want := "the role " + role + " has no right to UPDATE on river_job, DELETE on river_leader"; state.Err == nil || state.Err.Error() != want {
		t.Errorf("error %v, want %s", state.Err, want)
	}
	_, grants, ok := strings.Cut(state.Cure, "as the owner of the tables: ")
	if !ok {
		t.Fatalf("the cure is %q", state.Cure)
	}
	storetest.Exec(t, owner, grants)
	if line := await(t, "the end of the trouble", told); line != mended {
		t.Fatalf("the log says %q", line)
	}
	if err := storetest.Open(t, url, store.Options{}).Schedule(t.Context(), pg.Job{Args: work{"it"}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the job", done)
}

// TestADeadlineOutlivesPostgres: it is asked, the server goes before the time is up,
// and comes back after.
func TestADeadlineOutlivesPostgres(t *testing.T) {
	t.Parallel()
	storetest.URL(t) // skips where there is no PostgreSQL
	options := postgres.Options{Dir: t.TempDir()}
	server, err := postgres.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	url := server.URL()
	if _, err := pg.MigrateUp(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	storetest.LetBotIn(t, url)
	s := storetest.Open(t, url, store.Options{Reminders: []time.Duration{time.Hour}})
	expired := make(chan approvals.Approval, 1)
	r, told, stop := run(t, url, jobs.Handle(func(ctx context.Context, j jobs.Job[approvals.Deadline]) error {
		a, ok, err := s.ExpireApproval(ctx, j.Args.ApprovalID)
		if ok {
			expired <- a
		}
		return err
	}))
	a := storetest.Asked(t, s, 3*time.Second)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if line := await(t, "the trouble", told); line != broken {
		t.Fatalf("the log says %q", line)
	}
	if s := r.State(); !s.Down() || s.Cure == "" {
		t.Errorf("state %+v", s)
	} else {
		t.Logf("while PostgreSQL is away: %v; cure: %s", s.Err, s.Cure)
	}
	if server, err = postgres.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		s.Close()
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if line := await(t, "the end of the trouble", told); line != mended {
		t.Fatalf("the log says %q", line)
	}
	if got := await(t, "the deadline", expired); got.ID != a.ID || got.Status != approvals.Expired {
		t.Errorf("ended: %+v", got)
	}
}

// TestAnApprovalIsNotAskedWithoutItsDeadline: both are written, or neither.
func TestAnApprovalIsNotAskedWithoutItsDeadline(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{Reminders: []time.Duration{time.Minute, time.Hour, 48 * time.Hour}})
	a := storetest.Asked(t, s, 24*time.Hour)
	var kinds string
	query(t, url, `SELECT string_agg(format('%s %s', kind, args), '; ' ORDER BY scheduled_at) FROM river_job WHERE state = 'scheduled'`, &kinds)
	id := `"approval_id": "` + a.ID + `"}`
	if want := `approval_reminder {"stage": 0, ` + id + `; approval_reminder {"stage": 1, ` + id + `; approval_deadline {` + id; kinds != want {
		t.Errorf("scheduled %s, want %s", kinds, want)
	}

	storetest.Exec(t, url, `ALTER TABLE river_job ADD CHECK (kind <> 'approval_deadline') NOT VALID`)
	lease := threads.Lease{ThreadID: a.ThreadID, Owner: "replica-1", Epoch: 1}
	a.ID, a.RequestID, a.Input = "second", "r2", []byte(`{"command":"pwd"}`)
	if _, err := s.Ask(t.Context(), lease, a); err == nil {
		t.Error("an approval was asked without its deadline")
	}
	withoutJobs, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer withoutJobs.Close()
	if _, err := withoutJobs.Ask(t.Context(), lease, a); err == nil || !strings.Contains(err.Error(), "without a job inserter") {
		t.Errorf("asked through a store that cannot schedule: %v", err)
	}
	var n string
	query(t, url, `SELECT count(*)::text FROM approvals`, &n)
	if n != "1" {
		t.Errorf("%s approvals are there", n)
	}
}

func TestWhatCannotBeARunner(t *testing.T) {
	t.Parallel()
	if _, err := jobs.New("postgres://bot:hunter2@[bad", zap.NewNop()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad URL: %v", err)
	}
	twice := jobs.Handle(func(context.Context, jobs.Job[work]) error { return nil })
	if _, err := jobs.New("postgres://bot@127.0.0.1/x", zap.NewNop(), twice, twice); err == nil || !strings.Contains(err.Error(), "test_work") {
		t.Errorf("two handlers for one kind: %v", err)
	}
}

func query(t *testing.T, url, sql string, into ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it only reads
	if err := conn.QueryRow(t.Context(), sql).Scan(into...); err != nil {
		t.Fatal(err)
	}
}
