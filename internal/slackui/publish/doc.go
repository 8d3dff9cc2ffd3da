// Package publish sends everything that Deckhand posts to Slack. It is the only scheduler of outgoing calls,
// because Slack limits them per method for the whole app: a thread that edits its message uses calls that another
// thread may need for an approval card.
//
// It knows messages and calls, not turns or approvals: package render decides how a message looks, and package
// slackui what is posted when. It opens no socket and reads nothing from Slack.
//
// # A message
//
// A message has a key, and callers may show its latest state at any time. Only the latest state is sent:
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
// One call per key is in flight, so edits never overtake each other, and a post without an answer yet is never
// repeated: states shown meanwhile wait for its ts and become an edit.
//
// A post whose answer was lost (a timeout, a broken connection) may have reached Slack. Before it is repeated,
// Message.Find looks for it if set; if found, it is edited. Otherwise it is posted again: a duplicate is a blemish,
// but a missing approval card or answer stops the work. Only the second one is edited later; a button on the first
// still works, since it carries only an id that is resolved once.
//
// OnEnd tells callers the fate of a state: it is in Slack, or it was given up.
//
// # Two budgets
//
// A changing message is edited (chat.update), or begun as a native stream and appended to (chat.startStream,
// chat.appendStream, chat.stopStream): two budgets, of which the second is twice the first. Pages that can be
// appended to say so (render.Stream: text up to a seam that later text does not change, and tools as tasks). The
// budget of a message is chosen when it is posted: while few messages change, edits suffice; else it becomes a
// stream, if Slack allows one now and it would change more often.
//
//	         start                         a tool, a sentence
//	(new) ──────────▶ stream ◀──────────────────────────────── append
//	   │                │ the last state, a decision that is waited for, 225 s, 9,000 bytes,
//	   │ post           │ 45 blocks, 25 s without a word, text that is not a continuation,
//	   ▼                ▼ an append whose answer was lost, another that needs its place
//	edited ◀───────── stop ── and an edit, which shows all of it
//
// An edit shows everything, independent of what was appended, so that nothing is lost or doubled: an append with an
// unknown outcome is not repeated, the message is edited. While a tool runs silently, its task is sent again now
// and then, since Slack ends silent streams. A stream left by another process is stopped when its message is
// edited: Slack refuses the edit until then. A last state that may not stop its stream yet is appended first.
//
// A message does not become a stream twice: one edited message is one notification, one link and one text, while a
// second message would split a sentence, a list or a code block, and notify people in the middle of the work. What
// a stream cannot hold is edited from then on; the turn's next message, below a card or when this one is full, may
// be a stream again.
//
// Capacity: of chat.appendStream's 100 calls a minute 94 are sustainable, of chat.update's 50 it is 42; 20 streams
// may begin. A stream needs a call every 25 s, so about forty may be open: a further one replaces the oldest that
// nobody watches. Sixty threads with turns of three minutes begin and end 20 turns a minute. Their last states and
// full pages take 23 of the 42 edits. Of the 20 turns about 17 begin as streams, since turns do not begin evenly,
// and a message does not wait for a free start; so later messages of a turn leave the starts to others while they
// are few. Thus forty streams change every 26 s, and twenty messages share 19 edits: every 63 s, where 24 s would
// be even. Equal treatment would need every turn to begin as a stream, or to become one in the middle.
//
// If Slack has no streams (an unknown method, a missing scope, a kind of channel), that is remembered for six
// hours, and messages are posted and edited.
//
// # Priorities
//
// Each method has a token bucket, sized so that no window of 60 seconds holds more calls than Slack allows, and
// chat.postMessage one more per channel. Replicas are one app to Slack: each has its share of the rates
// ([Scheduler.SetShare]). Among the possible calls the highest priority wins, then those that do more than tidy up,
// then the group (thread) where somebody has recently clicked or written ([Scheduler.Watched]), then the one served
// least recently, then the one that waited longest. The last tokens of a bucket are reserved for what people wait
// for: a third of them for acknowledged clicks and cards ([Click], [Card]), the others also for answers ([Answer]).
// More are reserved against progress and tidying edits the more messages are live, as that many may end at once. So
// nothing waits for something less useful. Changes of one message are at least 400 ms apart, and further when many
// are live: each has its share of its budget, a watched one three.
//
// # Goroutines
//
// [Scheduler.Run] owns all of them: itself, which decides, and one per call in flight. It waits for them before it
// returns. Nothing ticks while nothing is pending. Show and Once only take a lock briefly, and may be called from
// anywhere.
package publish
