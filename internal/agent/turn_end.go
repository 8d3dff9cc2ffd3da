package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/transcript"
	"deckhand/internal/workspace"
)

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
	case t.unbegun:
		return TurnInterrupted, t.overBudget.Sentence() + " So nothing was done yet, and this waits for it."
	case t.overBudget != nil:
		return TurnInterrupted, t.overBudget.Sentence() + " So the work stopped here."
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
	return whyPaused
}

// whyPaused is what people are told of a turn that waited for them in vain.
const whyPaused = "Nobody decided in time, so the work is paused. Write “continue” to be asked again."

// failure is a failed result in a sentence for people, with the CLI's own words.
func failure(r *claude.Result) string {
	words := cmp.Or(strings.Join(strings.Fields(r.Text), " "), strings.Join(r.Errors, "; "))
	switch {
	case r.Subtype == "error_max_turns":
		return "The turn was ended: it took too many steps. Write “continue” to go on."
	case r.Subtype == "error_max_budget_usd":
		return "The turn was ended: its budget is used up."
	case r.APIErrorStatus != 0:
		return refusedBy(r.APIErrorStatus) + "\nThe provider's words: " + strings.ReplaceAll(cmp.Or(words, "none"), "\x00", "")
	case words == "":
		return "Claude Code failed without saying why. Try again; if it happens again, ask an admin to look at the bot's log."
	}
	return "Claude Code failed: " + strings.ReplaceAll(words, "\x00", "")
}

// refusedBy says what people can do about a call of the model that failed, by its HTTP
// status.
func refusedBy(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "The model's provider refuses our credentials, so nothing could be done. Ask an admin to run bot doctor --call-model, which says what is wrong."
	case status == http.StatusNotFound:
		return "The model's provider does not know something that Deckhand asked for, such as the model's name. Ask an admin to run bot doctor --call-model, which says what is wrong."
	case status == http.StatusRequestEntityTooLarge:
		return "This is too long for the model. Write less, attach fewer files, or begin a new thread."
	case status == http.StatusTooManyRequests:
		return "The model's provider limits our requests for now. Try again in a few minutes. If that goes on, an admin can ask the provider for a higher limit."
	case status >= http.StatusInternalServerError:
		return "The model's provider has trouble, and your message is fine. Try again in a few minutes."
	}
	return "The model's provider does not take this request. Try again with a shorter message, without files or in a new thread; if it happens again, ask an admin to run bot doctor --call-model."
}

// endTurn commits the end of the turn, shows it, and begins the next.
func (w *worker) endTurn(ctx context.Context, state TurnState, problem string, agentTurns int, told ...ledger.CLITotal) error {
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
func (w *worker) finish(ctx context.Context, state TurnState, problem string, agentTurns int, told ...ledger.CLITotal) error {
	t := w.turn
	cutting := time.Duration(0)
	if state != TurnDone {
		cutting = cutTime
	}
	if t.stopping() {
		t.meter.Cut() // those that have begun since
	}
	cost, more := t.meter.Settle(ctx, cutting)
	status := approvals.Cancelled
	if state == TurnFailed {
		status = approvals.Interrupted
	}
	if w.session != nil {
		w.session.recordWeb(t)
		w.session.proc.EndUse("")
		w.session.journal.flush(ctx)
	}
	view := w.endedView(ctx, t, state, status)
	view.Problem, view.AgentTurns, view.CostMicroUSD, view.Unfinished = problem, agentTurns, cost, more
	view.Settling = more && !view.Continue
	made := w.session.madeCommits(t)
	view.Committed = len(made) > 0
	view.OpensPull = view.Committed && state == TurnDone && !view.Settling && w.opensPull(ctx, made)
	f := store.FinishedTurn{
		ID: t.row.ID, State: string(state), Problem: problem, AgentTurns: agentTurns, CLITotals: told, Approvals: status,
		OverBudget: view.Continue, View: EncodeTurn(view), Mark: string(view.Mark), Answer: transcript.Answer(t.content),
	}
	if t.unbegun {
		f.Again = &inbox.NewPrompt{UUID: uuid.NewString(), Text: "[A budget had stopped you before you began. It has room again: do what was asked.]"}
	}
	var copies *transcript.Mirror // a process that has gone left its own when it was stopped
	if w.session != nil {
		copies = w.session.mirror
	}
	var ended []approvals.Approval
	var rows []outbox.Row
	err := copies.End(ctx, func(parts []transcripts.Part) (err error) {
		f.Transcripts = parts
		ended, rows, err = w.store.FinishTurn(ctx, w.heldLease(), f)
		return err
	})
	if err != nil {
		return err
	}
	view.OutboxID = rows[0].ID
	t.desk.Refuse(ask.Over)
	t.desk.RefuseAsked()
	w.turn, w.stopBy = nil, ""
	w.letGo(t)
	if w.session != nil {
		w.session.content = t.content
	}
	if view.Offers() {
		w.offer = t.row.ID
	}
	w.front.ShowTurn(view)
	for _, a := range ended {
		w.front.ShowApproval(a)
	}
	for _, c := range view.Cards {
		w.front.Show(outbox.CardPost, c.ID)
	}
	w.noticeBudgets(ctx, w.thread, t.row.RequestedBy)
	if more {
		w.correctCost(ctx, t.meter, view)
	}
	w.front.Tell(rows[1:]...)
	w.tellOfDisk(ctx)
	if s := w.session; s != nil {
		s.ended.Store(t.row.ID)
		select {
		case s.committed <- struct{}{}:
		default: // it is about to
		}
		if view.Committed {
			select {
			case s.diffs <- view.ID:
			default: // those of two turns are being read
			}
		}
		s.idle.Reset(w.limits.IdleTimeout)
		w.place.Slots.Idle(w)
	}
	return nil
}

// endedView is the view of a turn that ends, but for what it has cost and committed. status is
// that of its approvals that nobody has decided.
func (w *worker) endedView(ctx context.Context, t *turn, state TurnState, status approvals.Status) TurnView {
	view := w.view(t)
	view.State, view.EndedAt, view.Mark = state, time.Now(), t.mark(state)
	view.Waiting, view.Quiet, view.Cards = 0, nil, t.desk.ClosedCards(status)
	view.Continue = t.overBudget != nil && t.stoppedBy == "" && !t.unbegun
	if state == TurnDone {
		view.Closing = w.closing(ctx, t, view)
	}
	if w.session != nil {
		view.Left = leftRunning(w.session.proc.Left())
	}
	return view
}

const (
	// leftMost is how many programs that still run a turn's end names, and leftBytes how much
	// of each one's command line.
	leftMost  = 5
	leftBytes = 200
)

// leftRunning is TurnView.Left of command lines.
func leftRunning(commands [][]string) (left []string) {
	for _, c := range commands[:min(len(commands), leftMost)] {
		line := strings.Join(c, " ")
		left = append(left, strings.ToValidUTF8(line[:min(len(line), leftBytes)], "�"))
	}
	return left
}

// correctCost has the turn's line tell what it has cost when all of its calls have ended,
// if some are under way. One that offers to go on stays as it is: the offer may have been
// taken meanwhile.
func (w *worker) correctCost(ctx context.Context, m *spend.Meter, view TurnView) {
	before, thread, held := view.CostMicroUSD, w.thread, w.heldLease()
	m.WhenLate(func(microUSD int64, more bool) {
		if !w.holds(held) {
			return
		}
		view.CostMicroUSD, view.Unfinished, view.Settling, view.OutboxID = microUSD, more, false, 0
		if !view.Continue {
			w.front.ShowTurn(view)
		}
		if microUSD != before {
			w.noticeBudgets(ctx, thread, view.RequestedBy)
		}
	})
}

// letGo stops what waits for something in a turn that is over, and ends the connections
// that were allowed in it. From then on the process acts as nobody.
func (w *worker) letGo(t *turn) {
	w.acting.Store(nil)
	t.end()
	t.endWait()
	t.pulse.timer.Stop()
	if t.stopLimit != nil {
		t.stopLimit.Stop()
	}
	t.desk.Forget()
}

// onExit ends what the process was doing when it ended by itself.
func (w *worker) onExit(ctx context.Context) error {
	s := w.session
	<-s.proc.Done()
	exit := s.proc.Exit()
	w.log.Warn("the CLI has ended", zap.String("session", s.id), zap.NamedError("exit", exit), zap.String("stderr", exit.Stderr))
	w.stopSession(ctx, true)
	s.publish(ctx, w.thread, w.project, workspace.PublishTime)
	if w.turn == nil {
		if exit.Reason == claude.ExitLimit {
			w.say(ctx, exit.Sentence())
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

// noticeBudgets looks at the budgets after a turn, beside the worker.
func (w *worker) noticeBudgets(ctx context.Context, t threads.Thread, user string) {
	w.running.Go(func() { w.accounts.Notice(context.WithoutCancel(ctx), t, user) })
}
