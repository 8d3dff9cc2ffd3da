// Package place is where a session runs: its folder, its environment, its sandbox and its ways
// out, the process itself, and how many may live and start at once on this machine.
//
// A [Machine] makes what a session needs and starts its CLI; [*Host] is the one that the bot
// runs on. [Slots] and [Starts] say whose turn it is. It knows nothing of workers, turns,
// approvals or prompts: whoever starts a session says for which thread and which [Project].
package place
