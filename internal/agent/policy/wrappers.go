package policy

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// transparents are wrappers that run the rest of their words unchanged, so the command inside may be allowed by its
// own rules, and how many words stand before it. With options they are asked.
var transparents = map[string]int{"nohup": 0, "time": 0, "timeout": 1, "command": 0, "env": 0, "nice": 0, "ionice": 0, "stdbuf": 0, "setsid": 0}

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

var plainValue = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)

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
	return settings[strings.ToLower(name)] && plainValue.MatchString(value)
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
	return interpreters[base] || interpreters[versioned(base)]
}

func isOpaque(base string) bool {
	return opaque[base] || opaque[versioned(base)]
}

// unwrap finds the innermost command. why says what that is if it may run another.
func (u *unit) unwrap() (why string) {
	for {
		at := u.inner[len(u.inner)-1]
		skip, why := unwrap(u.words[at:])
		if skip == 0 || len(u.inner) > maxNesting {
			return why
		}
		u.inner = append(u.inner, at+skip)
	}
}

// unwrap inspects a command that may run another. For a transparent wrapper skip is where the other begins;
// otherwise it is 0, and why says what the command is.
func unwrap(w []word) (skip int, why string) {
	name := w[0].text
	base := baseName(name)
	n, known := transparents[base]
	switch {
	case !known && isOpaque(base) && specification(name) == nil:
		return 0, name + " can run other commands or change what they mean"
	case known && base != name:
		return 0, name + " runs other commands"
	case !known, len(w) == 1, base == "command" && (w[1].text == "-v" || w[1].text == "-V"):
		return 0, ""
	}
	for i := 1; i <= n+1; i++ {
		if i == len(w) || !w[i].known() || strings.HasPrefix(w[i].text, "-") || base == "env" && strings.Contains(w[i].text, "=") {
			return 0, name + " is given options that change what it runs"
		}
	}
	return n + 1, ""
}
