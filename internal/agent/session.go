package agent

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/spend"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
	"deckhand/internal/transcript"
	"deckhand/internal/workspace"
)

// session is one live place.Process of the thread's session: one epoch of its ledger,
// until a /clear begins another.
type session struct {
	*leased
	id      string
	epoch   int
	stopped bool
	reset   bool // a /clear was seen whose epoch has not begun
	proc    place.Process
	meter   *spend.Meter
	totals  *claude.Totals // what the CLI itself says that it has spent
	journal *journal
	mirror  *transcript.Mirror
	recalls string // what its first prompt begins with
	// model, effort and mode are what it was told; empty is its own choice.
	model, effort, mode string
	// without are the MCP servers that it was started without, with the reason unless they were off, and servers
	// how they were seen last.
	without  map[string]string
	servers  []inbox.MCPServer
	content  claude.Output         // the last turn, which the next one follows
	actsFor  string                // as whom it acts at MCP servers
	idle     *time.Timer           // fires when it may hibernate; counts between turns
	messages <-chan claude.Message // closed when the process has ended and all is read
	stopPump context.CancelFunc
	pump     sync.WaitGroup // the pump, and requests that wait for the CLI
	// committed has a token when a turn has ended whose commits are to be published.
	committed chan struct{}
	// diffs has the ended turns whose commits are to be shown.
	diffs chan int64
	// unpublished is why they could not be, last, and unsaved what could not be saved of
	// what was not committed; the pump's, then whoever stops the session's.
	unpublished, unsaved string
	unsteered            string // what of what people chose was not taken, last; the worker's
	// began are the commits at which the thread's first turn began, if it is this session's, and ended the turn after which
	// nothing has used a tool; 0 for none.
	began map[string]string
	ended atomic.Int64
}

// ensureSession starts the thread's process if none runs, once there is a slot for it.
// Its error is what people may be told, as a [*startError], a [*stopError], or one that
// ends the worker.
func (w *worker) ensureSession(ctx context.Context) error {
	if err := w.checkDisk(ctx); err != nil {
		return err
	}
	if lacks, err := w.session.lacksServer(ctx); err != nil {
		return err
	} else if lacks || w.othersProcess() {
		w.stopSession(ctx, false)
	}
	if w.session != nil && !w.place.Missing(w.thread.Workspace) {
		return nil
	}
	w.stopSession(ctx, true) // one whose folder is gone can do nothing
	return w.interruptibly(ctx, func(ctx context.Context) error {
		if err := w.place.Slots.Acquire(ctx, w, w.showPlace); err != nil {
			return err
		}
		w.front.ShowPlace(w.thread, Served) // an earlier process may have shown another
		if err := w.startSession(ctx); err != nil {
			w.place.Slots.Release(w)
			return err
		}
		return nil
	})
}

// startError is a start that failed for a reason that people can be told.
type startError struct {
	sentence string
	err      error
}

func (e *startError) Error() string { return "start the session: " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// openWorkspace makes the thread's folder if it is missing.
func (w *worker) openWorkspace(ctx context.Context) error {
	dir, told, err := w.place.Workspace(ctx, w.thread, w.project)
	for taken := (*workspace.TakenError)(nil); errors.As(err, &taken) && ctx.Err() == nil; {
		// Its name is kept before anything has it.
		if err := w.store.SetBranch(ctx, w.heldLease(), taken.Free); err != nil {
			return err
		}
		w.thread.Branch = taken.Free
		dir, told, err = w.place.Workspace(ctx, w.thread, w.project)
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &startError{sentence: "The workspace is not ready: " + err.Error() + ". Ask an admin to look at the project in deckhand.yaml.", err: err}
	}
	if dir != w.thread.Workspace || w.thread.WorkspaceReplica != w.replica {
		if err := w.store.SetWorkspace(ctx, w.heldLease(), dir); err != nil {
			return err
		}
		w.thread.Workspace, w.thread.WorkspaceReplica = dir, w.replica
	}
	for _, sentence := range told {
		w.say(ctx, sentence)
	}
	return nil
}

func (w *worker) startSession(ctx context.Context) error {
	if err := w.openWorkspace(ctx); err != nil {
		return err
	}
	began := map[string]string{}
	if heads := w.place.Heads(w.thread, w.project); len(heads) > 0 && w.thread.SessionID == "" && w.thread.ForkedBranch == "" && w.project.Setup.Run == "" {
		for i, q := range w.project.All() {
			began[q.Of] = heads[i]
		}
	}
	var err error
	resume, follows := false, w.thread.SessionID != ""
	if !follows {
		if err := w.newSession(ctx); err != nil {
			return err
		}
	} else if resume, err = w.store.SessionStarted(ctx, w.thread.SessionID); err != nil {
		return err
	}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	if resume {
		if err := w.restore(ctx); err != nil {
			return err
		}
	}
	if err := w.place.Starts.Acquire(ctx, w.showWait); err != nil {
		return err
	}
	defer w.place.Starts.Release()
	project, without, err := w.withServers(ctx)
	if err != nil {
		return err
	}
	w.withTrusted(ctx, &project)
	m := w.newMeter()
	proc, err := w.place.Start(ctx, w.thread, project, resume, patience(w.tries), m, w.log)
	if exit, ok := errors.AsType[*claude.ExitError](err); ok {
		switch {
		case exit.Reason == claude.ExitUnknownSession && resume:
			// It never came to write its transcript, or that is gone and there is no copy.
			if err := w.startAnew(ctx); err != nil {
				m.Close()
				return err
			}
			resume = false
			proc, err = w.place.Start(ctx, w.thread, project, false, patience(w.tries), m, w.log)
		case exit.Reason == claude.ExitIDInUse && !resume:
			resume = true
			proc, err = w.place.Start(ctx, w.thread, project, true, patience(w.tries), m, w.log)
		}
	}
	if err != nil {
		m.Close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &startError{sentence: sentence(err), err: err}
	}
	if err := w.adopt(ctx, proc, m, resume, follows); err != nil {
		return err
	}
	w.session.without, w.session.actsFor, w.session.began = without, w.actsFor, began
	return nil
}

// startAnew gives the thread a new session in the place of one that cannot be resumed, and
// says so if something was said in that one.
func (h *leased) startAnew(ctx context.Context) error {
	spoke, err := h.store.SessionSpoke(ctx, h.thread.SessionID)
	if err != nil {
		return err
	}
	if spoke {
		h.say(ctx, "The earlier conversation of this thread cannot be resumed, so it starts anew. It is given your messages and the last answers as a record; what was done in between is not known to it.")
	}
	id := uuid.NewString()
	if err := h.store.StartAnew(ctx, h.heldLease(), id, h.thread.SessionID); err != nil {
		return err
	}
	h.thread.SessionID = id
	return nil
}

func (h *leased) newSession(ctx context.Context) error {
	id := uuid.NewString()
	if err := h.store.NewSession(ctx, h.heldLease(), id, ""); err != nil {
		return err
	}
	h.thread.SessionID = id
	return nil
}

// adopt begins an epoch for an initialized process and reads its messages from
// here on. It may have resumed its session, and that may follow another.
func (w *worker) adopt(ctx context.Context, proc place.Process, m *spend.Meter, resumed, follows bool) (err error) {
	defer func() {
		if err != nil {
			proc.Kill()
			<-proc.Done()
			m.Close()
		}
	}()
	baseline, err := proc.Baseline(ctx)
	if err != nil {
		proc.Kill()
		<-proc.Done()
		if exit := proc.Exit(); exit != nil && exit.Reason == claude.ExitLimit {
			err = exit
		}
		return &startError{sentence: sentence(err), err: err}
	}
	epoch, err := w.store.BeginEpoch(ctx, w.heldLease(), w.thread.SessionID, w.cliVersion, baseline.TotalMicroUSD)
	if err != nil {
		return err
	}
	recalls := ""
	if follows && !resumed {
		if recalls, err = w.recalls(ctx); err != nil {
			return err
		}
	}
	m.MoveTo(w.thread.SessionID, epoch)
	messages := make(chan claude.Message)
	t, p := w.thread, w.project
	pumpCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{
		leased: w.leased,
		id:     w.thread.SessionID, epoch: epoch, proc: proc, meter: m, totals: claude.NewTotals(baseline),
		idle: time.NewTimer(w.limits.IdleTimeout), messages: messages, stopPump: stop,
		journal: newJournal(w.store, w.log, func() []string { return w.place.Heads(t, p) }), model: w.project.Model, mode: cmp.Or(w.project.PermissionMode, ModeDefault),
		committed: make(chan struct{}, 1), diffs: make(chan int64, 1), recalls: recalls, mirror: w.newMirror(w.thread.SessionID, resumed),
	}
	s.pump.Go(func() { s.journal.run(pumpCtx) })
	s.pump.Go(func() { s.mirror.Run(pumpCtx) })
	proc.OnGit(func(e gitway.Event) { s.journal.add(s.journal.git(t.TeamID, t.ID, e)) })
	proc.OnAsk(asking{w, s})
	s.pump.Go(func() { s.publishCommitted(pumpCtx, t, p) })
	s.pump.Go(func() { s.saveDiffs(pumpCtx, t.Branch) })
	s.pump.Go(func() { s.pumpMessages(pumpCtx, messages) })
	w.session = s
	w.setLive(proc)
	w.place.Slots.Idle(w)
	w.log.Info("session started", zap.String("session", s.id), zap.Int("epoch", epoch), zap.Int("pid", proc.PID()))
	return nil
}

// publishCommitted publishes the branch after each turn that may have committed something, and
// tries again later what fails, until ctx ends.
func (s *session) publishCommitted(ctx context.Context, t threads.Thread, p place.Project) {
	var again <-chan time.Time
	for pause, within := publishPause, workspace.PublishTime; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			return
		case <-s.committed:
			pause = publishPause
		case <-again:
			pause = min(2*pause, publishMost)
		}
		if again = nil; s.publish(ctx, t, p, within) {
			within = workspace.PublishTime
		} else {
			again, within = time.After(pause), min(2*within, publishMost)
		}
	}
}

// saveDiffs saves what turns have committed, until ctx ends.
func (s *session) saveDiffs(ctx context.Context, branch string) {
	for {
		select {
		case <-ctx.Done():
			return
		case turn := <-s.diffs:
			s.saveDiff(ctx, turn, branch)
		}
	}
}

// pumpMessages hands the process's messages to the worker. It may wait for that one: the
// process's queue never makes its reader wait.
func (s *session) pumpMessages(ctx context.Context, messages chan<- claude.Message) {
	defer close(messages)
	for {
		m, err := s.proc.Next(ctx)
		if err != nil {
			return
		}
		select {
		case messages <- m:
		case <-ctx.Done():
			return
		}
	}
}

// stopSession ends the process, politely unless it was fenced off, and waits for
// everything that it had started.
func (w *worker) stopSession(ctx context.Context, now bool) {
	s := w.session
	if s == nil {
		return
	}
	if now {
		s.proc.Kill()
	} else if err := s.proc.Stop(ctx); err != nil {
		w.log.Warn("stop the CLI", zap.Error(err))
		s.proc.Kill()
	}
	<-s.proc.Done()
	s.meter.Close()
	s.meter.Settle(ctx, 0)
	if s.meter.Busy() {
		w.ended.Add(s.meter)
	}
	if w.turn != nil {
		w.turn.desk.Gone()
	}
	s.recordWeb(w.turn)
	s.stopPump()
	s.pump.Wait()
	s.mirror.Last(ctx)
	if !now {
		s.publish(ctx, w.thread, w.project, workspace.PublishTime)
		w.clearInbox()
	}
	s.idle.Stop()
	s.stopped = true
	w.session = nil
	w.setLive(nil)
	w.place.Slots.Release(w)
	w.log.Info("session stopped", zap.String("session", s.id), zap.NamedError("exit", s.proc.Exit()))
}

// What could not be published or saved is tried again after publishPause, which doubles up to
// publishMost, until the session stops: nobody else would save it before its next turn ends. The time limit of each try
// doubles, too: on a busy machine a fixed one might never suffice.
const (
	publishPause = 30 * time.Second
	publishMost  = 10 * time.Minute
)

// publish brings the thread's branch to where people look for it, and saves what is not
// committed. They are told once what is not there, and why. It reports false if it is to be
// tried again.
func (s *session) publish(ctx context.Context, t threads.Thread, p place.Project, within time.Duration) (ok bool) {
	err := s.place.Publish(ctx, t, p, within)
	if ctx.Err() != nil {
		return true // the next one does it
	}
	ok = err == nil
	why := ""
	if err != nil {
		s.log.Warn("publish the thread's branch", zap.Error(err))
		why = workspace.Unpublished(err)
	}
	s.sayOnce(t, &s.unpublished, why)
	left, err := s.place.Save(ctx, t, p, within, s.end())
	if ctx.Err() != nil || errors.Is(err, threads.ErrFenced) {
		return true // whoever has the thread now saves it
	}
	if err != nil {
		s.log.Warn("save what the thread has not committed", zap.Error(err))
		left = workspace.Unsaved(err)
	}
	s.sayOnce(t, &s.unsaved, left)
	return ok && err == nil
}

// end is of which turn's end the folder is the state now; nil if it is none's.
func (s *session) end() *workspace.End {
	turn := s.ended.Load()
	if turn == 0 {
		return nil
	}
	return &workspace.End{Turn: turn, Began: s.began, Still: func() bool { return s.ended.Load() == turn }}
}

// request runs a control request that may take its time beside the loop.
func (s *session) request(ctx context.Context, log *zap.Logger, what string, fn func(context.Context) error) {
	ctx = context.WithoutCancel(ctx) // bounded by the request's own limit
	s.pump.Go(func() {
		if err := fn(ctx); err != nil {
			log.Warn(what, zap.Error(err))
		}
	})
}

// sentence is what people are told about an error of the CLI.
func sentence(err error) string {
	if exit, ok := errors.AsType[*claude.ExitError](err); ok {
		return exit.Sentence()
	}
	if said := place.Sentence(err); said != "" {
		return said
	}
	if errors.Is(err, claude.ErrNoAnswer) {
		return "Claude Code did not answer in time. Try again; if it happens again, ask an admin to look at the bot's log."
	}
	return "Claude Code could not be started. Ask an admin to look at the bot's log at " + time.Now().UTC().Format("15:04 MST") + "."
}
