package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/sandbox"
	"deckhand/internal/store"
)

// host is the [machine] that the bot runs on: it makes the folders, the environment and
// the processes of sessions.
type host struct {
	dataDir string
	replica string   // its id
	hidden  []string // the bot's own
	sound   sync.Map // the projects whose sandbox has been seen to work
	// command is the launcher prefix and the CLI's path.
	command []string
	version string // the CLI's
	gateway *gateway.Gateway
	web     *egress.Proxy
	policy  *policy.Policy
	git     *gitway.Gate // nil where no session reaches a forge
	watcher sandbox.Watcher
	// turnstiles are those before the repositories that the bot keeps, by their projects.
	turnstiles sync.Map
	silence    time.Duration
	answer     time.Duration
}

func (h *host) start(ctx context.Context, t store.Thread, p Project, resume bool, calls gateway.Meter, log *zap.Logger) (process, error) {
	prompt, err := systemPrompt(p, t.Workspace)
	if err != nil {
		return nil, err
	}
	if err := h.homes().renew(t.ID, t.SessionID); err != nil {
		return nil, err
	}
	servers, err := p.mcpConfig()
	if err != nil {
		return nil, &webError{p.Name, err}
	}
	box, err := h.box(ctx, t, p, calls)
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
		InitializeTimeout:     h.answer,
		Logger:                log,
	})
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	shut := h.shutIn(proc, box, log)
	if _, err := proc.Initialize(ctx, claude.InitializeRequest{PreToolUse: true}); err != nil {
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
