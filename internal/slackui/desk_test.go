package slackui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/chat"
	"deckhand/internal/chat/costs"
	"deckhand/internal/chat/view"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// A desk is the app with the agent's store in memory and a Slack that answers by a
// script, on a synthetic clock: the scheduler, the renderer and the supervisor are the
// real ones.

const (
	deskTeam    = "T1"
	deskChannel = "C1"
	deskPrivate = "C2" // UGRACE is in it
	deskThread  = "1.0"
)

// desk is one thread in a workspace, with a bot that works there.
type desk struct {
	t     testing.TB
	slack *scripted
	store *screenStore
	bot   *process
	all   []*process

	lease   threads.Lease
	session string
	epoch   int
	calls   access.Call      // how the project calls people
	turn    agent.TurnView   // the one that runs
	shown   []agent.TurnView // as each turn was shown last
	asked   int
	carded  int // how many items the turn had at its last request
}

// atDesk runs a test at a desk, and holds what Slack has seen against the rules that
// always hold.
func atDesk(t *testing.T, test func(d *desk)) {
	t.Helper()
	var problems []string
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		defer func() {
			d.close()
			problems = d.slack.check()
		}()
		test(d)
	})
	for _, p := range problems {
		t.Error(p)
	}
}

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, slack: newScripted(), store: newScreenStore()}
	d.start()
	ctx := context.Background()
	d.session = uuid.NewString()
	d.prompt()
	th, _, err := storetest.Acquire(ctx, d.store, d.store.Threads()[0].ID, "replica-1")
	d.must(err)
	d.lease = threads.Lease{ThreadID: th.ID, Owner: "replica-1", Epoch: th.LeaseEpoch}
	d.must(d.store.NewSession(ctx, d.lease, d.session, ""))
	d.epoch, err = d.store.BeginEpoch(ctx, d.lease, d.session, "2.1.329", 0)
	d.must(err)
	d.begin()
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// start starts a process of the bot.
func (d *desk) start() { d.startAs("replica-1") }

// startAs starts a process of a replica.
func (d *desk) startAs(replica string) {
	p := &process{stopped: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	client := slack.New("xoxb-test", slack.OptionHTTPClient(p.do(d.slack)), slack.OptionAPIURL("https://slack.invalid/api/"))
	p.app = newApp(Config{Config: chat.Config{
		Store: mortalStore{d.store, p}, Log: zap.NewNop(), Replica: replica, Calls: map[string]access.Call{"web": d.calls}, Reminders: [][]string{{"thread"}, {"thread", "approvers", "C0OPS"}}, Redact: func(s string) string { return s },
		Access: access.Rules{Roles: access.Roles{Admins: []string{"UADA"}, Approvers: []string{"UGRACE", "UHEIDI"}, Users: []string{"ULINUS"}}},
	}, Costs: mortalStore{d.store, p}}, client, identity{TeamID: deskTeam, UserID: "UBOT", TeamURL: "https://t.slack.com/"})
	p.app.Begin(agent.New(agent.Config{Store: d.store, Frontend: p.app.Frontend(), Authoriser: p.app, Reminder: p.app, Policy: &policy.Policy{}, Replica: replica}))
	go func() {
		defer close(p.stopped)
		p.app.publish(ctx)
	}()
	d.bot, d.all = p, append(d.all, p)
}

// kill ends the process at once; another one is started.
func (d *desk) kill() {
	d.bot.dead.Store(true)
	d.start()
}

// close ends all processes.
func (d *desk) close() {
	for _, p := range d.all {
		p.stop()
		<-p.stopped
		p.app.Wait()
	}
	time.Sleep(time.Minute) // look-ups that nobody waits for any more end by themselves
}

// restTicks is for how many tenths of a second nothing is to be sent until there is nothing left: what
// cannot be read is read again after one second.
const restTicks = 15

// rest waits until there is nothing left to send.
func (d *desk) rest() {
	d.t.Helper()
	for quiet, ticks := 0, 0; quiet < restTicks; quiet++ {
		if ticks++; ticks > 100_000 {
			d.t.Fatal("it does not come to rest")
		}
		if synctest.Wait(); d.bot.app.screen.publisher.Pending() > 0 || d.bot.app.screen.turnScreen.busy() {
			quiet = 0
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// over waits until nothing is left in the outbox, either.
func (d *desk) over() {
	d.t.Helper()
	for range 10_000 {
		if d.rest(); len(d.store.OutboxRows()) == 0 {
			return
		}
		time.Sleep(time.Second)
	}
	d.t.Fatalf("something is left to be said: %+v", d.store.OutboxRows())
}

// prompt puts a prompt into the inbox.
func (d *desk) prompt() {
	ctx := context.Background()
	key := threads.ThreadKey{TeamID: deskTeam, ChannelID: deskChannel, ThreadTS: deskThread}
	id, _, err := d.store.Receive(ctx, inbox.Envelope{EventID: uuid.NewString(), Kind: inbox.Message, TeamID: deskTeam, ChannelID: deskChannel, TS: "1.0", ThreadTS: deskThread, UserID: "ULINUS", Payload: json.RawMessage(`{}`)})
	d.must(err)
	_, _, err = d.store.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "ULINUS", UUID: uuid.NewString(), Text: "go"})
	d.must(err)
}

// begin begins the next turn.
func (d *desk) begin() {
	if len(d.shown) > 0 {
		d.prompt()
	}
	turn, _, ok, err := d.store.BeginTurn(context.Background(), d.lease, d.session, d.epoch)
	d.must(err)
	if !ok {
		d.t.Fatal("there is no prompt")
	}
	d.turn = agent.TurnView{
		ID: turn.ID, Thread: threads.ThreadKey{TeamID: deskTeam, ChannelID: deskChannel, ThreadTS: deskThread},
		Project: "web", Workspace: "/w", RequestedBy: "ULINUS", State: agent.TurnRunning, StartedAt: time.Now(),
	}
	d.shown = append(d.shown, d.turn)
}

func (d *desk) front() agent.Frontend { return d.bot.app.Frontend() }

// show shows the turn as it stands.
func (d *desk) show() {
	t := d.turn
	t.Content.Items, t.Cards = slices.Clone(t.Content.Items), slices.Clone(t.Cards)
	d.shown[len(d.shown)-1] = t
	d.front().ShowTurn(t)
}

// say adds to the text that is being written.
func (d *desk) say(text string) {
	items := d.turn.Content.Items
	last := len(items) - 1
	if last >= 0 && items[last].Kind == claude.ItemText && !items[last].Final {
		items[last].Text += text
	} else {
		d.turn.Content.Items = append(items, claude.Item{Kind: claude.ItemText, ID: strconv.Itoa(len(items)), Text: text})
	}
	d.show()
}

// add adds an item of another kind.
func (d *desk) add(it claude.Item) {
	d.settle()
	it.ID = strconv.Itoa(len(d.turn.Content.Items))
	d.turn.Content.Items = append(d.turn.Content.Items, it)
	d.show()
}

// settle makes all that was said final.
func (d *desk) settle() {
	d.turn.Content.Items = slices.Clone(d.turn.Content.Items)
	for i := range d.turn.Content.Items {
		d.turn.Content.Items[i].Final = true
	}
}

// ask asks for a tool, on a new card or on that of an approval.
func (d *desk) ask(card string, terms approvals.Terms) approvals.Approval {
	d.settle()
	d.asked++
	terms.Rule = cmp.Or(terms.Rule, "default")
	a, err := d.store.Ask(context.Background(), d.lease, approvals.Approval{
		ID: newID(), Input: json.RawMessage(fmt.Sprintf(`{"command":"make %d"}`, d.asked)), Terms: terms,
		Card:   approvals.Card{CardID: card},
		Origin: approvals.Origin{SessionID: d.session, TurnID: d.turn.ID, RequestedBy: "ULINUS"},
		Request: approvals.Request{
			Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: "toolu_" + strconv.Itoa(d.asked),
			ToolName: "Bash", ExpiresAt: time.Now().Add(time.Hour),
		},
	})
	d.must(err)
	d.turn.Content.Items = append(d.turn.Content.Items, claude.Item{Kind: claude.ItemToolUse, ID: a.ToolUseID, Final: true, Tool: &claude.ToolUse{ID: a.ToolUseID, Name: a.ToolName, Input: a.Input, State: claude.ToolAsked}})
	if card == "" {
		n := len(d.turn.Cards)
		d.turn.Cards = append(d.turn.Cards, ask.Card{ID: a.CardID, From: len(d.turn.Content.Items) - 1, At: a.CreatedAt, Meanwhile: n > 0 && d.turn.Cards[n-1].Open()})
	}
	for i, c := range d.turn.Cards {
		if c.ID == a.CardID {
			d.turn.Cards[i].Requests = append(slices.Clip(c.Requests), ask.RequestOf(a))
		}
	}
	d.carded = len(d.turn.Content.Items)
	d.turn.Waiting++
	d.show()
	d.front().ShowApproval(a)
	return a
}

// openCard is the card that a request joins, as a worker chooses it: the newest, if nothing was said since.
func (d *desk) openCard() string {
	n := len(d.turn.Cards) - 1
	if n < 0 || d.carded != len(d.turn.Content.Items) {
		return ""
	}
	return d.turn.Cards[n].ID
}

// answered tells the CLI what was decided about what it asked, as a worker does.
func (d *desk) answered() {
	d.turn.Cards, d.turn.Content.Items = slices.Clone(d.turn.Cards), slices.Clone(d.turn.Content.Items)
	for i, c := range d.turn.Cards {
		d.turn.Cards[i].Requests = slices.Clone(c.Requests)
		for j, r := range c.Requests {
			a, err := d.store.ApprovalByID(context.Background(), r.ApprovalID)
			d.must(err)
			if r.Status != approvals.Pending || a.Status == approvals.Pending {
				continue
			}
			if d.turn.Cards[i].Requests[j] = ask.RequestOf(a); d.turn.Waiting > 0 {
				d.turn.Waiting--
			}
			d.ran(r.ToolUseID, a.Status)
		}
	}
	d.show()
}

// ran notes what became of a call that people were asked about.
func (d *desk) ran(toolUseID string, status approvals.Status) {
	for i, it := range d.turn.Content.Items {
		if it.Tool != nil && it.Tool.ID == toolUseID {
			tool := *it.Tool
			if tool.State = claude.ToolDenied; status == approvals.Allowed {
				tool.State = claude.ToolDone
			}
			d.turn.Content.Items[i].Tool = &tool
		}
	}
}

// end ends the turn, as a worker does: the database first, then the screen.
func (d *desk) end(state agent.TurnState, problem string) {
	d.settle()
	d.turn.State, d.turn.EndedAt, d.turn.Problem, d.turn.Waiting = state, time.Now(), problem, 0
	rows := d.commit()
	d.turn.OutboxID = rows[0].ID
	d.show()
	d.front().Tell(rows[1:]...)
	d.closeCards()
}

// commit commits the end of the turn, and shows nothing.
func (d *desk) commit() []outbox.Row {
	d.turn.Cards = slices.Clone(d.turn.Cards)
	for i, c := range d.turn.Cards {
		d.turn.Cards[i].Requests = slices.Clone(c.Requests)
		for j, r := range c.Requests {
			a, err := d.store.ApprovalByID(context.Background(), r.ApprovalID)
			d.must(err)
			if d.turn.Cards[i].Requests[j] = ask.RequestOf(a); a.Status == approvals.Pending {
				d.turn.Cards[i].Requests[j].Status = approvals.Cancelled
			}
		}
	}
	d.shown[len(d.shown)-1] = d.turn
	_, rows, err := d.store.FinishTurn(context.Background(), d.lease, store.FinishedTurn{
		ID: d.turn.ID, State: string(d.turn.State), Approvals: approvals.Cancelled, View: agent.EncodeTurn(d.turn), Mark: string(agent.PromptDone),
	})
	d.must(err)
	return rows
}

// closeCards shows the turn's cards a last time.
func (d *desk) closeCards() {
	for _, id := range d.cardsOf(d.turn.ID) {
		d.front().Show(outbox.CardPost, id)
	}
}

func (d *desk) cardsOf(turn int64) []string {
	var out []string
	for _, a := range d.store.Approvals() {
		if a.TurnID == turn && !slices.Contains(out, a.CardID) {
			out = append(out, a.CardID)
		}
	}
	return out
}

// click is a click on a card's button, with what comes of it.
func (d *desk) click(user, action string, a approvals.Approval) string {
	synctest.Wait() // until all is posted that Slack takes at once: nobody clicks on what is not there
	return d.clickOn(d.cardTS(a), user, action, a)
}

// cardTS is where the card of an approval stands.
func (d *desk) cardTS(a approvals.Approval) string {
	a, err := d.store.ApprovalByID(context.Background(), a.ID)
	d.must(err)
	return a.MessageTS
}

// clickOn is a click on a button of the message at ts.
func (d *desk) clickOn(ts, user, action string, a approvals.Approval) string {
	return d.clickIn(deskChannel, ts, user, action, a)
}

func (d *desk) clickIn(channel, ts, user, action string, a approvals.Approval) string {
	in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
		"type": "block_actions", "team": object{"id": deskTeam}, "user": object{"id": user, "team_id": deskTeam}, "channel": object{"id": channel},
		"container": object{"type": "message", "message_ts": ts, "thread_ts": deskThread, "channel_id": channel}, "trigger_id": "t",
		"actions": []any{object{"type": "button", "action_id": action, "value": view.Ref(a), "block_id": "b"}},
	})})
	d.must(err)
	return d.bot.app.Act(context.Background(), in)
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// wrongIn is what an app says is wrong in a form that is sent, by input.
func wrongIn(app *App, in *chat.Incoming) (wrong map[string]string) {
	in.Row.ChannelID, in.UserTeam = "", "T0NOBODY" // so that nothing comes of it
	app.Take(context.Background(), in, func(_ context.Context, said map[string]string) { wrong = said })
	app.Wait()
	return wrong
}

// Store is all that an app needs of the database.
type Store interface {
	chat.Store
	costs.Store
}
