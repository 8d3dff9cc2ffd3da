package chat

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// Screen is the chat program: it shows plain values, and tells what people wrote.
type Screen interface {
	teller
	windows
	poster
	turnShower
	record
}

// Where is a place in the chat; Thread is empty outside threads.
type Where struct{ Channel, Thread string }

// teller tells people something. What it tells it sends when it can, in the background.
type teller interface {
	// Whisper tells one person so that nobody else sees it. Here and below end, if it is not nil, is
	// called with what became of it.
	Whisper(at Where, user string, page view.Page, end func(error))
	// Direct sends a person a direct message.
	Direct(user string, page view.Page)
	// Say posts into a thread, and tries for long: what was told to nobody was not said.
	Say(at Where, page view.Page)
	// PostOnce posts what comes of something incoming, once, and returns the message's ts.
	PostOnce(ctx context.Context, in *Incoming, page view.Page) (ts string, err error)
	// Attach puts a file into a thread.
	Attach(k threads.ThreadKey, name, text string, end func(error))
	// Replace has the message that was clicked on say something else.
	Replace(in *Incoming, page view.Page)
	// React marks a message of a person's, and Unreact takes a mark away.
	React(channel, ts string, m agent.PromptMark, end func(error))
	Unreact(channel, ts string, m agent.PromptMark, end func(error))
	// MarkWaits shows on a message that it waits, or takes the mark away.
	MarkWaits(channel, ts string, waits bool, end func(error))
	// Suggest offers a person who begins to write to us what to say: work on a project, if one is
	// named, and what it cost.
	Suggest(in *Incoming, project string)
}

// windows opens what one person sees over everything else.
type windows interface {
	// Open opens a window for who clicked; the zero Window is of one that the chat did not
	// open, which the person was told then.
	Open(ctx context.Context, in *Incoming, form view.Form) (Window, error)
	// Update shows something else in a window that is open. One that was closed, or has changed
	// since, is left alone, and the person is told if they clicked in it.
	Update(ctx context.Context, in *Incoming, open Window, form view.Form) error
	// ShowHome publishes somebody's own page. A refresh takes the place of nothing that another
	// replica has published since.
	ShowHome(user string, home view.Home, refresh bool)
}

// poster shows what is posted once and edited.
type poster interface {
	// Post posts or edits a message. Forget drops one that is not to be shown any more, before
	// Delete deletes it: where it stands, or where its mark is found if ts is empty.
	Post(m Posting)
	Forget(key string)
	Delete(at Where, ts string, mark Mark, end func(error))
	// Shows reports whether this process has shown a message.
	Shows(key string) bool
	// Find is the ts of our message with a mark; empty if there is none.
	Find(ctx context.Context, at Where, mark Mark) (ts string, err error)
	// Asks reports whether a message has the buttons of a card that waits.
	Asks(ctx context.Context, channel, ts string) (bool, error)
	// SetShare says how much of what the chat allows may be used from now on.
	SetShare(s agent.Share)
	// Watched records that somebody is looking at a thread.
	Watched(threadTS string)
	// IsTemporary reports whether a call that failed may succeed later; RetryAfter also says how long the chat
	// wants us to wait. Refused is the chat's error code, or empty.
	IsTemporary(err error) bool
	RetryAfter(err error) (after time.Duration, ok bool)
	Refused(err error) string
}

// turnShower shows turns, and cards as parts of them.
type turnShower interface {
	// ShowTurn shows a turn as it stands now, see [agent.Frontend].
	ShowTurn(t agent.TurnView, end func(error))
	Abandon(turnID int64, sentence string)
	Leave(turnID int64)
	CloseOffer(turnID int64)
	// Running is a turn that this process shows, as it was last; one without an ID if it does not.
	Running(turnID int64) agent.TurnView
	// ShowLeftTurn shows how a turn of a process that has died ended.
	ShowLeftTurn(w outbox.Row, t agent.TurnView, end func(error))
	// LeaveTurn marks what such a turn has left in its thread with a sentence. nothing, if it is not nil,
	// is called instead of end if that is nothing.
	LeaveTurn(w outbox.Row, end func(error), nothing func())
	// Left ends what such a process may have shown of a thread.
	Left(k threads.ThreadKey)
	// ShowCard shows a card in its thread.
	ShowCard(c CardPosting)
}

// record is what people wrote.
type record interface {
	// Decode reads a row of the inbox; nil is of what is none of our business.
	Decode(row inbox.Envelope) (*Incoming, error)
	// FromRecord is a post of the chat's record as if it had been delivered; nil for what would not
	// have been.
	FromRecord(channel string, p Post, late bool) (*Incoming, error)
	// Payload is what the chat would deliver of a message of a person's that mentions us: of its
	// Text, or of what was Said where that is empty, with its Files, About and ForModel.
	Payload(row inbox.Envelope, team string, m Message) (json.RawMessage, error)
	// History reads what was posted, and Directs the channels of direct messages with us.
	History(ctx context.Context, h History) (Found, error)
	Directs(ctx context.Context, cursor string) (channels []string, next string, err error)
	// Permalink is the address of a message; empty if it has none.
	Permalink(channel, ts string) string
	// Typed is a text as it was typed, with people's names, and Said the same for commands, with
	// their ids and without our mention.
	Typed(ctx context.Context, text string) string
	Said(text string) string
	// Unmarked is a text as it was typed, but for people, who stay as the chat marks them.
	Unmarked(text string) string
	// Mentions reports whether a text mentions us, ToOthers whether it begins with another's name.
	Mentions(text string) bool
	ToOthers(text string) bool
	// Links are the messages of this workspace that a text links to, each once.
	Links(text string) []Link
}

// History says what of the chat's record is read: of a channel, or of a thread of it.
type History struct {
	Channel, Thread string
	Oldest, Latest  string // ts; empty: no bound
	Inclusive       bool
	Limit           int
	Cursor          string
}

// One is the history of one message.
func One(channel, thread, ts string) History {
	return History{Channel: channel, Thread: thread, Oldest: ts, Latest: ts, Inclusive: true, Limit: 2}
}

// Found is a part of the record. Next continues it, if there is More.
type Found struct {
	Posts []Post
	More  bool
	Next  string
}

// ErrNoThread is of the history of a thread that is gone.
var ErrNoThread = errors.New("there is no such thread")

// Link is where a link leads: to a message, and to the thread that it is in.
type Link struct{ Channel, TS, Thread string }

// People are who they are now.
type People interface {
	// Establish answers a question about a person with the facts that it takes.
	Establish(ctx context.Context, team, user, channel string, ask func(access.Facts) access.Answer) access.Answer
	Name(ctx context.Context, user string) string
	// Profile is a person's full name and address, empty where the chat does not tell.
	Profile(ctx context.Context, user string) (name, email string, err error)
	// Direct is the channel of the direct messages with a person.
	Direct(ctx context.Context, user string) (channel string, err error)
	Reads(ctx context.Context, user, channel string) bool
	Group(ctx context.Context, group string) (users map[string]bool, err error)
	// Topic is what a channel says that it is for, and Public whether everybody reads it.
	Topic(ctx context.Context, channel string) (string, error)
	Public(ctx context.Context, channel string) bool
	// Joined reports whether we are in a channel.
	Joined(ctx context.Context, channel string) (bool, error)
}

// Costs answers questions about costs.
type Costs interface {
	Asks(ctx context.Context, user string, at view.Place, words string) (bool, error)
	Answer(ctx context.Context, user string, at view.Place, words string) (outcome string, refused *access.Refusal, err error)
	FillHome(ctx context.Context, home *view.Home, user string, now time.Time) error
}
