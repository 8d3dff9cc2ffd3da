// Package agent turns Slack threads into Claude Code sessions: one worker per
// live thread takes the thread's prompts one by one, runs them through the CLI,
// has every tool call decided before it runs, and writes what each turn cost to
// the ledger. It knows nothing of Slack: it shows turns and asks questions
// through a [Frontend], and learns from an [Authoriser] who may decide.
//
// The [Supervisor] owns the workers and each worker owns its process. A worker
// is one goroutine with a mailbox; whatever a person or another replica wants
// of a thread is a letter in it. Its states:
//
//	cold ──prompt──► starting ──initialized──► ready ──prompt──► running
//	running ──can_use_tool──► awaiting ──decision──► running
//	running ──result──► ready ──idle──► hibernated (a row, nothing else)
//	any ──process ends──► cold; a running turn ends as failed
//	any ──lease lost──► gone, without another write
//
// awaiting is derived, not stored: a turn runs and approvals are open.
//
// Security. A tool runs only after a decision that is committed: a policy rule's
// (see package policy) or a person's, bound to the SHA-256 of the exact input. Every
// tool call passes our PreToolUse callback, so nothing that lies in a repository
// can allow itself anything; the CLI reads no settings, and its
// environment is an allow-list (see environment.go).
package agent
