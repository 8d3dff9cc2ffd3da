package place

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/trust"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/sandbox"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/transcript"
	"deckhand/internal/workspace"
)

// Host is the [Machine] that the bot runs on: it makes the folders, the environment and
// the processes of sessions.
type Host struct {
	DataDir string
	Replica string   // its id
	Hidden  []string // the bot's own files and folders, which no session sees
	// Command is the launcher prefix and the CLI's path.
	Command []string
	Version string // the CLI's
	Gateway *gateway.Gateway
	Web     *egress.Proxy
	Policy  *policy.Policy
	Git     *gitway.Gate // nil where no session reaches a forge
	Keeper  *workspace.Keeper
	Works   Works // nil where work is kept on this machine alone
	// Silence is how long the CLI may say nothing while it should speak, and Answer how long
	// it may take to answer.
	Silence, Answer time.Duration
	// Instructions are what is added to the CLI's system prompt in a folder.
	Instructions func(p Project, dir string) (string, error)
	// Servers are the bot's own MCP servers for a thread's process; nil for none.
	Servers func(t threads.Thread, p Project) map[string]*mcp.Server
	// People tells commits whose they are; nil where nobody knows.
	People People
	// Hooks are asked for beside PreToolUse.
	Hooks map[string][]claude.HookMatcher

	made    sync.Map // whom threads' commits are by: gitway.Made, by the thread's id
	probes  probes   // of the data folder
	sound   sync.Map // the projects whose sandbox has been seen to work
	watcher sandbox.Watcher
	line    claude.Lifeline
}

// LiveFor implements [Machine].
func (h *Host) LiveFor(left time.Duration) { h.line.Renew(left) }

// Missing implements [Machine].
func (h *Host) Missing(dir string) bool { return workspace.Missing(dir) }

// Brings returns what the project's repository has of a kind at its base, and the paths of what is left out. fresh has the
// forge asked first.
func (h *Host) Brings(ctx context.Context, p Project, kind string, fresh bool) (files map[string]string, left []string, err error) {
	folders := []string{trust.Folder(kind, "")}
	if p.Subdir != "" {
		folders = append(folders, trust.Folder(kind, p.Subdir))
	}
	return h.Keeper.Texts(ctx, p.space(threads.Thread{}), fresh, folders...)
}

// Folders implements [Machine].
func (h *Host) Folders(ctx context.Context) ([]workspace.Folder, error) {
	return workspace.Folders(ctx, h.DataDir)
}

// worksIn is the thread as its workspace of a repository needs it, for as long as its lease is ours.
func (h *Host) worksIn(t threads.Thread, p Project) workspace.Thread {
	// One that has no folder yet may have been meant for another replica, and is not.
	w := workspace.Thread{ID: t.ID, Branch: t.Branch, Elsewhere: t.Workspace != "" && t.WorkspaceReplica != "" && t.WorkspaceReplica != h.Replica}
	if t.Workspace == "" {
		w.Forked = t.ForkedBranch
	} else {
		w.Dir = workspace.Within(t.Workspace, p.Of)
	}
	if h.Works != nil {
		w.Shelf = shelf{h.Works, threads.Lease{ThreadID: t.ID, Owner: t.LeaseOwner, Epoch: t.LeaseEpoch}, p.Of}
	}
	return w
}

// Restore implements [Machine].
func (h *Host) Restore(ctx context.Context, t threads.Thread, copies []transcripts.Transcript, read transcript.ReadCopy) (bool, error) {
	return h.homes().Restore(ctx, t.ID, t.SessionID, copies, read)
}

// Start implements [Machine].
func (h *Host) Start(ctx context.Context, t threads.Thread, p Project, resume bool, patience int, calls gateway.Meter, log *zap.Logger) (Process, error) {
	prompt, err := h.Instructions(p, t.Workspace)
	if err != nil {
		return nil, err
	}
	if err := h.homes().Renew(t.ID, t.SessionID); err != nil {
		return nil, err
	}
	servers, err := p.mcpConfig()
	if err != nil {
		return nil, &needError{needWeb, p.Name, err}
	}
	box, err := h.box(ctx, t, p, h.Command, calls)
	if err != nil {
		return nil, err
	}
	left := h.Keeper.Works(t.Workspace)
	proc, err := claude.Start(ctx, claude.Options{
		Command:            box.Command,
		Dir:                p.Folder(t.Workspace),
		AddDirs:            p.folders(t.Workspace)[1:],
		Env:                box.Env,
		SessionID:          t.SessionID,
		Resume:             resume,
		Model:              p.Provider.Model(p.Model),
		PermissionMode:     p.PermissionMode,
		AppendSystemPrompt: prompt,
		MaxTurns:           p.MaxTurns,
		Tools:              p.AllowedTools,
		DisallowedTools:    append(policy.Withheld(), p.DisallowedTools...),
		MCPConfig:          servers,
		// What is fetched is bounded by the network, and nobody else has to know of it.
		SkipWebFetchPreflight: p.Sandbox.Network.Proxied(),
		Version:               h.Version,
		SilenceAfter:          h.Silence,
		RequestTimeout:        h.Answer,
		InitializeTimeout:     h.Answer * time.Duration(patience),
		Logger:                log,
		Lifeline:              &h.line,
	})
	if err != nil {
		left()
		return nil, errors.Join(err, box.Close())
	}
	go func() {
		<-proc.Done()
		left()
	}()
	shut := h.shutIn(t, p, proc, box, log)
	initialize := claude.InitializeRequest{PreToolUse: true, Hooks: h.Hooks, Agents: p.Agents}
	if h.Servers != nil {
		initialize.MCPServers = h.Servers(t, p)
	}
	if _, err := proc.Initialize(ctx, initialize); err != nil {
		proc.Kill()
		<-shut.Done()
		h.sound.Delete(p.Name) // what kept it from starting may be the sandbox
		if e := shut.Exit(); e.Reason == claude.ExitLimit {
			return nil, e
		}
		var exit *claude.ExitError
		if !errors.As(err, &exit) && ctx.Err() == nil {
			if e := shut.Exit(); e != nil && e.Reason != claude.ExitKilled {
				err = e
			}
		}
		return nil, err
	}
	return shut, nil
}
