// Package policy decides tool calls: which run, which do not, and which a person
// decides. It is pure. It starts nothing, keeps nothing between calls, and reads
// nothing of the machine but symbolic links; it knows neither people nor grants
// nor Slack. The agent asks it, and does what it says.
//
// # Rules
//
// A [Policy] is an ordered list of rules, and the first that matches decides. A
// rule allows, denies or asks, and names [Pattern]s:
//
//	Bash                        every command that can be read
//	Bash(go test *)             go test, alone or with any further words
//	Bash(go test:*)             the same, as the CLI's own rules write it
//	Bash(make lint)             exactly this command line
//	Edit(src/**)                Edit, Write, MultiEdit and NotebookEdit below src
//	Read(/etc/ssl/**)           Read, NotebookRead, Glob, Grep and LS, outside the workspace
//	WebFetch(domain:go.dev)     pages of this host; *.go.dev is every host below it
//	mcp__github__*, WebSearch   tools by name; mcp__github alone is the whole server
//
// A bare name of a family covers the family: Write means every tool that writes,
// Grep every tool that reads. Write(…) is Edit(…), and Grep(…) is Read(…). Any
// other bare name is a tool's name, in which * stands for any characters; a tool
// of a family that such a name matches is decided as strictly as by the bare name
// of its family. Paths are globs as in doublestar, relative to the workspace;
// one that begins with / (or //, as the CLI writes it) is absolute, and ~ is
// refused, because the agent's home is not known here. In a command, * outside
// quotes is a wildcard within a word; at the end, after a space, it is any further
// words. \* is a star. A pattern without a wildcard is the text of a whole command
// line, which may then be a compound one.
//
// Allowing is narrow and denying is wide, because the mistakes differ. A rule that
// allows applies to what certainly is what it says, and no further. A rule that
// denies or asks matches programs by their base name in any case and wherever they
// stand, options of the program before its subcommand, further words though it
// ends in no *, the domain with all below it, a path as it is written and as its
// links resolve in any case, everything below a folder, and a file named without
// a folder at any depth.
//
// Every built-in tool of the CLI and each of its parameters is judged (tools.go). What
// is not known is not allowed: an unknown tool but by its exact name, an unknown
// parameter by no rule. A tool that does what another does (Monitor runs commands) is
// looked at by the rules that deny or ask for that, too.
//
// Where no rule decides, reading inside the workspace is allowed unless the file
// looks like a secret or a search would show one, so is the agent's own bookkeeping, and everything else is
// asked. AskUserQuestion and ExitPlanMode are always asked, unless a rule denies
// them: a person's answer is their point.
//
// # Commands
//
// A command line is parsed as Bash. Every simple command in it, and every file
// that a redirection opens, is decided by the rules on its own (the file as Read
// or Edit would be), and the strictest verdict holds. A cd to a folder inside the
// workspace decides nothing, and later paths are relative to that folder. Words
// are compared after quotes are removed.
//
// No rule allows what is not known from the text: expansions and substitutions of
// every kind, here-documents but for the plainest (heredoc.go), functions,
// arithmetic, [[ ]], coprocesses, wildcards without a folder before them (which may
// stand for an option), characters that people cannot see, text that does not parse
// or prints back differently.
//
// Only a rule that holds the whole command line literally allows what is known
// but can do anything: assignments but for a few settings such as CI=1, loops,
// programs that run other programs (see wrappers.go). Wrappers that run their words
// as they stand, such as timeout or nice, are looked through. What a program's words
// do, programs/*.spec say; what they do not know, a rule must spell.
// Interpreters are allowed by a prefix when the pattern spells the script, as in
// Bash(python -m pytest *). A program given by its path is allowed by a pattern
// that spells the path. git is allowed in the workspace's own folder only, since
// it obeys the settings of whatever repository it stands in.
//
// Words that a wildcard matched must not name paths outside the workspace. Rules
// that deny look into what wrappers run, as far as the text says, and into words
// that name a denied file; what they cannot tell is asked.
//
// # Paths
//
// A path that leaves the workspace, by .., by a symbolic link or by being absolute,
// is allowed only by an absolute glob that matches where it really leads. Places
// from which programs outside the agent take orders later (places.go: every name
// with a leading dot that is not known to be harmless, package.json, Makefile,
// CLAUDE.md, …) are written only with a rule whose glob names the place. A
// search is allowed when the rule covers everything below its folder, and asked
// when a denied file may lie there.
//
// # What this is for, and what not
//
// The opponent is a model that reads hostile text and may be talked into hiding a
// command behind a rule that looks harmless. What the package promises is that an
// allowed call does what the rule's author could expect from reading it. It does
// not promise that this is harmless:
//
//   - go test, npm test and make run the code of the repository, which the agent may
//     have edited. Only a sandbox bounds that. A rule that allows a build tool beside
//     one that allows edits allows everything that the sandbox does. [Policy.Sums]
//     names such pairs.
//   - Links are resolved when the call is decided, and the file is opened later. A
//     process that the agent left running can exchange a link in between. Hard links
//     are not seen at all.
//   - The programs' names are looked up by the agent's shell: its PATH, aliases and
//     start-up files are trusted, and so are the environment's GOFLAGS and the like.
//   - The lists of wrappers and options are long, not complete. A prefix rule for a
//     program that they do not know is as wide as that program is.
//   - A rule that denies a command does not take the ability away: what rm does,
//     a script can do. It denies what is plainly written, and what hides is asked.
//   - A denied file is found in a command where a word names it, or its folder is
//     read recursively by a program known for it; a program that reads it unasked,
//     such as a test, is not.
//   - What zsh reads otherwise than Bash is refused where that is known; other shells
//     are not considered.
package policy
