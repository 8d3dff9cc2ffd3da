package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/sandbox"
	"deckhand/internal/store"
	"deckhand/internal/workspace"
)

// host is the [machine] that the bot runs on: it makes the folders, the environment and
// the processes of sessions.
type host struct {
	dataDir string
	replica string   // its id
	hidden  []string // the bot's own
	probes  probes   // of the data folder
	sound   sync.Map // the projects whose sandbox has been seen to work
	// command is the launcher prefix and the CLI's path.
	command []string
	version string // the CLI's
	gateway *gateway.Gateway
	web     *egress.Proxy
	policy  *policy.Policy
	git     *gitway.Gate // nil where no session reaches a forge
	watcher sandbox.Watcher
	work    *workspace.Keeper
	kept    Works // nil where work is kept on this machine alone
	silence time.Duration
	answer  time.Duration
	line    claude.Lifeline
}

func (h *host) liveFor(left time.Duration) { h.line.Renew(left) }

func (h *host) workspace(ctx context.Context, t store.Thread, p Project) (dir string, told []string, err error) {
	return h.work.Open(ctx, h.worksIn(t), p.space())
}

func (h *host) missing(dir string) bool { return workspace.Missing(dir) }

func (h *host) head(_ context.Context, dir string) string { return workspace.Head(dir) }

func (h *host) publish(ctx context.Context, t store.Thread, p Project) error {
	return h.work.Publish(ctx, h.worksIn(t), p.space())
}

func (h *host) save(ctx context.Context, t store.Thread, p Project) (left string, err error) {
	return h.work.Save(ctx, h.worksIn(t), p.space())
}

func (h *host) folders(ctx context.Context) ([]workspace.Folder, error) {
	return workspace.Folders(ctx, h.dataDir)
}

func (h *host) putAway(ctx context.Context, t store.Thread, p Project) (stays string, told []string, err error) {
	return h.work.PutAway(ctx, h.worksIn(t), p.space())
}

func (h *host) elsewhere(ctx context.Context, t store.Thread, p Project) (bool, error) {
	return h.work.KeptElsewhere(ctx, h.worksIn(t), p.space())
}

// worksIn is the thread as its workspace needs it, for as long as its lease is ours.
func (h *host) worksIn(t store.Thread) workspace.Thread {
	// One that has no folder yet may have been meant for another replica, and is not.
	w := workspace.Thread{ID: t.ID, Dir: t.Workspace, Elsewhere: t.Workspace != "" && t.WorkspaceReplica != "" && t.WorkspaceReplica != h.replica}
	if h.kept != nil {
		w.Shelf = shelf{h.kept, leaseOf(t)}
	}
	return w
}

func (h *host) start(ctx context.Context, t store.Thread, p Project, resume bool, patience int, calls gateway.Meter, log *zap.Logger) (process, error) {
	prompt, err := systemPrompt(p, t.Workspace)
	if err != nil {
		return nil, err
	}
	if err := h.homes().Renew(t.ID, t.SessionID); err != nil {
		return nil, err
	}
	servers, err := p.mcpConfig()
	if err != nil {
		return nil, &webError{p.Name, err}
	}
	box, err := h.box(ctx, t, p, h.command, calls)
	if err != nil {
		return nil, err
	}
	proc, err := claude.Start(ctx, claude.Options{
		Command:            box.Command,
		Dir:                t.Workspace,
		Env:                box.Env,
		SessionID:          t.SessionID,
		Resume:             resume,
		Model:              p.Provider.Model(p.Model),
		PermissionMode:     p.PermissionMode,
		AppendSystemPrompt: prompt,
		DisallowedTools:    policy.Withheld(),
		MCPConfig:          servers,
		// What is fetched is bounded by the network, and nobody else has to know of it.
		SkipWebFetchPreflight: p.Sandbox.Network.Proxied(),
		Version:               h.version,
		SilenceAfter:          h.silence,
		RequestTimeout:        h.answer,
		InitializeTimeout:     h.answer * time.Duration(patience),
		Logger:                log,
		Lifeline:              &h.line,
	})
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	shut := h.shutIn(proc, box, log)
	if _, err := proc.Initialize(ctx, claude.InitializeRequest{PreToolUse: true, Hooks: afterChanges()}); err != nil {
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

// maxInstructions bounds the CLAUDE.md that goes into the system prompt, in bytes.
const maxInstructions = 40 << 10

func systemPrompt(p Project, workspace string) (string, error) {
	md, err := instructions(workspace)
	if err != nil {
		return "", err
	}
	parts := []string{
		"You are working for a team through Slack: your text appears in a Slack thread, several people may write to you, and tools may need a person's approval, which can take a while or be refused with a reason. Keep answers short and readable in a chat.",
	}
	if md != "" {
		parts = append(parts, "The workspace's CLAUDE.md:\n\n"+md)
	}
	if reaches := p.network(); reaches != "" {
		parts = append(parts, reaches)
	}
	if p.reachesForge() {
		parts = append(parts, "git reaches the project's forge, whatever the network: git fetch origin works, and so does pushing to branches below deckhand/, as in git push origin HEAD:deckhand/name, once it is allowed. Run git push as a command of its own.")
	}
	if p.AppendSystemPrompt != "" {
		parts = append(parts, p.AppendSystemPrompt)
	}
	return strings.Join(parts, "\n\n"), nil
}

// instructions is the workspace's CLAUDE.md, which the CLI does not load itself
// when it reads user settings only. A link that leads out of the workspace is
// not followed.
func instructions(workspace string) (string, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return "", err
	}
	defer root.Close()                                                      //nolint:errcheck // it only reads
	f, err := root.OpenFile("CLAUDE.md", os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold the thread
	if err != nil {
		return "", nil // it is not there, or leads out of the workspace
	}
	defer f.Close() //nolint:errcheck // it only reads
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil {
		return "", fmt.Errorf("read CLAUDE.md: %w", err)
	}
	if len(b) > maxInstructions {
		b = append(b[:maxInstructions], "\n[CLAUDE.md is longer and was cut here: read the file for the rest.]"...)
	}
	return strings.ToValidUTF8(string(b), "�"), nil
}
