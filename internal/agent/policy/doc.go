// Package policy decides tool calls: which run, which do not, and which a person decides. It starts nothing,
// changes nothing and stores nothing between calls. It reads file names, links, and git's list of tracked files. It
// knows neither people nor grants nor Slack.
//
// # Rules
//
// A [Policy] is an ordered list of rules, and the first that matches decides. A
// rule allows, denies or asks, and names [Pattern]s:
//
//	Bash                        every command that is known
//	Bash(go test *)             go test, alone or with further words that are known
//	Bash(frobnicate **)         frobnicate with any further words, whatever they do
//	Bash(go test:*)             go test *, as the CLI's own rules write it
//	Bash(make lint)             exactly this command line
//	Edit(src/**)                Edit, Write, MultiEdit and NotebookEdit below src
//	Read(/etc/ssl/**)           Read, NotebookRead, Glob, Grep and LS, outside the workspace
//	WebFetch(domain:go.dev)     pages of this host; *.go.dev is every host below it
//	SandboxNetworkAccess(domain:go.dev:22)  connections of any program to a host, with network: ask
//	mcp__github__*, WebSearch   tools by name; mcp__github alone is the whole server
//
// A bare name of a family covers the family: Write means every tool that writes,
// Grep every tool that reads. Any other bare name is a tool's name, in which * stands for
// any characters. Paths are globs as in doublestar, relative to the workspace; one that
// begins with / (or //, as the CLI writes it) is absolute. In a command, * outside
// quotes is a wildcard within a word; at the end, after a space, it is any further
// words that are known, and ** is any at all. \* is a star. A pattern without a wildcard
// is the text of a whole command line, which may then be a compound one.
//
// Allowing is narrow and denying is wide, because the mistakes differ. An allowing rule applies only to what
// certainly is what it says. A rule that denies or asks matches programs by their base name in any case and
// position, with options before the subcommand and further words even without a final *; a domain with all below
// it; a path as written and as its links resolve, in any case; everything below a folder; and a file named without
// a folder at any depth.
//
// Every built-in tool of the CLI and each of its parameters is judged (tools.go). An unknown tool is allowed only
// by its exact name; an unknown parameter by no rule.
//
// Where no rule decides, the agent's own bookkeeping is allowed, and so is reading inside the workspace unless the
// file looks like a secret, or a search or git would show one. Everything else is asked. AskUserQuestion and
// ExitPlanMode are asked unless a rule denies them: a person's answer is their point.
//
// # Commands
//
// A command line is parsed as Bash, which the CLI's shell is. The rules decide every simple command separately, and
// every file that a redirection opens or a command's words read or write, as Read and Edit would. The strictest
// verdict holds. A cd to a folder inside the workspace decides nothing, and later paths are relative to it.
//
// programs.txt says what the words of common commands mean (the head of table.go is the format): which options are
// harmless, and whether the other words are texts or files that are read or written. A wildcard of a rule stands for
// these plain forms. Every other word is asked, and so are all words beside an option that is not known; the sentence
// names the rule that would allow them. A word that the rule spells is allowed, and so is the file that it names.
// What is fetched or run must be spelt. The table spares questions in the careful posture; the contained one does
// not depend on it. Where a word is not known, a rule that denies or asks counts it as any file that it may name,
// and a folder as all that lies below it.
//
// A * in the last name of a path inside the workspace is expanded now, as Bash would, and every result is decided as
// the program's word. Other wildcards and braces are asked, and denied where they stand for a file that a rule denies.
//
// No rule allows what the text does not determine: substitutions and variables, here-documents except the plainest
// (heredoc.go), functions, arithmetic, [[ ]], coprocesses, ~, invisible characters, text that does not parse, holds
// more than plain words, quotes and separators, or is cut into words differently by a second reader (lexer.go). Only
// a rule with the whole command line literally allows loops, and assignments except a few settings such as CI=1; only
// such a rule or ** allows programs that run other programs (wrappers.go). Wrappers that run their words unchanged,
// such as timeout 60, are unwrapped. A program given by its path needs a pattern that spells the path. git is allowed
// in the workspace's own folder and those of Call.Repositories only, since it obeys the settings of the repository it
// is in.
//
// # Paths
//
// A path that leaves the workspace, by .., by a symbolic link or by being absolute, needs an absolute glob that
// matches its real location. Places from which programs outside the agent take orders later (places.go) need a rule
// whose glob names the place. Only a rule that ends in ** lets a command write or delete below a folder that its
// words name, since links and such places may lie there. A search is allowed when the rule covers
// everything below its folder, and asked when a denied file may lie there.
//
// # What this is for, and what not
//
// The opponent is a model that reads hostile text and may be talked into hiding a command behind a harmless-looking
// rule. The package promises that an allowed call reads, writes, runs and fetches only what the rules say, as far
// as the words of its commands say what they do. It does not promise that this is harmless:
//
//   - go test, npm test and make run the code of the repository, which the agent may
//     have edited. Only a sandbox bounds that. [Policy.Sums] tells of rules that add
//     up so.
//   - A call is decided before it runs. Between the two another process can exchange a
//     link or a file.
//   - The programs' names are looked up by the agent's shell: its PATH, aliases and
//     start-up files are trusted, and so are the environment's GOFLAGS and the like.
//   - A row can be wrong, or older than the program.
//   - A rule that ends in ** is as wide as the program. A rule that denies a command
//     does not take the ability away: what rm does, a script can do.
package policy
