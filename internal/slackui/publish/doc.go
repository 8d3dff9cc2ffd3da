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
// # What goes first
//
// Each method has a token bucket, sized so that no window of 60 seconds holds
// more calls than Slack allows, and chat.postMessage one more for each channel. Replicas
// are one app to Slack: each has its share of the rates ([Scheduler.SetShare]).
// Among the calls that may go now the highest priority wins, then the group
// (thread) that was served least recently, then the one that waited longest. The
// last tokens of a bucket are kept back for priorities above [Live], so that a
// final state or an answer to a click never waits for streaming edits. Live edits
// of one message are at least 400 ms apart, and further when many messages are
// live at once.
//
// # Goroutines
//
// [Scheduler.Run] owns all of them: itself, which decides, and one for each call
// in flight. It waits for them before it returns. Nothing ticks while nothing is
// pending. Show and Once only take a lock for a moment, and may be called from
// anywhere.
package publish
