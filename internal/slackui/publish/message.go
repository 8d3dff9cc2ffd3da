package publish

import (
	"context"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render"
)

// API is what the scheduler needs of Slack's Web API; *slack.Client has it.
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
	// Live is for states that a newer one will replace soon. They are paced and
	// may not use the last calls of a rate. A live message's first post is
	// treated as Normal: the first text goes out at once.
	Live Priority = iota
	// Normal is for what should be seen soon: it is not paced. A last state of it that is an
	// edit tells no news, and waits for all others.
	Normal
	// Answer is for what people asked for: how a turn ended, what is said to them.
	Answer
	// Card is for what somebody has to decide about, as the work waits for it.
	Card
	// Click is for what shows people that their click was taken.
	Click
)

// Message is one state of a message in Slack.
type Message struct {
	// Key names the message for as long as the process lives, for example
	// "turn/12/0". It must not be empty.
	Key string
	// Channel and ThreadTS say where it is posted; ThreadTS may be empty. Only
	// those of the first Show of a key count.
	Channel, ThreadTS string
	// Broadcast shows a reply in its channel, too.
	Broadcast bool
	// TS is the message's ts when it was posted by an earlier process, so that it
	// is edited and not posted again; else empty.
	TS string
	// After is the key of a message that must be in the thread before this one
	// is posted, or empty. A key that is not known is not waited for.
	After string
	// Page is the content. It must not be changed after the call.
	Page render.Page
	// Recipient is for whom the message is; a message that has none does not begin as a
	// stream.
	Recipient Recipient
	// Metadata is posted with the message, unseen by people, for whoever looks for it
	// after a crash; the zero value is none.
	Metadata slack.SlackMetadata
	// Priority says how urgent this state is. A last state is Normal at least.
	Priority Priority
	// Final marks the last state of the key: it is retried for long and sent before a stop,
	// further states are ignored, and once it is sent the key is forgotten.
	Final bool
	// Group is what rates are shared out fairly between: the thread.
	Group string
	// Hold, if it is not nil, is asked before each call of a state that is not final: as long
	// as it says yes, the message may be another process's, and nothing is sent. It must
	// return at once.
	Hold func() bool
	// Wanted, if it is not nil, is asked before the message is posted, and again when the post
	// is tried again: false drops the message, an error has it asked again later.
	Wanted func(ctx context.Context) (bool, error)
	// Find looks in Slack for the message, as a post whose answer was lost may have come
	// through; it returns the message's ts, or "" if it is not there. It is asked before a
	// post is made again, and before the first one of a message that is Doubtful: an
	// earlier process may have posted it. nil: nobody can tell, and it is posted again.
	Find     func(ctx context.Context) (ts string, err error)
	Doubtful bool
	// OnEnd is called once, when this state or a newer one has reached Slack (nil), is not
	// wanted any more (nil), or when the scheduler gives it up, with why; see [MayPass].
	// It is not called when the scheduler stops before that. It may call Show.
	OnEnd func(error)
	// OnPosted is called once, with the new message's ts, before any edit of it
	// is sent. It runs on the goroutine of the call and should not take long.
	OnPosted func(ts string)
	// OnError is called when the scheduler gives the key up: the message or the
	// channel is gone, Slack refuses even a sentence in its place, or a state
	// could not be delivered for Options.GiveUpAfter. It may call Show.
	OnError func(error)
}

// Recipient is a person of a workspace, by Slack's ids.
type Recipient struct{ Team, User string }

// held reports whether nothing may be sent of the message in this state.
func (m *Message) held() bool { return m.Hold != nil && !m.Final && m.Hold() }

func (m *Message) priority() Priority {
	if m.Final {
		return max(Normal, m.Priority)
	}
	return m.Priority
}

// stays reports whether a state is sent before the scheduler stops, and all of it where
// Slack takes a part alone.
func (m *Message) stays() bool { return m.Final || m.Priority >= Answer }

// Call is any other call of a Web API method, to be made once.
type Call struct {
	// Method is the method whose rate the call uses.
	Method Method
	// Channel is needed for methods that Slack limits per channel
	// (chat.postMessage), else it may be empty.
	Channel string
	// Key, when it is not empty, keeps order: calls of one key are made one after
	// another. With Replace, calls of the key that have not begun are dropped for
	// this one, as for a status of which only the latest counts.
	Key     string
	Replace bool
	// Priority and Group are as in Message.
	Priority Priority
	Group    string
	// Timeout bounds one attempt; zero means Options.CallTimeout.
	Timeout time.Duration
	// Do makes the call. It is called again after a rate limit and after errors
	// that may pass, up to Options.CallAttempts times in all, or if it is Patient for
	// Options.GiveUpAfter.
	Do      func(ctx context.Context) error
	Patient bool
	// What says in the logs what the call was for.
	What string
	// OnError is called when the call has failed for good, with the last error;
	// may be nil.
	OnError func(error)
	// OnEnd is called once when the call was made (nil) or has failed for good; may be
	// nil. It is not called when the scheduler stops before that.
	OnEnd func(error)
}
