package place

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/store/work"
	"deckhand/internal/transcript"
	"deckhand/internal/workspace"
)

// Place is where the sessions of a replica run.
type Place struct {
	Machine
	Slots  *Slots
	Starts *Starts
}

// Machine is where sessions run. [*Host] is this one.
type Machine interface {
	// Uptime is how long the machine has been up, and Kernel names it and this start of it.
	Uptime() time.Duration
	Kernel() string
	// LiveFor has all that Start and Prepare have started end after this time, unless it is
	// called again by then: even if this process is stopped, so that it can end nothing.
	LiveFor(left time.Duration)
	// Takes reports whether what a turn writes is kept, with an error that has a [Sentence] if not.
	Takes(ctx context.Context) error
	// Workspace returns the folder that the thread works in, making it at the first use and
	// whenever it is missing, and what people should know of that, in sentences. Its errors
	// are sentences for people.
	Workspace(ctx context.Context, t threads.Thread, p Project) (dir string, told []string, err error)
	// Prepare runs the project's setup in the thread's workspace if it is due; begins is
	// told when it runs. Its error ends the start of the session.
	Prepare(ctx context.Context, t threads.Thread, p Project, begins func()) (Prepared, error)
	// AskedBy has the commits of a turn be those of whoever asked for it.
	AskedBy(ctx context.Context, t threads.Thread, p Project, user string) error
	// Missing reports whether a folder that Workspace has made is gone.
	Missing(dir string) bool
	// Start starts the CLI on the thread's session in its workspace and initializes it. A
	// process that ends meanwhile gives a [*claude.ExitError]. Its calls of the model are
	// told to the meter; when it is gone none begins, and those that are under way are
	// read to their end. It may take patience times as long as usual.
	Start(ctx context.Context, t threads.Thread, p Project, resume bool, patience int, calls gateway.Meter, log *zap.Logger) (Process, error)
	// Folders are the threads' own, with their sizes.
	Folders(ctx context.Context) ([]workspace.Folder, error)
	// PutAway removes the thread's folder if all that it has is somewhere else; see
	// [workspace.Keeper.PutAway].
	PutAway(ctx context.Context, t threads.Thread, p Project) (stays string, told []string, err error)
	// Elsewhere reports whether all that is kept of the thread's work is somewhere else; see
	// [workspace.Keeper.KeptElsewhere].
	Elsewhere(ctx context.Context, t threads.Thread, p Project) (bool, error)
	// Home is the folder in which the CLI keeps the thread's sessions, or empty where it is
	// not to be looked into.
	Home(threadID int64) string
	// Restore has the home hold a session as it was copied, unless what it holds goes on
	// from there; it reports whether it wrote. A home that cannot be written gives a
	// [*transcript.HomeError]. The thread has no process.
	Restore(ctx context.Context, t threads.Thread, copies []transcripts.Transcript, read transcript.ReadCopy) (bool, error)
	// Heads are the commits that the working trees of the thread's repositories are at, its own
	// first; empty where that cannot be told.
	Heads(t threads.Thread, p Project) []string
	// Repositories are the folders of the thread's further repositories, from its workspace, in which git
	// obeys what the bot has written and nothing else.
	Repositories(t threads.Thread, p Project) []string
	// Publish brings what the thread has committed on its own branch to where people look
	// for it, within a time. Its error is a sentence for people.
	Publish(ctx context.Context, t threads.Thread, p Project, within time.Duration) error
	// Save saves what the thread has made where the folder can be made anew from, on this
	// machine and elsewhere, within a time. left tells people, in sentences, what it could
	// not save; its error is for them, too, or [threads.ErrFenced].
	// It notes of what the folder is the state, unless end is nil.
	Save(ctx context.Context, t threads.Thread, p Project, within time.Duration, end *workspace.End) (left string, err error)
	// Differs and Rewind are about states that were saved of the thread's repositories, by their short names; see
	// [workspace.Keeper.Differs] and [workspace.Keeper.Rewind]. The thread's own is the first.
	Differs(ctx context.Context, t threads.Thread, p Project, now, then map[string]work.State) ([]Differs, error)
	Rewind(ctx context.Context, t threads.Thread, p Project, now, then map[string]work.State, key string) (told string, err error)
}

// Differs is what a rewind changes in a repository, and takes away.
type Differs struct {
	workspace.Loss
	Of      string // its short name; empty for the project's own
	Stays   bool   // it is left as it is, since its state of then is not kept
	Unasked bool   // the forge could not be asked what it has
}

// Process is a session's CLI, initialized: what is needed of [*claude.Process],
// which tells what each method does. Each request is answered once.
type Process interface {
	PID() int
	// Left lists the command lines of the programs that commands have left running.
	Left() [][]string
	SessionID() string
	Next(ctx context.Context) (claude.Message, error)

	Prompt(uuid string, content ...claude.Block) error
	Interrupt(ctx context.Context) error
	SetModel(ctx context.Context, model string) error
	SetEffort(ctx context.Context, level string) error
	SetPermissionMode(ctx context.Context, mode string) error

	MCPStatus(ctx context.Context) ([]claude.MCPServer, error)
	MCPReconnect(ctx context.Context, server string) error
	MCPToggle(ctx context.Context, server string, enabled bool) error

	AnswerPreToolUse(requestID string, d claude.HookDecision, reason string) error
	AnswerHook(requestID string, specific map[string]any) error
	Allow(requestID string, input json.RawMessage) error
	Deny(requestID, message string, interrupt bool) error

	Baseline(ctx context.Context) (claude.Usage, error)

	// AllowPush lets pushes to the forge through until EndUse: a tool use is about to run
	// that was allowed as a push. EndUse without a name ends all.
	AllowPush(toolUseID string, p gitway.Pass)
	// AllowCall lets one call of an MCP server's tool through until EndUse.
	AllowCall(toolUseID, tool string, input json.RawMessage)
	EndUse(toolUseID string)
	// Outgoing tells what a push in a folder would bring to the forge; nil where there is no
	// way to one.
	Outgoing(ctx context.Context, dir string, p policy.Push) *forges.Push
	// OnGit names who is told of fetches and pushes; it must return at once.
	OnGit(tell func(gitway.Event))

	Stop(ctx context.Context) error
	Kill()
	// Offered is how the process has told the model of an MCP server's tool so far.
	Offered(tool string) []gateway.Tool
	// OnAsk names who is asked about hosts that the project does not list.
	OnAsk(a egress.Asker)
	// Visits are the hosts that were visited since this was asked last.
	Visits() []egress.Visit
	Done() <-chan struct{}
	Exit() *claude.ExitError
}
