package publish

import (
	"context"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render"
)

// API are the used methods of Slack's Web API; *slack.Client implements it.
type API interface {
	PostMessageContext(ctx context.Context, channelID string, options ...slack.MsgOption) (channel, ts string, err error)
	UpdateMessageContext(ctx context.Context, channelID, ts string, options ...slack.MsgOption) (channel, newTS, text string, err error)
	UploadFileContext(ctx context.Context, p slack.UploadFileParameters) (*slack.FileSummary, error)
	StartStreamContext(ctx context.Context, channelID string, options ...slack.MsgOption) (channel, ts string, err error)
	AppendStreamContext(ctx context.Context, channelID, ts string, options ...slack.MsgOption) (channel, newTS string, err error)
	StopStreamContext(ctx context.Context, channelID, ts string, options ...slack.MsgOption) (channel, newTS string, err error)
}

// Priority orders the calls that wait for one method's rate.
type Priority int

// The priorities, lowest first.
const (
	// Live is for states that a newer one will replace soon. They are paced and may not use the reserve of a rate.
	// A live message's first post counts as Normal: the first text goes out at once.
	Live Priority = iota
	// Normal is for what should be seen soon: it is not paced. A last state of it that is an edit is no news, and
	// comes after all others.
	Normal
	// Answer is for what people asked for: how a turn ended, replies to them.
	Answer
	// Card is for decisions, as the work waits for them.
	Card
	// Click is for acknowledging clicks.
	Click
)

// Message is one state of a message in Slack.
type Message struct {
	// Key identifies the message within the process, for example "turn/12/0". It must not be empty.
	Key string
	// Channel and ThreadTS say where it is posted; ThreadTS may be empty. Only those of the first Show of a key
	// count.
	Channel, ThreadTS string
	// Broadcast shows a reply in its channel, too.
	Broadcast bool
	// TS is the message's ts if an earlier process posted it, so that it is edited and not posted again; else
	// empty.
	TS string
	// After is the key of a message that must be in the thread before this one is posted, or empty. Unknown keys
	// are not waited for.
	After string
	// Page is the content. It must not be changed after the call.
	Page render.Page
	// Recipient is the message's reader; a message without one does not begin as a stream.
	Recipient Recipient
	// Metadata is posted with the message, invisible to people, so that Find can find it after a crash; the zero
	// value is none.
	Metadata slack.SlackMetadata
	// Priority is this state's urgency. A last state is at least Normal.
	Priority Priority
	// Final marks the last state of the key: it is retried for long and sent before a stop; further states are
	// ignored, and the key is forgotten once it is sent.
	Final bool
	// Group is the unit of fairness between rates: the thread.
	Group string
	// Hold, if not nil, is called before each call of a state that is not final: while it returns true the message
	// may belong to another process, and nothing is sent. It must return at once.
	Hold func() bool
	// Wanted, if not nil, is called before each attempt to post: false drops the message, an error delays it.
	Wanted func(ctx context.Context) (bool, error)
	// Find looks for the message in Slack, as a post whose answer was lost may have arrived; it returns the
	// message's ts, or "". It is called before a post is repeated, and before the first one of a message that is
	// Doubtful: an earlier process may have posted it. If nil, it is posted again.
	Find     func(ctx context.Context) (ts string, err error)
	Doubtful bool
	// OnEnd is called once, when this state or a newer one is in Slack (nil), is not wanted any more (nil), or is
	// given up, with the reason (see [IsTemporary]): the message or the channel is gone, Slack refuses even a sentence
	// instead, or it could not be delivered for a quarter of an hour. It is not called when the scheduler stops before
	// that. It may call Show.
	OnEnd func(error)
	// OnPosted is called once, with the new message's ts, before any edit of it is sent. It runs on the call's
	// goroutine and should be fast.
	OnPosted func(ts string)
}

// Recipient is a person of a workspace, by Slack's ids.
type Recipient struct{ Team, User string }

// held reports whether nothing may be sent of this state.
func (m *Message) held() bool { return m.Hold != nil && !m.Final && m.Hold() }

func (m *Message) priority() Priority {
	if m.Final {
		return max(Normal, m.Priority)
	}
	return m.Priority
}

// stays reports whether a state is sent before the scheduler stops, and attached completely if Slack accepts only a
// part.
func (m *Message) stays() bool { return m.Final || m.Priority >= Answer }

// Call is another call of a Web API method, made once.
type Call struct {
	// Method is the method whose rate the call uses.
	Method Method
	// Channel is needed for methods that Slack limits per channel
	// (chat.postMessage), else it may be empty.
	Channel string
	// Key, if not empty, keeps order: calls of one key are made one after another. With Replace, this call replaces
	// calls of the key that have not begun, as for a status of which only the latest counts.
	Key     string
	Replace bool
	// Priority and Group are as in Message.
	Priority Priority
	Group    string
	// Timeout bounds one attempt; zero means Options.CallTimeout.
	Timeout time.Duration
	// Do makes the call. It is repeated after a rate limit and after errors that may pass, up to
	// five times, or if it is Patient for a quarter of an hour.
	Do      func(ctx context.Context) error
	Patient bool
	// What describes the call in the logs.
	What string
	// OnEnd is called once when the call was made (nil) or has failed permanently; may be nil. It is not called
	// when the scheduler stops before that.
	OnEnd func(error)
}
