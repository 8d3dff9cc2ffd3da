package agent

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store"
	"deckhand/internal/transcript"
	"deckhand/internal/workspace"
)

// machine is where sessions run. [*host] is this one.
type machine interface {
	// uptime is how long the machine has been up, and kernel names it and this start of it.
	uptime() time.Duration
	kernel() string
	// liveFor has all that start and prepare have started end after this time, unless it is
	// called again by then: even if this process is stopped, so that it can end nothing.
	liveFor(left time.Duration)
	// takes reports whether what a turn writes is kept, as a [*diskError] if not.
	takes(ctx context.Context) error
	// workspace returns the folder that the thread works in, making it at the first use and
	// whenever it is missing, and what people should know of that, in sentences. Its errors
	// are sentences for people.
	workspace(ctx context.Context, t store.Thread, p Project) (dir string, told []string, err error)
	// prepare runs the project's setup in the thread's workspace if it is due; begins is
	// told when it runs. Its error ends the start of the session.
	prepare(ctx context.Context, t store.Thread, p Project, begins func()) (prepared, error)
	// reserve notes that what is made for a thread is thrown away unless unreserve is told
	// to keep it: by unreserve, or by the next run of the bot.
	reserve(t store.Thread, p Project) error
	unreserve(t store.Thread, p Project, keep bool) error
	// startsFrom names what a new thread's process is given of its workspace, as it is now:
	// another name is another beginning. It fails if the workspace is not what a new
	// thread's would be.
	startsFrom(ctx context.Context, t store.Thread, p Project) (string, error)
	// missing reports whether a folder that workspace has made is gone.
	missing(dir string) bool
	// start starts the CLI on the thread's session in its workspace and initializes it. A
	// process that ends meanwhile gives a [*claude.ExitError]. Its calls of the model are
	// told to the meter; when it is gone none begins, and those that are under way are
	// read to their end. It may take patience times as long as usual.
	start(ctx context.Context, t store.Thread, p Project, resume bool, patience int, calls gateway.Meter, log *zap.Logger) (process, error)
	// folders are the threads' own, with their sizes.
	folders(ctx context.Context) ([]workspace.Folder, error)
	// putAway removes the thread's folder if all that it has is somewhere else; see
	// [workspace.Keeper.PutAway].
	putAway(ctx context.Context, t store.Thread, p Project) (stays string, told []string, err error)
	// elsewhere reports whether all that is kept of the thread's work is somewhere else; see
	// [workspace.Keeper.KeptElsewhere].
	elsewhere(ctx context.Context, t store.Thread, p Project) (bool, error)
	// home is the folder in which the CLI keeps the thread's sessions, or empty where it is
	// not to be looked into.
	home(threadID int64) string
	// restore has the home hold a session as it was copied, unless what it holds goes on
	// from there; it reports whether it wrote. A home that cannot be written gives a
	// [*transcript.HomeError]. The thread has no process.
	restore(ctx context.Context, t store.Thread, copies []store.Transcript, read transcript.ReadCopy) (bool, error)
	// head is the commit that a folder's working tree is at, or empty where that cannot
	// be told.
	head(ctx context.Context, dir string) string
	// publish brings what the thread has committed on its own branch to where people look
	// for it. Its error is a sentence for people.
	publish(ctx context.Context, t store.Thread, p Project) error
	// save saves what the thread has made where the folder can be made anew from, on this
	// machine and elsewhere. left tells people, in sentences, what it could not save; its
	// error is for them, too, or [store.ErrFenced].
	save(ctx context.Context, t store.Thread, p Project) (left string, err error)
}

// process is a session's CLI, initialized: what a worker needs of [*claude.Process],
// which tells what each method does. The worker answers each request once.
type process interface {
	PID() int
	SessionID() string
	Next(ctx context.Context) (claude.Message, error)

	Prompt(uuid string, content ...claude.Block) error
	Interrupt(ctx context.Context) error
	SetModel(ctx context.Context, model string) error

	AnswerPreToolUse(requestID string, d claude.HookDecision, reason string) error
	AnswerHook(requestID string, a claude.HookAnswer) error
	Allow(requestID string, input json.RawMessage, updates ...claude.PermissionUpdate) error
	Deny(requestID, message string, interrupt bool) error

	Baseline(ctx context.Context) (claude.Usage, error)

	// AllowPush lets pushes to the forge through until EndPush: a tool use is about to run
	// that was allowed as a push, or as a forced one. EndPush without a name ends all.
	AllowPush(toolUseID string, force bool)
	EndPush(toolUseID string)
	// OnGit names who is told of fetches and pushes; it must return at once.
	OnGit(tell func(gitway.Event))

	Stop(ctx context.Context) error
	Kill()
	// OnAsk names who is asked about hosts that the project does not list.
	OnAsk(a egress.Asker)
	// visits are the hosts that were visited since this was asked last.
	visits() []egress.Visit
	Done() <-chan struct{}
	Exit() *claude.ExitError
}
