package agent

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/pulls"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/turns"
)

// authorTimeout bounds the look at somebody's profile before their turn.
const authorTimeout = 5 * time.Second

// turn is the running turn.
type turn struct {
	row        turns.Turn
	prompt     inbox.Prompt
	content    claude.Output
	desk       *ask.Desk
	spent      map[string]int64 // see TurnView.Spent; nil while there is none
	closer     closer
	heads      []string        // the commits that its repositories were at when it began
	span       context.Context //nolint:containedctx // until it ends
	end        context.CancelFunc
	stoppedBy  string        // who pressed Stop; empty while nobody did
	overBudget *spend.Status // it ended since it was refused a call
	unbegun    bool          // that was its first, and admins are asked: it waits for them like a prompt
	meter      *spend.Meter  // its process's
	expired    bool          // an approval's time ran out
	hung       bool          // it was killed for its silence
	stopLimit  *time.Timer   // kills a process that does not stop; nil until it is asked to
	wait       *wait         // nil while it does not only wait for people
	parked     bool          // it was parked: its part in the loop is over
	pulse      pulse
}

// stopping reports whether the turn has been told to end: nothing more is run or
// asked in it.
func (t *turn) stopping() bool { return t.stoppedBy != "" || t.expired }

// nextTurn begins the thread's next prompt, if there is one and the budgets admit
// it, starting the process if need be. A process that cannot be started fails the
// prompts.
func (w *worker) nextTurn(ctx context.Context) error {
	w.asleep = false
	if w.stopping.Load() {
		return nil // whoever has the thread next begins it
	}
	next, err := w.store.NextPrompt(ctx, w.threadID)
	if errors.Is(err, pg.ErrNotFound) {
		return nil
	}
	if err != nil && w.session != nil && ctx.Err() == nil {
		// Nothing was begun, and a process need not end for it: the next look asks again.
		w.log.Warn("look for the next prompt", zap.Error(err))
		return nil
	}
	if err != nil {
		return err
	}
	if w.tooEarly(next) {
		return nil
	}
	if next.Rewind != nil {
		if err := w.rewind(ctx, next); err != nil {
			return err
		}
		return w.nextTurn(ctx)
	}
	model, admission, err := w.accounts.Admit(ctx, w.heldLease(), w.thread, next)
	switch {
	case err != nil:
		return err
	case admission == spend.Waits:
		w.asleep = true
		return nil
	case admission == spend.Dropped:
		return w.nextTurn(ctx) // whoever comes next may have a budget
	}
	w.worksFor(next.UserID)
	defer w.actsInTurns()
	if err := w.ensureSession(ctx); err != nil {
		return w.startFailed(ctx, next, err, w.dropStopped, w.refuse)
	}
	if err := w.session.steer(ctx, model); mayPass(err) {
		w.stopSession(ctx, true)
		return w.startFailed(ctx, next, &startError{sentence: sentence(err), err: err}, w.dropStopped, w.refuse)
	} else if wrong, ok := errors.AsType[*steerError](err); ok {
		w.log.Error("have the session work as people want it", zap.Error(err))
		return w.refuse(ctx, wrong.sentence)
	} else if err != nil {
		return err
	}
	row, prompt, ok, err := w.store.BeginTurn(ctx, w.heldLease(), w.session.id, w.session.epoch)
	if err != nil || !ok {
		return err
	}
	if begun, err := w.beginWithFiles(ctx, row, prompt, prompt.UUID, prompt.Text, false); err != nil || begun {
		return err
	}
	return w.nextTurn(ctx)
}

// startFailed tries a prompt again later whose session could not be started, or ends it: by stopped if somebody stopped
// the thread, by refuse with a sentence for people if it is given up.
func (w *worker) startFailed(ctx context.Context, p inbox.Prompt, err error, stopped func(context.Context) error, refuse func(context.Context, string) error) error {
	if _, ok := errors.AsType[*stopError](err); ok {
		return stopped(ctx)
	}
	start, ok := errors.AsType[*startError](err)
	if !ok {
		return err
	}
	if later, err := w.tryLater(ctx, p, start); err != nil || later {
		return err
	}
	w.log.Error("start the session", zap.Error(start.err))
	return refuse(ctx, givenUp(p, start.sentence))
}

// beginWithFiles begins a turn whose prompt may have files: they are fetched first, beside the
// loop. A prompt that is nothing but files that cannot be had gets no answer but that.
func (w *worker) beginWithFiles(ctx context.Context, row turns.Turn, prompt inbox.Prompt, promptUUID, text string, shown bool) (begun bool, err error) {
	a, err := w.attach(ctx, prompt, shown)
	if _, ok := errors.AsType[*stopError](err); ok {
		return false, w.stopCold(ctx)
	}
	if err != nil {
		return false, err
	}
	refusal := a.refusal()
	if refusal != "" && a.taken == 0 && strings.HasSuffix(prompt.Text, NoWords) {
		return false, w.giveUp(ctx, row, TurnFailed, PromptFailed, refusal)
	}
	if row.Attempt == 1 { // else they were told
		if refusal != "" {
			w.say(ctx, refusal)
		}
		if prompt.ByItself {
			w.say(ctx, "Deckhand begins this by itself: "+pulls.Why(prompt.Text)+".")
		}
	}
	w.beginTurn(row, prompt, promptUUID, a.note+text, a.blocks...)
	return true, nil
}

func (w *worker) beginTurn(row turns.Turn, prompt inbox.Prompt, promptUUID, text string, files ...claude.Block) {
	w.acting.Store(&row.RequestedBy)
	w.turn = &turn{
		row: row, prompt: prompt, content: w.session.content.Next(), meter: w.session.meter,
		pulse: newPulse(w.limits.Quiet),
	}
	if w.project.ReachesForge() {
		w.turn.heads = w.place.Heads(w.thread, w.project)
	}
	ctx, cancel := context.WithTimeout(context.Background(), authorTimeout)
	defer cancel()
	if err := w.place.AskedBy(ctx, w.thread, w.project, prompt.UserID); err != nil {
		w.log.Error("have commits be by whoever asks", zap.Error(err))
	}
	w.turn.span, w.turn.end = context.WithCancel(context.Background())
	w.turn.desk = w.newDesk(w.turn, row)
	w.turn.meter.BeginTurn(row)
	w.session.journal.turn.Store(row.ID)
	w.place.Slots.Works(w)
	w.session.idle.Stop()
	w.front.MarkPrompt(prompt, PromptRunning)
	w.front.ShowQueue(w.threadID, nil)
	if prompt.Waited {
		w.accounts.ShowWait(prompt)
	}
	w.closeOffer()
	w.session.mirror.Begin()
	if !strings.HasPrefix(text, "/") { // a command of the CLI is one at the beginning alone
		text, w.session.recalls = w.session.recalls+text, ""
	}
	if err := w.session.proc.Prompt(promptUUID, append(slices.Clip(files), claude.Text(text))...); err != nil {
		w.log.Warn("write the prompt", zap.Error(err)) // the process has ended: onExit says why
	}
}

// onMessage folds what the CLI says into the turn and acts on it.
func (w *worker) onMessage(ctx context.Context, m claude.Message) error {
	if t := w.turn; t != nil {
		t.pulse.beat()
		if claude.IsCommandOutput(m) && !strings.HasPrefix(t.prompt.Text, "/") {
			return nil // of what the process was told before the turn, not of the turn
		}
		t.content = t.content.Fold(m)
		t.closer.heed(t.content.Items)
	}
	switch m := m.(type) {
	case *claude.HookCallback:
		w.session.ended.Store(0)
		if w.turn != nil {
			if why := w.noPerson(ctx, m); why != "" {
				return w.reply(ask.RefuseHook(w.session.proc, m, why))
			}
			return w.turn.desk.Hook(ctx, m)
		}
		return w.reply(ask.RefuseHook(w.session.proc, m, "No turn is running in this thread, so nobody can be asked. Wait for the next message."))
	case *claude.CanUseTool:
		if w.turn == nil {
			return w.reply(w.session.proc.Deny(m.RequestID, ask.Stopped, true))
		}
		if err := w.turn.desk.Permission(ctx, m); err != nil {
			return err
		}
	case *claude.CancelRequest:
		if w.turn != nil {
			if err := w.turn.desk.Withdrawn(ctx, m.RequestID); err != nil {
				return err
			}
		}
	case *claude.User:
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				w.result(b.ToolUseID)
				w.turn.spends(b.ToolUseID)
			}
		}
		w.session.journal.add(w.session.results(m, w.turn)...)
	case *claude.System:
		if m.Subtype == "init" { // its servers have been tried
			w.session.lookAtServers(ctx)
		}
	case *claude.ConversationReset:
		w.session.onReset()
	case *claude.Result:
		return w.onResult(ctx, m)
	case *claude.Silence:
		w.onSilence(m)
	}
	w.show()
	return nil
}

// onReset notes a /clear: the running total starts from zero, and the new session's
// id comes with a later message.
func (s *session) onReset() {
	s.totals.Reset()
	s.reset = true
}

// followReset begins the epoch that follows a /clear, in the session that the
// process has gone over to, so that the next process resumes that one.
func (s *session) followReset(ctx context.Context) error {
	if !s.reset {
		return nil
	}
	s.reset = false
	if id := s.proc.SessionID(); id != s.id {
		if err := s.store.NewSession(ctx, s.heldLease(), id, s.id); err != nil {
			return err
		}
		if err := s.store.MarkStarted(ctx, id); err != nil {
			return err
		}
		s.id, s.thread.SessionID, s.recalls = id, id, ""
		s.mirror.MoveTo(id)
	}
	s.say(ctx, "A new session begins here: it does not know what was said above. “sessions” lists the old one.")
	return s.newEpoch(ctx, 0)
}

// newEpoch begins an epoch in which the CLI's total starts at so many micro-USD.
func (s *session) newEpoch(ctx context.Context, from int64) (err error) {
	s.epoch, err = s.store.BeginEpoch(ctx, s.heldLease(), s.id, s.cliVersion, from)
	s.meter.MoveTo(s.id, s.epoch)
	return err
}

func (w *worker) onResult(ctx context.Context, r *claude.Result) error {
	w.session.meter.EndTurn()
	cost, more := int64(0), false
	if r.IsError {
		cost, more = w.session.meter.Settle(ctx, cutTime) // it may have left calls just now
	}
	told, err := w.session.cliTotals(ctx, r.Running)
	if err != nil {
		return err
	}
	if w.turn == nil {
		// A turn that nobody asked for, such as a background task's: none of its calls has
		// left.
		w.session.meter.Settle(ctx, 0)
		return w.addCLITotals(ctx, told)
	}
	if b := w.turn.meter.RefusedFor(); b != nil && r.IsError && r.APIErrorStatus == http.StatusPaymentRequired {
		w.turn.overBudget = b
		w.turn.unbegun = b.Ask && b.Model == "" && cost == 0 && !more && w.turn.row.Attempt == 1 && !w.turn.stopping()
		w.turn.content.Items = withoutLast(w.turn.content.Items, r.Text)
	}
	w.session.priceServers(w.turn)
	w.session.lookAtServers(ctx)
	state, problem := w.turn.outcome(r)
	if denied := w.turn.meter.DeniedFor(); denied != "" && state == TurnFailed && r.APIErrorStatus == http.StatusPaymentRequired {
		problem = denied
	}
	if state == TurnFailed && r.APIErrorStatus != 0 { // the problem tells it
		w.turn.content.Items = withoutLast(w.turn.content.Items, r.Text)
	}
	return w.endTurn(ctx, state, problem, r.NumTurns, told...)
}

// spends notes what a subagent has cost whose call has ended.
func (t *turn) spends(toolUseID string) {
	if t == nil {
		return
	}
	item, ok := t.content.Tool(toolUseID)
	if !ok {
		return
	}
	for _, task := range t.content.Tasks {
		if task.ToolUseID == toolUseID && task.Background {
			return // it goes on
		}
	}
	micro, ok := t.meter.Cost(t.content.AnswersBelow(item.ID))
	if !ok {
		return
	}
	if t.spent == nil {
		t.spent = map[string]int64{}
	}
	t.spent[toolUseID] = micro
}

// result notes that a call has its result.
func (w *worker) result(toolUseID string) {
	if w.turn != nil {
		w.turn.desk.Ended(toolUseID)
		return
	}
	w.session.proc.EndUse(toolUseID)
	w.session.meter.EndSearch(toolUseID)
}

// show shows people the turn: Frontend.ShowTurn is slackui/turns.go's, by way of chat/frontend.go.
func (w *worker) show() {
	if w.turn != nil {
		w.front.ShowTurn(w.view(w.turn))
	}
}

func (w *worker) view(t *turn) TurnView {
	steps, contained := t.desk.Steps()
	return TurnView{
		ID: t.row.ID, ThreadID: w.threadID, Thread: w.thread.Key(), Project: w.project.Name, Workspace: w.thread.Workspace,
		RequestedBy: t.row.RequestedBy, State: TurnRunning, Content: t.content,
		StartedAt: t.row.StartedAt, Waiting: len(t.desk.Open()), Cards: t.desk.Cards(), StoppedBy: t.stoppedBy,
		Quiet: t.quiet(), Effort: w.session.effortNow(), Granted: t.desk.Granted(), Spent: maps.Clone(t.spent), Held: t.meter.HeldFor(), Steps: steps, Contained: contained,
	}
}
