package agent

import (
	"context"

	"deckhand/internal/agent/ask"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// asking is the worker of a session as the desks of its turns have it, and whoever asks about
// hosts.
type asking struct {
	w  *worker
	of *session
}

func (w *worker) newDesk(t *turn, turn turns.Turn) *ask.Desk {
	s := w.session
	o := ask.Options{
		Store: w.store, Worker: asking{w, s}, Front: w.front, Authoriser: w.authoriser, Policy: w.policy, Process: s.proc, Searches: s.meter,
		Waiting: &w.waiting, Thread: w.thread, Turn: turn, SessionID: s.id, Folder: w.project.Folder(w.thread.Workspace), Home: w.place.Home(w.threadID),
		Repositories: w.place.Repositories(w.thread, w.project), ReachesForge: w.project.ReachesForge(), Content: &t.content, Span: t.span, Log: w.log,
	}
	if w.pulls != nil {
		o.Pulls = w.pulls
	}
	return ask.New(o)
}

// The methods of [ask.Worker].

func (a asking) Lease() threads.Lease                     { return a.w.heldLease() }
func (a asking) Stopping() bool                           { return a.w.turn.stopping() }
func (a asking) Show()                                    { a.w.show() }
func (a asking) Say(ctx context.Context, sentence string) { a.w.say(ctx, sentence) }
func (a asking) Later(fn func(context.Context) error) {
	a.w.box.put(message{kind: messageLater, then: fn})
}
func (a asking) Beside(fn func()) { a.of.pump.Go(fn) }

func (a asking) Expire(ctx context.Context, told bool) {
	a.w.turn.expired = true
	if told {
		a.w.mustStop()
	} else {
		a.w.interrupt(ctx)
	}
}

// Ask implements [egress.Asker].
func (a asking) Ask(q *egress.Question) {
	a.Later(func(ctx context.Context) error {
		switch w := a.w; {
		case w.session != a.of:
			q.Answer(ask.Refusal("The session has ended."))
		case w.turn == nil:
			q.Answer(ask.Refusal("network: of project %s does not list %s, and no turn is running in this thread, so nobody can be asked. Wait for the next message.", w.project.Name, q))
		default:
			return w.turn.desk.Reach(ctx, q)
		}
		return nil
	})
}

// Left implements [egress.Asker].
func (a asking) Left(q *egress.Question) {
	a.Later(func(context.Context) error {
		if a.w.turn != nil {
			a.w.turn.desk.Left(q)
		}
		return nil
	})
}
