// Package publish sends everything that Deckhand says to Slack. It is the one
// scheduler of outgoing calls, because Slack counts them per method for the
// whole app: a thread that edits its message uses up what another thread would
// need to show an approval card.
//
// It knows messages and calls, not turns or approvals: what a message looks like
// is package render's business, and what is said when is package slackui's. It
// opens no socket and reads nothing from Slack.
//
// # A message
//
// A message has a key, and callers show its latest state as often as they like.
// Only the latest state is ever sent:
//
//	         Show                    rate, pace, order
//	(new) ────────▶ pending ─────────────────────────────▶ in flight
//	                 ▲   ▲                                   │  │  │
//	                 │   └── newer state, or to be retried ──┘  │  │
//	                 │ Show                                     │  │
//	                clean ◀──────── sent, nothing newer ────────┘  │
//	                                                               ▼
//	                       final state sent, or given up ───▶ forgotten
//
// One call is in flight per key, so edits never overtake each other, and a post
// whose answer is awaited is never posted twice: states shown meanwhile wait for
// its ts and become an edit.
//
// A post whose answer was lost (a timeout, a broken connection) may have reached
// Slack or not. Before it is made again it is looked for, if its caller knows how
// (Message.Find): where it stands it is edited. What nobody can find is posted again:
// a message that stands twice in a thread is a blemish, an approval card or an
// answer that is missing stops the work. Only the second one is edited later; a
// button on the first still works, since a button carries nothing but an id that
// is resolved once.
//
// Whoever has to know what became of a state gets it by OnEnd: it is in Slack, or it
// was given up.
//
// # Two budgets
//
// A message that changes often is edited (chat.update), or it is begun as a native stream
// and appended to (chat.startStream, chat.appendStream, chat.stopStream): two budgets, of
// which the second is twice the first. A page that can be appended to says so (render.Stream:
// its text up to a seam that later text does not change, its tools as tasks). Which budget a
// message is served from is decided when it is posted: while few messages change, edits are
// often enough; else it is a stream, if Slack lets one begin now and it would change more
// often so.
//
//	         start                         a tool, a sentence
//	(new) ──────────▶ stream ◀──────────────────────────────── append
//	   │                │ the last state, a decision that is waited for, 225 s, 9,000 bytes,
//	   │ post           │ 45 blocks, 25 s without a word, text that is not a continuation,
//	   ▼                ▼ an append whose answer was lost, another that needs its place
//	edited ◀───────── stop ── and an edit, which shows all of it
//
// What an edit shows depends on nothing that was appended, so that nothing is lost or
// doubled where one follows the other: an append of which nobody knows whether Slack has it
// is not made again, the message is edited. While a tool runs and nothing else is to be
// said, its task is sent again now and then: Slack ends a stream in which nothing comes. A
// stream that another process has left is stopped when its message is edited: Slack refuses
// the edit until then. A last state that may not stop its stream yet is appended meanwhile.
//
// A stream that has ended is not followed by another: one message that is edited is one
// notification, one link and one text, and a second one would part a sentence, a list or a
// block of code that is being written where nobody has, and call people in the middle of the
// work. What a stream cannot hold is edited from then on; the next message of the turn, below
// a card or when this one is full, may be a stream again.
//
// What the two budgets can give: of chat.appendStream's 100 calls a minute 94 go on without
// end, of chat.update's 50 it is 42; 20 streams may begin. A stream needs a call every 25 s, so
// that about forty may be open: one that wants to begin then takes the place of the oldest, if
// nobody looks at that. Sixty threads with turns of three minutes begin and end 20 turns a
// minute. Their last states and full pages take 23 edits of the 42. Of the 20 about 17 begin
// as streams, since turns do not begin evenly, and a message is not kept waiting until it may
// be one; what follows a stream in the same turn therefore leaves the starts to others while
// they are few. So forty streams change every 26 s, and twenty messages share 19 edits: every
// 63 s, where 24 s would be even. To have them all alike every turn had to begin as a stream,
// or to become one in the middle.
//
// Where Slack has no streams (an unknown method, a missing scope, a kind of channel) that is
// remembered for six hours, and messages are posted and edited.
//
// # What goes first
//
// Each method has a token bucket, sized so that no window of 60 seconds holds
// more calls than Slack allows, and chat.postMessage one more for each channel. Replicas
// are one app to Slack: each has its share of the rates ([Scheduler.SetShare]).
// Among the calls that may go now the highest priority wins, then what does not only tidy up, then the group (thread) that
// somebody has clicked or written in lately ([Scheduler.Look]), then the one that was
// served least recently, then the one that waited longest. The last tokens of a bucket
// are kept for what people wait for, in the order of their patience: a third of them for what
// shows that a click was taken and for cards ([Click], [Card]), the others for answers, too
// ([Answer]). The more is live, the more are kept, as that many may end at once, against
// progress and against edits that only tidy up (what came out stands there, as a stream's
// last words do, or below, or the line is done). So each waits for nothing of
// less use. Changes of one message are at
// least 400 ms apart, and further when many messages are live at once: each has its share
// of what its budget gives back, one that is looked at three.
//
// # Goroutines
//
// [Scheduler.Run] owns all of them: itself, which decides, and one for each call
// in flight. It waits for them before it returns. Nothing ticks while nothing is
// pending. Show and Once only take a lock for a moment, and may be called from
// anywhere.
package publish
