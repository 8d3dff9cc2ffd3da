package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A transparent wrapper runs the rest of its words unchanged, so the command inside may be allowed by its own
// rules. Other options than those named here make it opaque.
type transparent struct {
	flags    string   // short options without a value
	values   string   // short options with one
	long     []string // long options, with = when they take a value
	operands int      // words before the command
	number   bool     // -10 is an option
}

var transparents = map[string]transparent{
	"nohup":   {},
	"nice":    {values: "n", long: []string{"adjustment="}, number: true},
	"ionice":  {flags: "t", values: "cn", long: []string{"ignore", "class=", "classdata="}},
	"time":    {flags: "p"},
	"timeout": {flags: "v", values: "ks", long: []string{"foreground", "preserve-status", "verbose", "kill-after=", "signal="}, operands: 1},
	"stdbuf":  {values: "ioe", long: []string{"input=", "output=", "error="}},
	"setsid":  {flags: "cfw", long: []string{"ctty", "fork", "wait"}},
	"command": {flags: "p"},
	"env":     {},
}

// opaque wrappers run commands named by their words, their input or a file, or change what later commands mean. No
// pattern with a * allows them.
var opaque = words(
	// command lines of their own
	"xargs parallel watch entr ssh sshpass mosh rsh su sudo sudoedit doas pkexec run0 runuser gosu su-exec setpriv chroot unshare nsenter bwrap firejail systemd-run",
	"flock script strace ltrace ptrace gdb lldb valgrind perf rr expect unbuffer rlwrap screen tmux dtach abduco at batch crontab",
	"busybox toybox chrt taskset numactl prlimit cpulimit setarch linux32 linux64 faketime proxychains proxychains4 torsocks torify tsocks xvfb-run dbus-run-session dbus-launch",
	"caffeinate sandbox-exec arch ld.so start-stop-daemon daemonize runcon choom catchsegv logsave ssh-agent ssh-keygen gpg-agent socat nc ncat netcat telnet cpio",
	"npx bunx uvx pipx nodemon concurrently cross-env dotenv direnv foreman overmind nix nix-shell nix-build conda mamba poetry pipenv hatch tox nox rye asdf mise volta fnm nvm pyenv rbenv",
	"docker podman nerdctl kubectl oc helm vagrant ansible ansible-playbook terraform tofu pulumi",
	// shell builtins that run text or change what later words mean
	"eval source . exec builtin trap alias unalias set shopt setopt unsetopt export declare typeset readonly local unset enable hash bind complete compgen let read readarray mapfile",
	"getopts fc history umask ulimit coproc noglob nocorrect - function autoload zmodload emulate functions zle compdef sched suspend disown logout exit return break continue pushd popd",
	// editors and pagers that start a shell
	"vi vim view vimdiff nvim ex ed emacs emacsclient nano pico joe mcedit mc less more most man info pg",
	// interpreters of other languages
	"awk gawk mawk nawk original-awk sed dc bc m4 tclsh wish gnuplot octave R Rscript julia ghci guile scheme sbcl clisp erl iex elixir scala groovy jshell jrunscript kotlin swift osascript psql mysql mariadb sqlite3 redis-cli mongo mongosh",
	// programs that write wherever their input says
	"unzip 7z 7za 7zr unrar unar patch ar",
	// programs that run other programs
	"fd fdfind install-info run-parts dpkg rpm apt apt-get aptitude yum dnf apk pacman brew snap flatpak",
	"openssl ld gcc g++ cc c++ clang clang++ as ld.lld ld.gold ldd patchelf",
)

// interpreters run a script. A prefix rule may name the script literally, as in Bash(python -m pytest *); anything
// else is opaque.
var interpreters = words(
	"sh bash dash zsh ksh mksh ash fish csh tcsh rbash python python2 python3 pypy pypy3 node nodejs deno bun ts-node tsx perl ruby irb php lua luajit pwsh powershell java dotnet mono",
)

// settings are variables for a program's ordinary ways of working, set to a plain name or number before a command.
// None names a file, a program or an option.
var settings = words(`CI NO_COLOR FORCE_COLOR CLICOLOR COLUMNS RUST_BACKTRACE RUST_LOG CGO_ENABLED GOOS GOARCH PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE
	CLICOLOR_FORCE PY_COLORS CARGO_TERM_COLOR NODE_NO_WARNINGS PYTHONHASHSEED GOMAXPROCS LINES TZ
	LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME LC_MONETARY LANG GIT_TERMINAL_PROMPT`)

// stages are variables that choose a program's configuration, and rehearsals their safe values. Another value may
// choose the production database.
var (
	stages     = words("NODE_ENV RAILS_ENV RACK_ENV APP_ENV MIX_ENV")
	rehearsals = words("test development dev")
)

// isSetting reports whether an assignment before a command is one of these.
func isSetting(a *syntax.Assign) bool {
	if a.Append || a.Naked || a.Index != nil || a.Array != nil || a.Value == nil {
		return false
	}
	name, value := a.Name.Value, a.Value.Lit()
	switch {
	case name != strings.ToUpper(name): // another variable
		return false
	case stages[strings.ToLower(name)]:
		return rehearsals[value]
	}
	return settings[strings.ToLower(name)] && plainName(value) && !strings.ContainsAny(value, "/:@")
}

func words(lists ...string) map[string]bool {
	m := map[string]bool{}
	for _, l := range lists {
		for w := range strings.FieldsSeq(l) {
			m[strings.ToLower(w)] = true
		}
	}
	return m
}

// versioned removes a version from a program's name: python3.12 is python3.
func versioned(base string) string {
	return strings.TrimRight(base, "0123456789.-")
}

func isInterpreter(base string) bool {
	return interpreters[base] || base != "" && interpreters[versioned(base)]
}

func isOpaque(base string) bool {
	if opaque[base] {
		return true
	}
	v := versioned(base)
	return v != "" && v != base && opaque[v]
}

// unwrap inspects a command that may run another. For a transparent wrapper skip is where the other begins;
// otherwise why says what the command is.
func unwrap(w []word) (skip int, ok bool, why string) {
	name := w[0].text
	base := baseName(name)
	t, known := transparents[base]
	if !known {
		if isOpaque(base) && specification(name) == nil {
			return 0, false, name + " can run other commands or change what they mean"
		}
		return 0, false, ""
	}
	opaqueWhy := name + " is given options that change what it runs"
	if base != name {
		return 0, false, name + " runs other commands"
	}
	if base == "command" && len(w) > 1 && (w[1].text == "-v" || w[1].text == "-V") {
		return 0, false, ""
	}
	i := 1
	for ; i < len(w); i++ {
		text := w[i].text
		if !w[i].known() {
			return 0, false, opaqueWhy
		}
		if text == "--" {
			i++
			break
		}
		if !strings.HasPrefix(text, "-") || text == "-" {
			break
		}
		n, fine := t.option(text)
		if !fine {
			return 0, false, opaqueWhy
		}
		i += n
	}
	i += t.operands
	if i >= len(w) {
		if len(w) == 1 {
			return 0, false, "" // it runs nothing
		}
		return 0, false, opaqueWhy
	}
	for _, x := range w[:i] {
		if !x.known() {
			return 0, false, opaqueWhy
		}
	}
	if !w[i].known() || base == "env" && strings.Contains(w[i].text, "=") {
		return 0, false, opaqueWhy
	}
	if base == "command" || base == "env" || base == "time" || base == "nohup" {
		if strings.HasPrefix(w[i].text, "-") {
			return 0, false, opaqueWhy
		}
	}
	return i, true, ""
}

// option says how many more words an option takes, and whether it is harmless.
func (t transparent) option(s string) (more int, ok bool) {
	if long, isLong := strings.CutPrefix(s, "--"); isLong {
		for _, l := range t.long {
			if l == long || strings.HasSuffix(l, "=") && strings.HasPrefix(long, l) {
				return 0, true
			}
		}
		return 0, false
	}
	s = s[1:]
	if t.number && strings.Trim(s, "0123456789") == "" {
		return 0, true
	}
	for i := range len(s) {
		switch {
		case strings.IndexByte(t.values, s[i]) >= 0:
			if i+1 < len(s) {
				return 0, true
			}
			return 1, true
		case strings.IndexByte(t.flags, s[i]) < 0:
			return 0, false
		}
	}
	return 0, true
}
