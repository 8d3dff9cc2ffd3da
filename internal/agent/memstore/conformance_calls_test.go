package memstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

var calls = []struct {
	name string
	fn   func(ctx context.Context, c *caller) string
}{
	{"receive and accept", accept},
	{"accept another", accept},
	{"accept twice", func(ctx context.Context, c *caller) string {
		th := pick(c, c.threads)
		th, ok, err := c.store.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: pick(c, c.inbox), Thread: th.Key(), Project: "web", UserID: "U1", UUID: c.id(), Text: "again"})
		if th.TeamID == "" {
			return "error nothing"
		}
		return fmt.Sprint(ok, fate(err))
	}},
	{"acquire", acquire},
	{"acquire again", acquire},
	{"beat", beat},
	{"begin to live", func(ctx context.Context, c *caller) string {
		id := c.replica()
		l, err := c.store.Register(ctx, threads.Replica{ID: id, Kernel: pick(c, []string{"k", "k", "other"}), Slots: 3, Lease: time.Minute})
		if err == nil {
			c.lives[id] = l
		}
		return fmt.Sprint(id, c.name("life", l.Number), fate(err))
	}},
	{"bury", func(ctx context.Context, c *caller) string {
		peers, err := c.store.Living(ctx)
		if err != nil || len(peers) == 0 || c.r.IntN(3) > 0 {
			return fmt.Sprint("error none ", fate(err))
		}
		p := pick(c, peers)
		p.Heartbeats -= int64(c.r.IntN(2))
		dead, err := c.store.MarkDead(ctx, p)
		return fmt.Sprint(p.Replica, dead, fate(err))
	}},
	{"end a life", func(ctx context.Context, c *caller) string {
		if c.r.IntN(3) > 0 {
			return "error not now"
		}
		return fate(c.store.Unregister(ctx, c.lives[c.replica()]))
	}},
	{"release", func(ctx context.Context, c *caller) string { return fate(c.store.ReleaseLease(ctx, c.lease(), true)) }},
	{"unattended", func(ctx context.Context, c *caller) string {
		ids, err := c.store.Unattended(ctx, "A"+c.team, []int64{})
		var names []string
		for _, th := range c.threads {
			if slices.Contains(ids, th.ID) {
				names = append(names, th.ThreadTS)
			}
		}
		slices.Sort(names)
		return fmt.Sprint(slices.Compact(names), fate(err))
	}},
	{"rest", func(ctx context.Context, c *caller) string {
		l := c.lease()
		t := c.lastTurn(l)
		var waits []string
		if a := pick(c, c.approvals); a != "" {
			waits = append(waits, a)
		}
		ok, err := c.store.ParkTurn(ctx, l, t.ID, waits)
		return fmt.Sprint(ok, fate(err))
	}},
	{"unanswered", func(ctx context.Context, c *caller) string {
		list, err := c.store.Unanswered(ctx, pick(c, c.turns).ID)
		var out []string
		for _, a := range list {
			out = append(out, c.approval(a))
		}
		return fmt.Sprint(out, fate(err))
	}},
	{"branch", func(ctx context.Context, c *caller) string {
		l := c.lease()
		return fate(c.store.SetBranch(ctx, l, fmt.Sprintf("deckhand/%d-2", l.ThreadID)))
	}},
	{"workspace", func(ctx context.Context, c *caller) string { return fate(c.store.SetWorkspace(ctx, c.lease(), "/ws")) }},
	{"session", session},
	{"another session", session},
	{"started", func(ctx context.Context, c *caller) string {
		s := pick(c, c.sessions)
		if s == "" {
			return "error nothing"
		}
		if c.r.IntN(3) == 0 {
			_ = c.store.MarkStarted(ctx, s)
		}
		ok, err := c.store.SessionStarted(ctx, s)
		return fmt.Sprint(ok, fate(err))
	}},
	{"next prompt", func(ctx context.Context, c *caller) string {
		p, err := c.store.NextPrompt(ctx, pick(c, c.threads).ID)
		return fmt.Sprint(c.prompt(p), fate(err))
	}},
	{"put off a prompt", func(ctx context.Context, c *caller) string {
		l, id, after := c.lease(), pick(c, c.inbox), -time.Second
		if c.r.IntN(3) == 0 {
			after = time.Hour
		}
		if c.r.IntN(2) == 0 {
			return "error not now"
		}
		return fate(c.store.PutOffPrompt(ctx, l, id, after, "No answer."))
	}},
	{"drop a prompt", func(ctx context.Context, c *caller) string {
		if c.r.IntN(4) > 0 {
			return "error not now"
		}
		l, id := c.lease(), pick(c, c.inbox)
		if p, err := c.store.NextPrompt(ctx, l.ThreadID); err == nil && c.r.IntN(3) > 0 {
			id = p.InboxID
		}
		rows, err := c.store.DropPrompt(ctx, l, id, inbox.Drop{
			Outcome: "over budget", Mark: "over budget", Sentence: func(n int) string { return fmt.Sprint(n, " not begun") },
		})
		return c.saying(rows) + fate(err)
	}},
	{"send a prompt now", func(ctx context.Context, c *caller) string {
		id := pick(c, c.inbox)
		if id == 0 || c.r.IntN(2) == 0 {
			return "error not now"
		}
		ok, err := c.store.SendNow(ctx, id, pick(c, []string{"U1", "U2"}))
		return fmt.Sprint(ok, fate(err))
	}},
	{"take a prompt back", func(ctx context.Context, c *caller) string {
		id := pick(c, c.inbox)
		if id == 0 || c.r.IntN(4) > 0 {
			return "error not now"
		}
		ok, rows, err := c.store.DropWaiting(ctx, id, "U2", "stopped", []string{"", "dropped"}[c.r.IntN(2)])
		return fmt.Sprint(ok, c.saying(rows), fate(err))
	}},
	{"change a post", func(ctx context.Context, c *caller) string {
		p := c.post()
		if p.TS == "" || c.r.IntN(4) > 0 {
			return "error not now"
		}
		was := ""
		ok, err := c.store.Edit(ctx, p, func(old json.RawMessage) (json.RawMessage, bool, error) {
			was = string(old)
			return json.RawMessage(fmt.Sprintf(`{"n":%d}`, c.n)), true, nil
		})
		return fmt.Sprint(ok, strings.ReplaceAll(was, " ", ""), fate(err))
	}},
	{"delete a post", func(ctx context.Context, c *caller) string {
		p := c.post()
		if p.TS == "" || c.r.IntN(4) > 0 {
			return "error not now"
		}
		ok, rows, err := c.store.Delete(ctx, p)
		return fmt.Sprint(ok, c.saying(rows), fate(err))
	}},
	{"drop prompts", func(ctx context.Context, c *caller) string {
		if c.r.IntN(6) > 0 {
			return "error not now"
		}
		dropped, rows, err := c.store.DropPrompts(ctx, c.lease(), inbox.Drop{
			Outcome: "stopped", Mark: pick(c, []string{"stopped", ""}), Sentence: func(n int) string { return fmt.Sprint(n, " dropped") },
		})
		slices.SortFunc(dropped, func(a, b inbox.Prompt) int { return strings.Compare(a.UUID, b.UUID) })
		var out []string
		for _, p := range dropped {
			out = append(out, c.prompt(p))
		}
		return fmt.Sprint(out, c.saying(rows), fate(err))
	}},
	{"say", func(ctx context.Context, c *caller) string {
		w, err := c.store.Say(ctx, c.lease(), "words", "")
		if err != nil {
			return fate(err)
		}
		return c.saying([]outbox.Row{w})
	}},
	{"leave a turn", func(ctx context.Context, c *caller) string {
		l := c.lease()
		t := c.lastTurn(l)
		if t.ID == 0 {
			return "error nothing"
		}
		w, err := c.store.LeaveTurn(ctx, l, t.ID, "elsewhere")
		if err != nil {
			return fate(err)
		}
		return c.saying([]outbox.Row{w})
	}},
	{"begin a turn", begin},
	{"begin another turn", begin},
	{"begin one more turn", begin},
	{"running turn", func(ctx context.Context, c *caller) string {
		t, p, err := c.store.RunningTurn(ctx, pick(c, c.threads).ID)
		return fmt.Sprint(c.turn(t), c.prompt(p), fate(err))
	}},
	{"continue a turn", func(ctx context.Context, c *caller) string {
		l := c.lease()
		old, _, err := c.store.RunningTurn(ctx, l.ThreadID)
		if err != nil || c.r.IntN(2) == 0 {
			return "error nothing"
		}
		t, err := c.store.ContinueTurn(ctx, l, old, old.SessionID, old.Epoch)
		if err == nil {
			c.turns = append(c.turns, t)
		}
		return fmt.Sprint(c.turn(t), fate(err))
	}},
	{"finish a turn", func(ctx context.Context, c *caller) string {
		l := c.lease()
		t := c.lastTurn(l)
		if t.ID == 0 || c.r.IntN(2) == 0 {
			return "error nothing"
		}
		ended, rows, err := c.store.FinishTurn(ctx, l, store.FinishedTurn{
			View: pick(c, [][]byte{nil, []byte("{}")}), Mark: pick(c, []string{"failed", ""}), ID: t.ID, State: "failed", Problem: "broken", Again: []*inbox.NewPrompt{nil, {UUID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, c.n)).String(), Text: "again"}}[c.n%2], OverBudget: c.r.IntN(2) == 0, AgentTurns: c.r.IntN(2), Answer: fmt.Sprint("answer ", c.n),
			Approvals: pick(c, []approvals.Status{approvals.Cancelled, approvals.Interrupted, ""}),
		})
		var out []string
		for _, a := range ended {
			out = append(out, c.approval(a))
		}
		slices.Sort(out)
		return fmt.Sprint(out, c.saying(rows), fate(err))
	}},
	{"begin a call", beginCall},
	{"begin another call", beginCall},
	{"see a call", func(ctx context.Context, c *caller) string {
		call := pick(c, c.calls)
		return fate(c.store.SeenCall(ctx, call.ID, c.usage()))
	}},
	{"end calls", endCalls},
	{"end more calls", endCalls},
	{"end lost calls", func(ctx context.Context, c *caller) string {
		if c.r.IntN(4) > 0 {
			return "error not now"
		}
		_, err := c.store.EndLostCalls(ctx) // of all teams, so that the number differs
		return fate(err)
	}},
	{"cli totals", func(ctx context.Context, c *caller) string {
		l := c.lease()
		t := c.lastTurn(l)
		if t.ID == 0 {
			return "error nothing"
		}
		return fate(c.store.AddCLITotals(ctx, l, ledger.CLITotal{SessionID: t.SessionID, Epoch: t.Epoch, Before: 1, After: 1 + int64(c.r.IntN(3)), Model: "model-0"}))
	}},
	{"ask", ask},
	{"ask more", ask},
	{"ask again", ask},
	{"ask once more", ask},
	{"decide", decide},
	{"decide another", decide},
	{"decide again", decide},
	{"deliver", func(ctx context.Context, c *caller) string {
		l, id := c.lease(), pick(c, c.approvals)
		if a := pick(c, c.decided); a.ID != "" && c.r.IntN(2) == 0 {
			id = a.ID
			for _, its := range c.leases { // the last is the latest
				if its.ThreadID == a.ThreadID {
					l = its
				}
			}
		}
		a, err := c.store.Deliver(ctx, l, id)
		return fmt.Sprint(c.approval(a), fate(err))
	}},
	{"note a page", func(ctx context.Context, c *caller) string {
		turn := pick(c, c.turns)
		if turn.ID == 0 {
			return "error nothing"
		}
		return fate(c.store.SavePosts(ctx, outbox.PostedMessage{Kind: outbox.TurnPost, Subject: fmt.Sprint(turn.ID), Part: c.r.IntN(2), ChannelID: "C1", TS: fmt.Sprintf("%d.5", 100+c.n)}))
	}},
	{"note a card", func(ctx context.Context, c *caller) string {
		card := pick(c, c.approvals)
		p := outbox.PostedMessage{Kind: outbox.CardPost, Subject: card, ChannelID: "C1", TS: fmt.Sprintf("%d.5", 100+c.n)}
		more := p
		more.Audience, more.TS = pick(c, []string{"U1", "U2"}), pick(c, []string{"", "", p.TS})
		if card == "" {
			return "error nothing"
		}
		return fate(c.store.SavePosts(ctx, p, more))
	}},
	{"a card's messages", func(ctx context.Context, c *caller) string {
		card := pick(c, c.approvals)
		posts, err := c.store.Posts(ctx, outbox.CardPost, card)
		a, _ := c.store.ApprovalByID(ctx, card)
		return fmt.Sprint(posted(posts), a.MessageTS, fate(err))
	}},
	{"a turn's messages", func(ctx context.Context, c *caller) string {
		posts, err := c.store.TurnPosts(ctx, pick(c, c.turns).ID)
		return posted(posts) + fate(err)
	}},
	{"forget a card's message", func(ctx context.Context, c *caller) string {
		if c.r.IntN(3) > 0 {
			return "error not now"
		}
		posts, err := c.store.Posts(ctx, outbox.CardPost, pick(c, c.approvals))
		for _, p := range posts {
			if p.Audience == "" {
				return fate(c.store.ForgetPost(ctx, p, "R"))
			}
		}
		return fate(err)
	}},
	{"cancel", func(ctx context.Context, c *caller) string {
		if c.r.IntN(3) > 0 {
			return "error not now"
		}
		a, ok, err := c.store.CancelApproval(ctx, c.lease(), pick(c, c.approvals))
		return fmt.Sprint(c.approval(a), ok, fate(err))
	}},
	{"expire", func(ctx context.Context, c *caller) string {
		a, ok, err := c.store.ExpireApproval(ctx, pick(c, c.approvals))
		if err != nil {
			a = approvals.Approval{}
		}
		return fmt.Sprint(c.approval(a), ok, fate(err))
	}},
	{"approval", func(ctx context.Context, c *caller) string {
		a, err := c.store.ApprovalByID(ctx, pick(c, c.approvals))
		return fmt.Sprint(c.approval(a), fate(err))
	}},
	{"grants", func(ctx context.Context, c *caller) string {
		t := pick(c, c.turns)
		if t.ID == 0 {
			return "error nothing"
		}
		return c.live(ctx, t.ThreadID, t.SessionID, pick(c, []string{`{"command":"a"}`, `{"command":"b"}`}))
	}},
	{"revoke", func(ctx context.Context, c *caller) string {
		if c.r.IntN(4) > 0 {
			return "error not now"
		}
		g, ok, err := c.store.RevokeGrant(ctx, c.team, pick(c, c.grants), "U1")
		if err != nil {
			return fate(err)
		}
		return fmt.Sprint(c.name("g", g.ID), g.Pattern, g.CreatedBy, ok, fate(err))
	}},
	{"notice a budget", func(ctx context.Context, c *caller) string {
		th := pick(c, c.threads)
		if th.ID == 0 {
			return "error nothing"
		}
		n := ledger.BudgetNotice{
			ID: c.id(), BudgetWindow: c.window(), LimitMicroUSD: pick(c, []int64{100, 200}), Share: pick(c, []int{50, 80, 100}), SpentMicroUSD: 60, ThreadID: th.ID,
		}
		noted, fresh, err := c.store.NoticeBudget(ctx, n)
		if fresh {
			c.notices = append(c.notices, noted)
		}
		return fmt.Sprint(noted.Share, noted.LimitMicroUSD, noted.Decision, noted.Project, fresh, fate(err))
	}},
	{"decide a budget", func(ctx context.Context, c *caller) string {
		of := pick(c, c.notices)
		if of.ID == "" {
			return "error nothing"
		}
		n, err := c.store.DecideBudget(ctx, of.ID, pick(c, []ledger.BudgetDecision{{RaiseMicroUSD: 50}, {Model: "haiku"}, {Leave: true}}), "U1")
		return fmt.Sprint(n.Decision, n.DecidedBy, n.Share, fate(err))
	}},
	{"budget", func(ctx context.Context, c *caller) string {
		states, err := c.store.BudgetStates(ctx, []ledger.BudgetWindow{c.window(), c.window()})
		return fmt.Sprint(states, fate(err))
	}},
	{"wait for a budget", func(ctx context.Context, c *caller) string {
		n, inbox := pick(c, c.notices), pick(c, c.inbox)
		if n.ID == "" || inbox == 0 {
			return "error nothing"
		}
		return fate(c.store.WaitForBudget(ctx, c.lease(), inbox, n, c.r.IntN(3)))
	}},
	{"wake what waits", func(ctx context.Context, c *caller) string {
		if c.r.IntN(4) > 0 {
			return "error not now"
		}
		return fate(c.store.WakeWaits(ctx))
	}},
	{"stopped turn", func(ctx context.Context, c *caller) string {
		id, err := c.store.StoppedTurn(ctx, pick(c, c.threads).ID)
		return fmt.Sprint(c.name("t", id), fate(err))
	}},
	{"recent output", func(ctx context.Context, c *caller) string {
		longest, err := c.store.RecentOutput(ctx, c.team, "web", "model-1")
		return fmt.Sprint(longest, fate(err))
	}},
	{"follow a session", func(ctx context.Context, c *caller) string {
		l, id, from := c.lease(), c.id(), pick(c, c.sessions)
		if from == "" || c.r.IntN(2) == 0 {
			return "error nothing"
		}
		begin := c.store.StartAnew
		if c.r.IntN(4) == 0 {
			begin = c.store.NewSession // by /clear
		}
		if err := begin(ctx, l, id, from); err != nil {
			return fate(err)
		}
		c.sessions = append(c.sessions, id)
		epoch, err := c.store.BeginEpoch(ctx, l, id, "2.1.329", 0)
		c.epochs[id] = epoch
		said, err2 := c.store.SessionHistory(ctx, id, 3)
		var out []string
		for _, e := range said {
			out = append(out, strings.Join([]string{e.UserID, e.Prompt, e.Answer, e.State}, "/"))
		}
		return fmt.Sprint(c.name("s", id), epoch, out, fate(err), fate(err2))
	}},
	{"spoke", func(ctx context.Context, c *caller) string {
		s := pick(c, c.sessions)
		if s == "" {
			return "error nothing"
		}
		ok, err := c.store.SessionSpoke(ctx, s)
		return fmt.Sprint(ok, fate(err))
	}},
}

func posted(posts []outbox.PostedMessage) (said string) {
	for _, p := range posts {
		said += fmt.Sprintf("%s %d of %q at %q, open: %t; ", p.Kind, p.Part, p.Audience, p.TS, p.Open)
	}
	return said
}
