// Package claude drives the Claude Code CLI: it starts the program, speaks its
// newline-delimited JSON protocol over stdin and stdout, and turns what it says
// into typed messages, into the state of a turn that a person should see
// ([Output], a pure fold) and into exact amounts for a ledger ([Meter]).
//
// It knows nothing of chats, databases, policies or budgets: who may approve
// what, what is stored and what is shown is decided by its caller. It never
// answers a tool request by itself.
//
// # A process
//
//	Start ──► starting ──initialize answered──► ready ──Prompt──► running ──result──► idle ──┐
//	                                              ▲                  │  ▲                │     │
//	                                              │     can_use_tool ▼  │ answered       └─────┤ Prompt
//	                                              │               awaiting                     ▼
//	                                              │                                         running
//	any state ──Stop, Kill, exit, a line over the limit──► exited
//
// A [Process] owns five goroutines, all started by [Start] and all gone when
// [Process.Done] is closed: the reader of stdout, the reader of stderr, the
// writer of stdin, the one that waits for the program, and the one that closes
// up behind them. In-process MCP servers add one each. The reader never waits
// for its consumer: what is not fetched by [Process.Next] is queued, with
// adjacent deltas merged, so that a slow consumer costs memory in proportion to
// the text and never holds the CLI up.
//
// # Its descendants
//
// The CLI runs its shell commands in sessions of their own, out of reach of its
// process group. [Start] therefore puts a reaper between: this same binary,
// started again as package reaper has it, which adopts
// every orphan below it, and kills all that is left when the CLI has exited,
// when it is told to, or when the program that started it is gone. On Linux
// nothing survives; elsewhere it is done as well as a process table allows.
package claude
