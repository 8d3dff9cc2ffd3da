package agent

import "time"

// WorkspaceKind says where a thread of a project works.
type WorkspaceKind string

// The kinds of workspaces.
const (
	// WorkspaceShared: every thread works in the project's own folder.
	WorkspaceShared WorkspaceKind = "shared"
	// WorkspaceWorktree: every thread gets a git worktree on a branch of its own.
	WorkspaceWorktree WorkspaceKind = "worktree"
	// WorkspaceScratch: every thread gets an empty folder.
	WorkspaceScratch WorkspaceKind = "scratch"
)

// Project is what threads work on.
type Project struct {
	Name string
	// Dir is the project's folder; Repo, instead, a git URL that is cloned into
	// the data folder at the first use. A scratch project has neither.
	Dir, Repo string
	Workspace WorkspaceKind
	// Base is the branch or commit that worktrees start from; empty means HEAD.
	Base  string
	Model string // empty means the CLI's default
	// PermissionMode is default or plan.
	PermissionMode string
	// Env names the variables of the bot's own environment that the agent may see.
	Env []string
	// AppendSystemPrompt is added to the CLI's system prompt, after the
	// workspace's CLAUDE.md.
	AppendSystemPrompt string
	// Prices are what this project's tokens cost by contract, before those of [Config].
	Prices Prices
}

// Limits are the supervisor's times and counts. The zero value of a field means
// its default.
type Limits struct {
	// IdleTimeout is how long a session may be idle before it is hibernated: 30 min.
	IdleTimeout time.Duration
	// MaxLive is how many processes may live at once: 20.
	MaxLive int
	// LeaseTTL is how long a lease outlives a replica that died: 30 s.
	LeaseTTL time.Duration
	// Poll is how often work is looked for that no notice told of: 10 s.
	Poll time.Duration
	// AnswerTimeout is how long the CLI may take to start, and to answer what the bot
	// asks of it: 30 s.
	AnswerTimeout time.Duration
	// StopTimeout is how long the CLI may take to end a turn that was stopped: 10 s.
	StopTimeout time.Duration
	// Silence is how long the CLI may say nothing while it should speak: 10 min.
	Silence time.Duration
}

func (l Limits) withDefaults() Limits {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&l.IdleTimeout, 30*time.Minute)
	or(&l.LeaseTTL, 30*time.Second)
	or(&l.Poll, 10*time.Second)
	or(&l.AnswerTimeout, 30*time.Second)
	or(&l.StopTimeout, 10*time.Second)
	or(&l.Silence, 10*time.Minute)
	if l.MaxLive <= 0 {
		l.MaxLive = 20
	}
	return l
}
