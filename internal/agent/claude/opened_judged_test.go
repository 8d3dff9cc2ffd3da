package claude_test

// judgement is what somebody has found out about a path that the CLI, or what it runs,
// opens or looks for: ~ is HOME, ~/.claude the configuration folder, . the workspace.
type judgement struct {
	path     string // a pattern; ** is any folders
	what     string
	becomes  string
	children bool // it is about what the CLI runs, and not about the CLI
}

// What becomes of it.
const (
	gone      = "gone"
	unheard   = "not loaded"
	protected = "a protected place of the policy; a git folder's is read-only in the sandbox"
	work      = "the work: what is allowed, in the sandbox"
	system    = "the machine owner's; not seen in a sandbox"
	between   = "a folder of its own in memory; without a sandbox shared by all that the user runs"
)

// judged are all of them; the first that fits counts.
var judged = []judgement{
	{path: "~/.claude/projects/*/*.jsonl", what: "data: the conversation, the running total, what it was set to", becomes: "**kept**, except lines that set something; the agent can rewrite it"},
	{path: "~/.claude/projects/*/*/subagents/agent-*.jsonl", what: "data: a subagent's conversation", becomes: "**kept**"},
	{path: "~/.claude/projects/*/*/subagents/*.meta.json*", what: "obeyed: a subagent's kind and model, when it goes on", becomes: gone},
	{path: "~/.claude/projects/*/*/subagents", what: "a folder", becomes: "made anew"},
	{path: "~/.claude/projects/*/*/tool-results{,/*}", what: "data: results too long for the conversation", becomes: gone},
	{path: "~/.claude/projects/*/*/{archived.json,remote-agents}", what: "looked for: sessions that run elsewhere", becomes: gone},
	{path: "~/.claude/projects/*/memory{,/**}", what: "obeyed by the model: its notes", becomes: "switched off (`CLAUDE_CODE_DISABLE_AUTO_MEMORY`), and " + gone},
	{path: "~/.claude/projects{,/*,/*/*}", what: "folders", becomes: "made anew"},

	{path: "~/.claude/session-env{,/**}", what: "**obeyed: scripts that every Bash call runs**", becomes: gone},
	{path: "~/.claude/shell-snapshots{,/**}", what: "**obeyed: what every Bash call sources**; a process writes its own", becomes: gone},
	{path: "~/.claude/.claude.json{,.*}", what: "**obeyed: its `env` sets BASH_ENV, or the model's address**", becomes: gone},
	{path: "~/.claude/.config.json", what: "obeyed: the same, by its older name", becomes: gone},
	{path: "~/.claude/backups{,/**}", what: "obeyed if .claude.json is broken", becomes: gone},
	{path: "~/.claude/settings.json", what: "obeyed: permissions, hooks, environment", becomes: unheard + "; " + gone},
	{path: "~/.claude/{cowork_settings,daemon,keybindings}.json", what: "obeyed: settings of other ways to run it", becomes: gone},
	{path: "~/.claude/{agents,commands,skills,skills/synced,themes,workflows,output-styles,rules}", what: "obeyed: instructions and hooks", becomes: unheard + "; " + gone},
	{path: "~/.claude/{plugins,cowork_plugins}{,/**}", what: "obeyed: hooks, servers, commands of plugins", becomes: unheard + "; " + gone},
	{path: "~/.claude/{dev-mods,seed-admin}{,/**}", what: "obeyed: code for its developers", becomes: gone},
	{path: "~/.claude/{.credentials.json,.device-keys.json,.hybrid_oauth_refresh.lock,.storage-write.lock}", what: "obeyed: whose account is used", becomes: gone},
	{path: "~/.claude/plans{,/*}", what: "data: the plan that is being written", becomes: gone},
	{path: "~/.claude/{sessions,jobs,daemon,state}{,/**}", what: "obeyed: how its processes find each other, what was consented to", becomes: gone},
	{path: "~/.claude/{cache,image-cache,mcp-needs-auth-cache.json}{,/**}", what: "data: caches", becomes: gone},
	{path: "~/.claude/.last-cleanup", what: "data: when it cleaned up last", becomes: gone},
	{path: "~/.claude", what: "the configuration folder", becomes: "made anew"},
	{path: "~", what: "the home folder", becomes: "made anew"},

	{path: "~/.config/anthropic{,/**}", what: "**obeyed: profiles with the model's address and credentials**", becomes: gone},
	{path: "~/.{bashrc,bash_profile,bash_login,profile}", what: "**obeyed by bash**, of which the CLI makes its snapshot", becomes: gone},
	{path: "~/.gitconfig", what: "**obeyed by git**", becomes: gone},
	{path: "~/.config/git/{config,attributes,ignore}", what: "**obeyed by git**", becomes: gone},
	{path: "~/.config/go{,/**}", what: "**obeyed by Go** (`env`), and its telemetry", becomes: gone},
	{path: "~/.npmrc", what: "**obeyed by npm**", becomes: gone},
	{path: "~/.local/lib/python*{,/**}", what: "**obeyed by Python: packages, and code at its start**", becomes: gone},
	{path: "~/go{,/**}", what: "data: Go's modules; obeyed: programs, where PATH has them", becomes: gone + ", but for caches that the project names"},
	{path: "~/.npm{,/**}", what: "data: npm's cache", becomes: gone + ", but for caches that the project names"},
	{path: "~/.cache{,/**}", what: "data: caches of all kinds", becomes: gone + ", but for caches that the project names"},
	{path: "~/.local/{share,state}{,/**}", what: "obeyed: other versions of the CLI", becomes: "the bot starts its own by its path; " + gone},
	{path: "~/.config", what: "a folder", becomes: gone},
	{path: "~/**", what: "what the programs that it runs look for, such as node's ~/.node_modules", becomes: gone, children: true},

	{path: "./**/.claude/settings{,.local}.json", what: "obeyed: permissions, hooks, environment", becomes: unheard},
	{path: "./**/.claude/{agents,commands,skills,workflows,output-styles,rules}{,/**}", what: "obeyed: instructions and hooks", becomes: unheard},
	{path: "./**/.claude/scheduled_tasks.json", what: "obeyed: prompts by the clock", becomes: "switched off (`CLAUDE_CODE_DISABLE_CRON`); tools of a turn that nobody asked for are denied"},
	{path: "./**/.claude{,/.git}", what: "looked for", becomes: unheard},
	{path: "./**/.git/{config,config.worktree,commondir,shallow,hooks/**,info/**,branches/**,remotes/**,worktrees{,/**},modules/**}", what: "**obeyed by git**: settings that name programs, hooks, attributes", becomes: protected},
	{path: "./**/.git{,/**}", what: "data: commits, branches, the index", becomes: work},
	{path: "./**/.{gitattributes,gitignore,mailmap}", what: "obeyed by git; filters act only if a configuration names them", becomes: work},
	{path: "./**/.npmrc", what: "**obeyed by npm**", becomes: protected},
	{path: "./**/.*.from.json", what: "data: where a file that is read came from", becomes: work},
	{path: "./pid:*", what: "no path: what /proc says of a process", becomes: "nothing"},
	{path: "./{a.txt,n.ipynb,sub,sub/new.txt,by-the-sub,CLAUDE.md}", what: "data: what it was told to read and write", becomes: work},
	{path: "./**", what: "data, and what the programs that were allowed obey", becomes: work, children: true},
	{path: ".", what: "the workspace", becomes: work},

	{path: "/etc/claude-code{,/**}", what: "**obeyed: settings of the machine's owner, also with no sources**", becomes: system},
	{path: "/home/claude/.claude/remote/*", what: "obeyed: tokens, when it runs in its maker's cloud", becomes: system},
	{path: "/tmp/claude-*{,/**}", what: "data: results of tasks, the working directory after a call", becomes: between},
	{path: "/tmp/cc-socks{,/*}", what: "obeyed: a socket by which its processes talk, with a key in the home", becomes: between},
	{path: "/tmp/go-build*/**/claude.test", what: "this test, as an MCP server", becomes: "nothing"},
}
