package agent

import (
	"context"
	"time"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// Frontend is where people see a thread's work: package chat implements it
// (chat/frontend.go), and hands turns to its Screen, which is slackui's
// (slackui/turns.go). Every method returns at once and may be called from any
// worker's goroutine; the frontend coalesces, paces and retries on its own time,
// so that a slow Slack never holds a worker up.
type Frontend interface {
	// ShowTurn shows the turn as it stands now. The latest call wins; calls for
	// one turn come from one goroutine, in order. After a call with State.Ended()
	// or Parked there is no further one for that turn.
	ShowTurn(TurnView)
	// ShowApproval shows an approval on its card: pending with buttons, or as it
	// ended.
	ShowApproval(approvals.Approval)
	// Hides reports whether people are not shown a text whole, as it has what looks like a
	// secret.
	Hides(text string) bool
	// Name is what a person is called. It may take a look-up.
	Name(ctx context.Context, user string) string
	// Show shows something as the database has it: a card, as when its turn is over and
	// nothing will be asked on it again; what a prompt waits for, or that it does no longer;
	// a budget, in the thread and where the budget says.
	Show(kind outbox.PostKind, id string)
	// ShowQueue shows in a thread what waits there: prompts without a turn, which the
	// frontend reads from the database, and the start of the thread's process, if there is one
	// to be waited for.
	ShowQueue(threadID int64, start *StartWait)
	// ShowPlace shows how many threads are before this one in the queue for a session, or
	// [Served].
	ShowPlace(t threads.Thread, before int)
	// SetShare says how much of what the chat allows may be used from now on: the rest is
	// other replicas'.
	SetShare(Share)
	// CloseOffer takes back what an ended turn offers (TurnView.Continue): the thread
	// has gone on.
	CloseOffer(turnID int64)
	// Changed has overviews looked at again: a replica, which may be this one, says that
	// something has changed there.
	Changed(replica string)
	// MarkPrompt shows on the person's own message how far it has come. How it ended
	// is an outbox row; see Tell.
	MarkPrompt(inbox.Prompt, PromptMark)
	// Tell shows what was committed to be shown, in this order. What cannot be shown now
	// stays in the outbox.
	Tell(...outbox.Row)
	// Say posts a sentence into the thread that is lost with this process; see
	// [store.Store.Say] for others.
	Say(threads.ThreadKey, string)
	// OfferConnection tells a person, and nobody else, a sentence about a site at which they can
	// connect their account, with a button that does.
	OfferConnection(k threads.ThreadKey, user, site, sentence string)
	// Attach puts a text into the thread, folded, as a file of this name.
	Attach(k threads.ThreadKey, name, text string)
	// Abandon marks what a turn of this process has left in the thread: it goes on
	// elsewhere, and its controls are dead.
	Abandon(turnID int64, sentence string)
	// Leave forgets a turn whose thread another replica has taken: what it had still to
	// show is that replica's to show.
	Leave(turnID int64)
}

// Share is a replica's part, from 0 to 1, of what a chat allows its app: Turns of what is
// shown of turns, Anywhere of what falls to whichever replica learns of it.
type Share struct {
	Anywhere, Turns float64
}

// Served is the place of a thread that waits for no session any more: it has one, or
// wants none.
const Served = -1

// Authoriser knows who may decide about what.
type Authoriser interface {
	// MayDecide reports whether a person is entitled to decide about an approval now.
	// It may have to ask Slack, for as long as ctx lasts: call it beside a worker, never
	// on its loop. What cannot be established is no.
	MayDecide(ctx context.Context, userID string, a approvals.Approval) bool
}

// Reminder tells people that an approval still waits.
type Reminder interface {
	// Remind blocks until people are told, or need not be; an error has it called again
	// later. stage counts from 0.
	Remind(ctx context.Context, a approvals.Approval, stage int) error
}

// PromptMark says how far a prompt has come.
type PromptMark string

// The marks of a prompt. The last five are how it ended.
const (
	PromptQueued     PromptMark = "queued"
	PromptWaits      PromptMark = "waits" // what it needs is tried again later
	PromptRunning    PromptMark = "running"
	PromptDone       PromptMark = "done"
	PromptFailed     PromptMark = "failed"
	PromptStopped    PromptMark = "stopped" // by a person
	PromptPaused     PromptMark = "paused"  // nobody decided in time, or the CLI was interrupted
	PromptOverBudget PromptMark = spend.OverBudget
)

// TurnState says whether a turn runs and how it ended.
type TurnState string

// The states of a turn. A turn ends in exactly one of the last three.
const (
	TurnRunning     TurnState = "running"
	TurnDone        TurnState = "done"
	TurnInterrupted TurnState = "interrupted"
	TurnFailed      TurnState = "failed"
)

// Ended reports whether the turn is over.
func (s TurnState) Ended() bool { return s != TurnRunning }

// TurnView is one turn of a thread as people should see it: a plain value, safe to
// keep. Content is what the CLI said, folded; the rest is what Deckhand knows.
type TurnView struct {
	ID       int64 // the row in turns
	ThreadID int64
	Thread   threads.ThreadKey // where it is shown
	Project  string
	// Workspace is the folder the thread works in.
	Workspace string
	// RequestedBy is the Slack user whose prompt the turn answers.
	RequestedBy string
	State       TurnState
	Content     claude.Output
	StartedAt   time.Time
	EndedAt     time.Time // zero while it runs
	// AgentTurns is the number of model round-trips, CostMicroUSD what the turn
	// cost in micro-USD by the ledger; both are known at the end. Unfinished marks a
	// cost beside which the provider may bill more, of calls that were cut. Settling says
	// that the turn is shown once more, with what its last calls have cost.
	AgentTurns   int
	CostMicroUSD int64
	Unfinished   bool
	Settling     bool
	// Cards are those on which the turn has asked for something, in the order in which they
	// were posted.
	Cards []ask.Card
	// Closing, if it is not 0, is the length that Content.Items had when the closing answer
	// of a turn began: it is a message of its own, so that it is heard of as a whole. The turn
	// was long, or somebody has written below what it had shown.
	Closing int
	// Granted are the tool calls, by tool_use id, that somebody's grant allowed.
	Granted map[string]ask.Grant
	// Spent is what subagents that have ended have cost, in micro-USD by the ledger, by the
	// tool_use ids of the calls that started them: the model's answers to them and to their
	// own subagents. One of which that is not known, as it goes on in the background, has
	// none.
	Spent map[string]int64
	// Mark is how the turn's prompt is marked, once the turn has ended; empty where it
	// goes on elsewhere.
	Mark PromptMark
	// Steps is the number of tool uses, and of hosts that programs wanted to reach, about
	// which was decided or is to be, but for those that keep the list of work; Contained is
	// how many of them ran unasked, since they stayed inside the sandbox and the posture is
	// contained.
	Steps, Contained int
	// Left are the command lines of the programs that still run in the session when the turn
	// has ended, for as long as the session's process lives.
	Left []string `json:",omitempty"`
	// StoppedBy is the Slack user who stopped the turn, or empty.
	StoppedBy string
	// Waiting is the number of approvals that the turn is waiting for now.
	Waiting int
	// Parked says that the turn sleeps until somebody decides what it waits for: it has no
	// process, and will go on in a turn of its own.
	Parked bool
	// Quiet says since when nothing was heard in the turn, or people are waited for; nil while
	// there is nothing to tell of that.
	Quiet *Quiet `json:"-"`
	// Effort is how much somebody chose that the model thinks; empty for its own choice.
	Effort string `json:",omitempty"`
	// Held names the budget that a call of the turn waits for, since calls of others that
	// are under way have reserved what is left of it; else empty.
	Held string
	// Problem is a sentence for people when State is TurnFailed or
	// TurnInterrupted, with what to do next; else empty.
	Problem string
	// Continue offers to go on, to whoever may write here: a budget stopped the turn.
	Continue bool
	// Committed says that the turn has made commits, whose diff a window shows.
	Committed bool `json:",omitempty"`
	// OpensPull offers to open a pull request of them, to whoever may write here.
	OpensPull bool `json:",omitempty"`
	// OutboxID is the outbox row that this view was committed as, once the turn has ended; 0
	// for none.
	OutboxID int64 `json:"-"`
}

// Offers reports whether an ended turn offers something, until the thread goes on.
func (t TurnView) Offers() bool { return t.Continue || t.OpensPull }

// Quiet is a silence: of the model or a tool, or of people if Of is empty.
type Quiet struct {
	Since time.Time
	Of    string
}
