package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
)

// maxAttempts is how many processes may work on one prompt: one that kills every
// process must not do so for ever.
const maxAttempts = 3

// turn is the running turn.
type turn struct {
	row        store.Turn
	prompt     store.Prompt
	promptUUID string // by which the CLI knows this attempt at it
	content    claude.Output
	asked      map[string]store.Approval // approvals that the CLI waits for, by our id
	cwd        map[string]string         // where a tool call runs, by its id
	granted    map[string]Grant          // see Turn.Granted
	card       openCard
	cards      []string          // all that it has shown
	breaks     []int             // see Turn.Breaks
	uses       []use             // tool calls that run
	reached    map[string]*reach // hosts, by the input of the call that asks about each
	asks       int               // how many of them people were asked about
	span       context.Context   //nolint:containedctx // until it ends
	end        context.CancelFunc
	stoppedBy  string        // who pressed Stop; empty while nobody did
	overBudget *BudgetStatus // it ended since it was refused a call
	meter      *meter        // its process's
	expired    bool          // an approval's time ran out
	hung       bool          // it was killed for its silence
	stopLimit  *time.Timer   // kills a process that does not stop; nil until it is asked to
}

// stopping reports whether the turn has been told to end: nothing more is run or
// asked in it.
func (t *turn) stopping() bool { return t.stoppedBy != "" || t.expired }

// openCard is the message that shows the turn's last requests.
type openCard struct {
	id       string // see store.Approval.CardID
	items    int    // how much the turn had said when it was posted
	requests int
}

// nextTurn begins the thread's next prompt, if there is one and the budgets admit
// it, starting the process if need be. A process that cannot be started fails the
// prompts.
func (w *worker) nextTurn(ctx context.Context) error {
	w.asleep = false
	next, err := w.books.NextPrompt(ctx, w.threadID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	model, admission, err := w.admit(ctx, next)
	switch {
	case err != nil:
		return err
	case admission == waits:
		w.asleep = true
		return nil
	case admission == dropped:
		return w.nextTurn(ctx) // whoever comes next may have a budget
	}
	if err := w.ensureSession(ctx); err != nil {
		return w.startFailed(ctx, err)
	}
	if err := w.useModel(ctx, model); err != nil {
		w.log.Error("use the model that a budget asks for", zap.Error(err))
		return w.refuse(ctx, "An admin chose a cheaper model for the rest of the budget's period, and Claude Code does not take it. Ask an admin to check cheaper_model in deckhand.yaml.")
	}
	row, prompt, ok, err := w.books.BeginTurn(ctx, w.heldLease(), w.session.id, w.session.epoch)
	if err != nil || !ok {
		return err
	}
	w.beginTurn(row, prompt, prompt.UUID, prompt.Text)
	return nil
}

func (w *worker) startFailed(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*stopError](err); ok {
		return w.dropStopped(ctx)
	}
	start, ok := errors.AsType[*startError](err)
	if !ok {
		return err
	}
	w.log.Error("start the session", zap.Error(start.err))
	return w.refuse(ctx, start.sentence)
}

func (w *worker) beginTurn(row store.Turn, prompt store.Prompt, promptUUID, text string) {
	w.turn = &turn{
		row: row, prompt: prompt, promptUUID: promptUUID, content: w.session.content.Next(), meter: w.session.meter,
		asked: map[string]store.Approval{}, cwd: map[string]string{}, granted: map[string]Grant{}, reached: map[string]*reach{},
	}
	w.turn.span, w.turn.end = context.WithCancel(context.Background())
	w.turn.meter.begin(row)
	w.session.journal.turn.Store(row.ID)
	w.slots.rest(w, false)
	w.session.idle.Stop()
	w.front.MarkPrompt(prompt, PromptRunning)
	if prompt.Waited {
		w.front.ShowWait(prompt.InboxID)
	}
	if w.offer != 0 {
		w.front.CloseOffer(w.offer)
		w.offer = 0
	}
	if err := w.session.proc.Prompt(promptUUID, claude.Text(text)); err != nil {
		w.log.Warn("write the prompt", zap.Error(err)) // the process has ended: onExit says why
	}
}

// recover goes on with the turn that a dead process of this thread left running.
func (w *worker) recover(ctx context.Context) error {
	old, prompt, err := w.books.RunningTurn(ctx, w.threadID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	w.log.Info("continue an interrupted turn", zap.Int64("turn", old.ID), zap.Int("attempt", old.Attempt))
	if _, err := w.books.EndLostCalls(ctx); err != nil {
		return err
	}
	if old.Attempt >= maxAttempts {
		return w.giveUp(ctx, old, prompt, TurnFailed, fmt.Sprintf("This was interrupted %d times and is given up. Send it again to try once more.", old.Attempt))
	}
	if err := w.ensureSession(ctx); err != nil {
		if _, ok := errors.AsType[*stopError](err); ok {
			return w.stopCold(ctx)
		}
		start, ok := errors.AsType[*startError](err)
		if !ok {
			return err
		}
		w.log.Error("start the session", zap.Error(start.err))
		return w.giveUp(ctx, old, prompt, TurnFailed, start.sentence)
	}
	row, err := w.books.ContinueTurn(ctx, w.heldLease(), old, w.session.id, w.session.epoch)
	if err != nil {
		return err
	}
	w.front.Abandon(old.ID, "Deckhand restarted here; the work goes on below.")
	w.beginTurn(row, prompt, attemptUUID(prompt.UUID, row.Attempt),
		"[Deckhand was restarted while you worked on the message below. Look at what you have done already, then go on with it. A tool call that was not answered may be made again.]\n\n"+prompt.Text)
	return nil
}

// giveUp ends a turn that a dead process left running: it has failed, or people have
// stopped it.
func (w *worker) giveUp(ctx context.Context, old store.Turn, prompt store.Prompt, state TurnState, problem string) error {
	ended, err := w.books.FinishTurn(ctx, w.heldLease(), store.FinishedTurn{
		ID: old.ID, State: string(state), Problem: problem, Approvals: store.ApprovalInterrupted,
	})
	if err != nil {
		return err
	}
	w.showEnded(ended)
	w.front.Abandon(old.ID, problem)
	mark := PromptStopped
	if state == TurnFailed {
		mark = PromptFailed
	}
	w.front.MarkPrompt(prompt, mark)
	return nil
}

// mark is how the prompt of a turn that ended here is marked.
func (t *turn) mark(state TurnState) PromptMark {
	switch {
	case state == TurnDone:
		return PromptDone
	case state == TurnFailed:
		return PromptFailed
	case t.stoppedBy != "":
		return PromptStopped
	case t.overBudget != nil:
		return PromptOverBudget
	}
	return PromptPaused
}

// onMessage folds what the CLI says into the turn and acts on it.
func (w *worker) onMessage(ctx context.Context, m claude.Message) error {
	if t := w.turn; t != nil {
		t.content = t.content.Fold(m)
	}
	switch m := m.(type) {
	case *claude.HookCallback:
		return w.onHook(ctx, m)
	case *claude.CanUseTool:
		if err := w.onCanUseTool(ctx, m); err != nil {
			return err
		}
	case *claude.CancelRequest:
		if err := w.onCancelRequest(ctx, m.RequestID); err != nil {
			return err
		}
	case *claude.User:
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				w.ends(b.ToolUseID)
			}
		}
		w.session.journal.add(w.results(m)...)
	case *claude.ConversationReset:
		w.onReset()
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
func (w *worker) onReset() {
	w.session.totals.Reset()
	w.session.reset = true
}

// followReset begins the epoch that follows a /clear, in the session that the
// process has gone over to, so that the next process resumes that one.
func (w *worker) followReset(ctx context.Context) error {
	s := w.session
	if !s.reset {
		return nil
	}
	s.reset = false
	if id := s.proc.SessionID(); id != s.id {
		if err := w.books.NewSession(ctx, w.heldLease(), id, s.id); err != nil {
			return err
		}
		if err := w.books.MarkStarted(ctx, id); err != nil {
			return err
		}
		s.id, w.thread.SessionID = id, id
	}
	return w.newEpoch(ctx, 0)
}

// newEpoch begins an epoch in which the CLI's total starts at so many micro-USD.
func (w *worker) newEpoch(ctx context.Context, from int64) (err error) {
	s := w.session
	s.epoch, err = w.books.BeginEpoch(ctx, w.heldLease(), s.id, w.cliVersion, from)
	s.meter.moveTo(s.id, s.epoch)
	return err
}

func (w *worker) onResult(ctx context.Context, r *claude.Result) error {
	if r.IsError {
		w.session.meter.settle(ctx, cutTime) // it may have left calls just now
	}
	told, err := w.witness(ctx, r.Running)
	if err != nil {
		return err
	}
	if w.turn == nil {
		// A turn that nobody asked for, such as a background task's: its calls land on
		// the thread's last turn.
		w.session.meter.settle(ctx, 0)
		return w.addWitness(ctx, told)
	}
	if b := w.turn.meter.refusedFor(); b != nil && r.IsError && r.APIErrorStatus == http.StatusPaymentRequired {
		w.turn.overBudget = b
		w.turn.content.Items = withoutLast(w.turn.content.Items, r.Text)
	}
	state, problem := w.turn.outcome(r)
	return w.endTurn(ctx, state, problem, r.NumTurns, told...)
}

// withoutLast leaves out what was said last if it is the text: the CLI's words for an
// error that people are told of in ours.
func withoutLast(items []claude.Item, text string) []claude.Item {
	if n := len(items) - 1; n >= 0 && items[n].Kind == claude.ItemText && strings.TrimSpace(items[n].Text) == strings.TrimSpace(text) {
		return slices.Clip(items[:n])
	}
	return items
}

// outcome judges a result by is_error, never by its subtype: an interrupted turn
// has the subtype of an error, and a login that is missing that of a success.
func (t *turn) outcome(r *claude.Result) (TurnState, string) {
	switch {
	case t.stopping():
		return TurnInterrupted, t.whyStopped()
	case t.overBudget != nil:
		return TurnInterrupted, whyOverBudget(t)
	case r.Interrupted():
		return TurnInterrupted, "The turn was interrupted."
	case r.IsError:
		return TurnFailed, failure(r)
	}
	return TurnDone, ""
}

// whyStopped is what people are told of a turn that was told to end. They know when it
// was one of them.
func (t *turn) whyStopped() string {
	if t.stoppedBy != "" {
		return ""
	}
	return "Nobody decided in time, so the work is paused. Write “continue” to be asked again."
}

// failure is a failed result in a sentence for people, with the CLI's own words.
func failure(r *claude.Result) string {
	words := strings.Join(strings.Fields(r.Text), " ")
	if words == "" {
		words = strings.Join(r.Errors, "; ")
	}
	switch {
	case r.Subtype == "error_max_turns":
		return "The turn was ended: it took too many steps. Write “continue” to go on."
	case r.Subtype == "error_max_budget_usd":
		return "The turn was ended: its budget is used up."
	case r.APIErrorStatus == 401 || r.APIErrorStatus == 403:
		return "The model's provider refuses our credentials, so nothing could be done. Ask an admin to run bot doctor --call-model, which says what is wrong. (" + words + ")"
	case words == "":
		return "Claude Code failed without saying why. Try again; if it stays like this, ask an admin to look at the bot's log."
	}
	return "Claude Code failed: " + strings.ReplaceAll(words, "\x00", "")
}

// endTurn commits the end of the turn, shows it, and begins the next.
func (w *worker) endTurn(ctx context.Context, state TurnState, problem string, agentTurns int, told ...store.Witness) error {
	if err := w.finish(ctx, state, problem, agentTurns, told...); err != nil {
		return err
	}
	return w.nextTurn(ctx)
}

// cutTime is how long a turn that did not come to its end waits for its calls to be cut,
// or to be seen to be left.
const cutTime = time.Second

// finish commits the end of the turn and shows it. told is what the CLI says that it has
// spent; nothing when it has gone.
func (w *worker) finish(ctx context.Context, state TurnState, problem string, agentTurns int, told ...store.Witness) error {
	t := w.turn
	cutting := time.Duration(0)
	if state != TurnDone {
		cutting = cutTime
	}
	if t.stopping() {
		t.meter.cut() // those that have begun since
	}
	cost, more := t.meter.settle(ctx, cutting)
	status := store.ApprovalCancelled
	if state == TurnFailed {
		status = store.ApprovalInterrupted
	}
	if w.session != nil {
		w.recordWeb(w.session)
		w.session.proc.EndPush("")
		w.session.journal.flush(ctx)
	}
	overBudget := t.overBudget != nil && t.stoppedBy == ""
	ended, err := w.books.FinishTurn(ctx, w.heldLease(), store.FinishedTurn{
		ID: t.row.ID, State: string(state), Problem: problem, AgentTurns: agentTurns, Witnesses: told, Approvals: status,
		OverBudget: overBudget,
	})
	if err != nil {
		return err
	}
	w.refuseChecks(over)
	w.refuseAsked(t)
	w.turn = nil
	w.letGo(t)
	if w.session != nil {
		w.session.content = t.content
	}
	view := w.view(t)
	view.State, view.Problem, view.EndedAt, view.AgentTurns, view.Waiting = state, problem, time.Now(), agentTurns, 0
	view.Mark = t.mark(state)
	view.CostMicroUSD, view.Unfinished = cost, more
	if overBudget {
		w.offer, view.Continue = t.row.ID, true
	}
	view.Settling = more && !view.Continue
	w.front.ShowTurn(view)
	w.showEnded(ended)
	w.front.CloseCards(t.cards)
	w.noticeBudgets(ctx, w.thread, t.row.RequestedBy)
	if more {
		w.correctCost(ctx, t.meter, view)
	}
	w.front.MarkPrompt(t.prompt, view.Mark)
	if s := w.session; s != nil {
		select {
		case s.committed <- struct{}{}:
		default: // it is about to
		}
		s.idle.Reset(w.limits.IdleTimeout)
		w.slots.rest(w, true)
	}
	return nil
}

// correctCost has the turn's line tell what it has cost when all of its calls have ended,
// if some are under way. One that offers to go on stays as it is: the offer may have been
// taken meanwhile.
func (w *worker) correctCost(ctx context.Context, m *meter, view TurnView) {
	before, thread, held := view.CostMicroUSD, w.thread, w.heldLease()
	m.whenLate(func(microUSD int64, more bool) {
		if w.heldLease() != held {
			return
		}
		view.CostMicroUSD, view.Unfinished, view.Settling = microUSD, more, false
		if !view.Continue {
			w.front.ShowTurn(view)
		}
		if microUSD != before {
			w.noticeBudgets(ctx, thread, view.RequestedBy)
		}
	})
}

// onExit ends what the process was doing when it ended by itself.
func (w *worker) onExit(ctx context.Context) error {
	s := w.session
	<-s.proc.Done()
	exit := s.proc.Exit()
	w.log.Warn("the CLI has ended", zap.String("session", s.id), zap.NamedError("exit", exit), zap.String("stderr", exit.Stderr))
	w.stopSession(ctx, true)
	w.publish(ctx, s, w.thread, w.project)
	if w.turn == nil {
		if exit.Reason == claude.ExitLimit {
			w.front.Say(w.thread.Key(), exit.Sentence())
		}
		return w.nextTurn(ctx)
	}
	switch t := w.turn; {
	case t.stopping():
		return w.endTurn(ctx, TurnInterrupted, t.whyStopped(), 0)
	case t.hung:
		return w.endTurn(ctx, TurnFailed, fmt.Sprintf("Claude Code said nothing for %s and was stopped. Write “continue” to go on from here.", w.limits.Silence), 0)
	}
	return w.endTurn(ctx, TurnFailed, exit.Sentence(), 0)
}

// onSilence ends a process that says nothing while it should speak; onExit
// follows.
func (w *worker) onSilence(m *claude.Silence) {
	if w.turn == nil {
		return
	}
	w.log.Error("the CLI hangs", zap.Time("last event", m.LastEvent))
	w.turn.hung = true
	w.session.proc.Kill()
}

// onStop interrupts the turn and drops what is queued behind it.
func (w *worker) onStop(ctx context.Context, by string) error {
	if w.turn == nil {
		return w.dropStopped(ctx)
	}
	if w.turn.stoppedBy != "" {
		return nil
	}
	w.turn.stoppedBy = by
	if err := w.dropStopped(ctx); err != nil {
		return err
	}
	w.interrupt(ctx)
	return nil
}

// interrupt asks the CLI to end the turn and kills it when it does not.
func (w *worker) interrupt(ctx context.Context) {
	s, limit := w.session, w.limits.StopTimeout
	if !w.mustStop() {
		return
	}
	s.request(ctx, w.log, "interrupt the turn", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("interrupt: no end of the turn in %s", limit))
		defer cancel()
		if err := s.proc.Interrupt(ctx); err != nil {
			s.proc.Kill()
			return err
		}
		return nil
	})
}

// mustStop gives the CLI a time in which the turn has to end, and refuses what waits in
// it. It reports false when that time runs already: an interrupt that is acknowledged
// and never followed by a result must not hold the thread.
func (w *worker) mustStop() bool {
	w.refuseChecks(stopped)
	w.session.meter.cut()
	if w.turn.stopLimit != nil {
		return false
	}
	w.turn.stopLimit = time.AfterFunc(w.limits.StopTimeout, w.session.proc.Kill)
	return true
}

// refuseAsked answers what the CLI still waits for when its turn ends, such as a background
// agent: nobody can decide about it any more.
func (w *worker) refuseAsked(t *turn) {
	if w.session == nil {
		return
	}
	for id, a := range t.asked {
		if t.asksAbout(id) == nil {
			_ = w.reply(w.session.proc.Deny(a.RequestID, over, false))
		}
	}
}

// letGo stops what waits for something in a turn that is over, and ends the connections
// that were allowed in it.
func (w *worker) letGo(t *turn) {
	t.end()
	if t.stopLimit != nil {
		t.stopLimit.Stop()
	}
	for id := range t.asked {
		w.waiting.remove(id)
	}
}

// abandonTurn leaves a running turn to whoever continues it: on shutdown it is
// interrupted, so that its process can end in good order, and stays running in the
// database. One that was being stopped ends: nobody is to go on with it.
func (w *worker) abandonTurn(ctx context.Context, fenced bool, cause error) {
	t := w.turn
	defer func() { w.turn = nil }()
	w.letGo(t)
	if fenced {
		w.front.Leave(t.row.ID)
		return
	}
	w.refuseChecks(stopped)
	var told []store.Witness
	if w.session != nil {
		told = w.interruptInOrder(ctx, t)
	}
	if t.stopping() {
		err := w.finish(ctx, TurnInterrupted, t.whyStopped(), 0, told...)
		if err == nil {
			return
		}
		w.log.Error("end a turn that was being stopped", zap.Error(err))
	} else if len(told) > 0 {
		if err := w.addWitness(ctx, told); err != nil {
			w.log.Error("write what the CLI says that an interrupted turn cost", zap.Error(err))
		}
	}
	sentence := "Deckhand is stopping; the work goes on when it is back."
	if !errors.Is(cause, errShutdown) {
		sentence = "Deckhand has trouble with its database; the work goes on when that is over."
	}
	w.front.Abandon(t.row.ID, sentence)
}

// interruptLimit bounds how long a turn that is left behind may take to end.
const interruptLimit = 5 * time.Second

// interruptInOrder ends what the process does, and returns what it says that it has spent.
func (w *worker) interruptInOrder(ctx context.Context, t *turn) []store.Witness {
	s := w.session
	ctx, cancel := context.WithTimeout(ctx, interruptLimit)
	defer cancel()
	s.request(ctx, w.log, "interrupt the turn", s.proc.Interrupt)
	for {
		select {
		case m, ok := <-s.messages:
			if !ok {
				return nil
			}
			switch m := m.(type) {
			case *claude.Result:
				t.meter.settle(ctx, cutTime)
				told, err := w.witness(ctx, m.Running)
				if err != nil {
					w.log.Error("read what an interrupted turn cost", zap.Error(err))
				}
				return told
			case *claude.ConversationReset:
				w.onReset()
			case *claude.HookCallback:
				_ = w.reply(s.proc.AnswerPreToolUse(m.RequestID, claude.HookDeny, stopped))
			case *claude.CanUseTool:
				_ = w.reply(s.proc.Deny(m.RequestID, stopped, true))
			}
			t.content = t.content.Fold(m)
		case <-ctx.Done():
			s.proc.Kill()
			<-s.proc.Done()
			return nil
		}
	}
}

func (w *worker) show() {
	if w.turn != nil {
		w.front.ShowTurn(w.view(w.turn))
	}
}

func (w *worker) view(t *turn) TurnView {
	return TurnView{
		ID: t.row.ID, Thread: w.thread.Key(), Project: w.project.Name, Workspace: w.thread.Workspace,
		RequestedBy: t.row.RequestedBy, State: TurnRunning, Content: t.content,
		StartedAt: t.row.StartedAt, Waiting: len(t.asked), Breaks: slices.Clip(t.breaks), StoppedBy: t.stoppedBy,
		Granted: maps.Clone(t.granted), Held: t.meter.heldFor(),
	}
}
