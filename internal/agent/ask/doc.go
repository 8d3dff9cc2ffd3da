// Package ask decides about a turn's tool calls. The [Desk] of a turn asks the policy, looks for
// grants, and has people asked; it commits what was decided before the CLI learns of it, and tells
// the model of an answer in words. It does the same for the hosts that the turn's programs want to
// reach, and for pushes, which are looked at first.
//
// A desk has no goroutine, no mailbox and no lease: the worker of package agent has these, and a
// [Worker] is what a desk needs of it.
package ask
