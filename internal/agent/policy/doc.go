// Package policy decides tool calls: which run, which do not, and which a person
// decides. It starts nothing, changes nothing and keeps nothing between calls; of the
// machine it reads names of files, where links lead, and git's list of what it
// tracks. It knows neither people nor grants nor Slack. The agent asks it, and does
// what it says.
//
// # Rules
//
// A [Policy] is an ordered list of rules, and the first that matches decides. A
// rule allows, denies or asks, and names [Pattern]s:
//
//	Bash                        every command that is known
//	Bash(go test *)             go test, alone or with further words that are known
//	Bash(frobnicate **)         frobnicate with any further words, whatever they do
//	Bash(go test:*)             the same, as the CLI's own rules write it
//	Bash(make lint)             exactly this command line
//	Edit(src/**)                Edit, Write, MultiEdit and NotebookEdit below src
//	Read(/etc/ssl/**)           Read, NotebookRead, Glob, Grep and LS, outside the workspace
//	WebFetch(domain:go.dev)     pages of this host; *.go.dev is every host below it
//	SandboxNetworkAccess(domain:go.dev:22)  connections of any program to a host, with network: ask
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
// words that are known, and ** is any at all. \* is a star. A pattern without a wildcard is the text of a whole command
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
// looks like a secret or a search would show one, so is the agent's own
// bookkeeping, and everything else is asked. AskUserQuestion and ExitPlanMode are always asked, unless a rule denies
// them: a person's answer is their point.
//
// # Commands
//
// A command line is parsed as Bash, which the CLI's shell is. Every simple command
// in it is decided by the rules on its own, and so is every file that a redirection
// opens or that a command reads or writes by its words: as Read and Edit would be.
// The strictest verdict holds. A cd to a folder inside the workspace decides nothing,
// and later paths are relative to that folder. Words are compared after quotes are
// removed.
//
// What the words of a command mean, programs/*.spec says: a specification of every
// program that is known, of its options, operands and subcommands that are known to
// be harmless, and of what each of them reads, writes, runs or fetches (the head of
// spec.go is the format). A wildcard of a rule stands for words that are known. What
// is not known is asked, and the sentence names the rule that would allow it: an
// option that nobody listed or that is abbreviated, a subcommand, a value that is no
// number where one should be, all words of a program without a specification. A word
// that the rule spells is excused: it may be anything, and so may the file that it
// names; build/* excuses what lies in build. What a command does besides its words
// (git commit writes .git) is excused by a rule that spells the words that lead to it.
// What is fetched or run must be spelt, the host of an address and the script of an
// interpreter included.
//
// Wildcards and braces are expanded as Bash would, here and now, and every result is
// decided as the word that the program gets. What may stand for an option (* without
// ./ before it, where there is a file named like one), what is too much to look at,
// and what depends on an earlier command of the same line is asked.
//
// No rule allows what is not known from the text: substitutions and variables, here-
// documents but for the plainest (heredoc.go), functions, arithmetic, [[ ]],
// coprocesses, ~, characters that people cannot see, text that does not parse or
// prints back differently. Only a rule that holds the whole command line literally
// allows loops, and assignments but for a few settings such as CI=1; only such a rule
// or ** allows programs that run other programs and have no specification
// (wrappers.go). Wrappers that run their words as they stand, such as timeout or nice,
// are looked through. A program given by its path is allowed by a pattern that spells
// the path. git is allowed in the workspace's own folder only, since it obeys the
// settings of whatever repository it stands in.
//
// Rules that deny look into what wrappers run, as far as the text says, at every file
// that a command reads or writes, and at words that name one; what they cannot tell is
// asked. Of a folder that is read with all below it, they look at what lies there; of
// what git shows, at what it tracks, or at all that could have lain there.
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
// allowed call reads, writes, runs and fetches what the rules say, as far as the
// words of its commands say what they do. It does not promise that this is harmless:
//
//   - go test, npm test and make run the code of the repository, which the agent may
//     have edited. Only a sandbox bounds that. [Policy.Sums] tells of rules that add
//     up so.
//   - A call is decided before it runs. Between the two a process that the agent left
//     running, or another call beside it, can exchange a link, make a file that a
//     wildcard matches, or change what a command finds where it looks. What one command
//     of a line does to the next is seen only as far as specifications say that it
//     writes or makes links. Of hard links only those are seen that a file has
//     when it is written: no rule allows that.
//   - The programs' names are looked up by the agent's shell: its PATH, aliases and
//     start-up files are trusted, and so are the environment's GOFLAGS and the like, and
//     what programs are configured to do by files that only a rule that names them
//     writes.
//   - A specification can be wrong, or older than the program.
//   - A rule that ends in ** is as wide as the program. A rule that denies a command
//     does not take the ability away: what rm does, a script can do.
package policy
