package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"deckhand/internal/gateway"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/price"
	"deckhand/internal/sandbox"
	"deckhand/internal/workspace"
)

// Project is what threads work on.
type Project struct {
	Name string
	// Dir is the project's folder; Repo, instead, a git URL that is cloned into
	// the data folder at the first use. A scratch project has neither.
	Dir, Repo string
	Workspace workspace.Kind
	// Forge are the addresses that sessions fetch from, and push branches below deckhand/
	// to: the project's own first. None where its repository is a path of this machine.
	Forge []string
	// Access is what the bot is known by there.
	Access gitway.Access
	// Base is the branch, tag or commit that new threads' working trees start from, as
	// Repo has it now; empty means HEAD.
	Base  string
	Model string // empty means the CLI's default
	// PermissionMode is default or plan.
	PermissionMode string
	// Env names the variables of the bot's own environment that the agent may see.
	Env []string
	// AppendSystemPrompt is added to the CLI's system prompt, after the
	// workspace's CLAUDE.md.
	AppendSystemPrompt string
	// Provider is where its calls of the model go, and on whose account.
	Provider gateway.Provider
	// MCPServers are those that its agents use, by their names.
	MCPServers map[string]MCPServer
	// Sandbox is what its sessions are shut in.
	Sandbox sandbox.Spec
	// Setup runs in its threads' folders before they work there.
	Setup workspace.Setup
	// Prices are what this project's tokens cost by contract, before those of [Config].
	Prices price.Contract
}

// Check says why threads of the project could not work: its folder, its repository or
// its base is not there, or cannot be reached before ctx ends. It changes nothing.
func (p Project) Check(ctx context.Context) error { return p.space().Check(ctx) }

// space is what its threads' workspaces are made of.
func (p Project) space() workspace.Project {
	return workspace.Project{Name: p.Name, Kind: p.Workspace, Dir: p.Dir, Repo: p.Repo, Base: p.Base, Access: p.Access, Environ: agentEnviron(nil, nil), Setup: p.Setup}
}

// remote is one of the project's repositories, as the bot's git reaches it.
func (p Project) remote(address string) gitway.Remote {
	return gitway.Remote{Upstream: gitway.Upstream{URL: address, Access: p.Access}, Environ: agentEnviron(nil, nil)}
}

// remotes are those that sessions reach.
func (p Project) remotes() []gitway.Remote {
	out := make([]gitway.Remote, len(p.Forge))
	for i, address := range p.Forge {
		out[i] = p.remote(address)
	}
	return out
}

// reachesForge reports whether sessions of the project reach a forge. A launcher's words
// take one socket along, which is the model's.
func (p Project) reachesForge() bool { return len(p.Forge) > 0 && p.Sandbox.Kind != sandbox.Command }

// CheckForge says why sessions could not fetch from the project's repositories at its
// forge, or not push to them. It changes nothing.
func (p Project) CheckForge(ctx context.Context) error {
	var errs []error
	for _, r := range p.remotes() {
		if _, err := r.Refs(ctx, "HEAD"); err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be read (%w), so that git fetch does not work; give the bot the right to it (git: token_env, key_file or github_app)", r.URL, err))
		} else if err := r.CheckPush(ctx, os.TempDir()); err != nil {
			errs = append(errs, fmt.Errorf("%s can be read and not be written to (%w), so that git push does not work; give the token, the key or the app the right to write its contents, or leave it so", r.URL, err))
		}
	}
	return errors.Join(errs...)
}

// Limits are the supervisor's times and counts. The zero value of a field means
// its default.
type Limits struct {
	// IdleTimeout is how long a session may be idle before it is hibernated: 30 min.
	IdleTimeout time.Duration
	// AsideAfter is how long a turn that only waits for people keeps its process: 5 min.
	AsideAfter time.Duration
	// MaxLive is how many processes may live at once: 20.
	MaxLive int
	// Starts is how many processes may start at once: as many as there are cores.
	Starts int
	// Spares is how many processes may be ready for threads that do not exist yet, of those
	// that may live: none.
	Spares int
	// LeaseTTL is after how long a replica that is silent is taken for dead: 15 s.
	LeaseTTL time.Duration
	// Drain is how long turns may go on when the bot is to stop; without it they are
	// interrupted at once.
	Drain time.Duration
	// Poll is how often work is looked for that no notice told of: 10 s.
	Poll time.Duration
	// AnswerTimeout is how long the CLI may take to start, and to answer what the bot
	// asks of it: 30 s.
	AnswerTimeout time.Duration
	// StopTimeout is how long the CLI may take to end a turn that was stopped: 10 s.
	StopTimeout time.Duration
	// Silence is how long the CLI may say nothing while it should speak: 10 min.
	Silence time.Duration
	// Transcript is how much is copied of a conversation, in bytes: 64 MiB.
	Transcript int64
	// KeepTranscripts is how long the copies of a thread in which nobody writes are kept,
	// and its work where that is somewhere else, too: 90 days. Negative is for ever.
	KeepTranscripts time.Duration
}

func (l Limits) withDefaults() Limits {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&l.IdleTimeout, 30*time.Minute)
	or(&l.AsideAfter, 5*time.Minute)
	or(&l.LeaseTTL, 15*time.Second)
	or(&l.Poll, 10*time.Second)
	or(&l.AnswerTimeout, 30*time.Second)
	or(&l.StopTimeout, 10*time.Second)
	or(&l.Silence, 10*time.Minute)
	if l.KeepTranscripts == 0 {
		l.KeepTranscripts = 90 * 24 * time.Hour
	}
	if l.Transcript <= 0 {
		l.Transcript = 64 << 20
	}
	if l.MaxLive <= 0 {
		l.MaxLive = 20
	}
	if l.Starts <= 0 {
		l.Starts = runtime.GOMAXPROCS(0)
	}
	return l
}
