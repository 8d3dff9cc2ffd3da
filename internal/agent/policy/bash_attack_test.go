package policy

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// What the policy reads in a command line, against what Bash makes of it: random scripts
// are decided, and those that are allowed are run by a Bash as the CLI starts it, whose
// programs do nothing but write down their words. Each of those must be a command that
// was judged, as it was judged, and nothing else is written.

// plainRules allow what the scripts of people and of bashScripts hold, and no evil.
var plainRules = []string{
	"deny Read(secret)", "allow Bash(echo *)", "allow Bash(ls *)", "allow Bash(cat *)", "allow Bash(grep *)", "allow Bash(printf *)", "allow Bash(true)", "allow Bash(frob **)", "allow Bash(git commit **)",
	"allow Bash(for i in a b; do ls; done)", "allow Edit(src/**)",
}

// prelude is what the CLI puts before a command, as far as it matters to Bash's reading of
// it, and a handler that writes down the words of every command and what it is given to
// read. No builtin that a rule allows takes the place of a program.
const prelude = `shopt -s expand_aliases; shopt -u extglob
command_not_found_handle() {
	builtin enable printf read
	builtin local IFS= x=; builtin read -r -d '' -n 4096 x
	builtin printf '%s\0' "$@" "$PWD" "< $x" $'\1' >> /tmp/started/$BASHPID
	case $* in
	cat) builtin printf %s "$x" ;;
	*) builtin printf 'out\n' ;;
	esac
	return "$STATUS"
}
enable -n echo printf test [ true false kill command : type read let times suspend
eval `

// startedOrder is how Bash is started for a script.
func startedOrder(command string) (argv, env []string) {
	h := fnv.New32()
	_, _ = h.Write([]byte(command))
	status, locale := fmt.Sprint(h.Sum32()&1), []string{"C", "C.UTF-8"}[h.Sum32()>>1&1]
	return []string{"/bin/bash", "-c", prelude + quoted(command) + " < /dev/null && pwd -P >| /dev/null; wait"},
		[]string{"PATH=/tmp/bin", "HOME=/nonexistent", "LC_ALL=" + locale, "STATUS=" + status, "BASH_SILENCE_DEPRECATION_WARNING=1"}
}

// recorder is a program that writes down its words, for what starts no handler: exec.
const recorder = "#!/bin/bash\nprintf '%s\\0' \"${0##*/}\" \"$@\" \"$PWD\" '< ' $'\\1' >> /tmp/started/$$\n"

// readStarted reads what was written down: by each process into a file of its own.
func readStarted() (all [][]string, err error) {
	names, err := filepath.Glob(started + "/*")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for one := range strings.SplitSeq(string(b), "\x00\x01\x00") {
			if one != "" {
				all = append(all, strings.Split(one, "\x00"))
			}
		}
	}
	return all, err
}

// plainFixture is the folder in which the scripts run.
func plainFixture(t testing.TB) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ws/a": "a\n", "ws/b.txt": "b\n", "ws/evil": recorder, "ws/run.sh": recorder, "ws/src/x": "x\n", "ws/src/y.txt": "y\n", "ws/secret": secretText + "\n"} {
		p := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil { //nolint:gosec // a folder to work in
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil { //nolint:gosec // some are programs
			t.Fatal(err)
		}
	}
	return top
}

// bashCheck decides scripts, and runs those that are allowed.
type bashCheck struct {
	ws      string
	policy  *Policy
	allowed atomic.Int64
	decided atomic.Int64
	started atomic.Int64
}

func newBashCheck(t testing.TB, top string) *bashCheck {
	return &bashCheck{ws: filepath.Join(top, "ws"), policy: rules(t, plainRules...)}
}

// check reports what Bash does that was not judged; empty for nothing.
func (c *bashCheck) check(t testing.TB, s *shutIn, script string) string {
	t.Helper()
	c.decided.Add(1)
	call := bash(t, c.ws, script)
	d := c.policy.Decide(call)
	if d.Fault != "" {
		return d.Fault
	}
	if d.Verdict != Allow {
		return ""
	}
	c.allowed.Add(1)
	got, err := s.run(order{Command: script, Started: true})
	if err != nil {
		t.Error(err)
		return ""
	}
	c.started.Add(int64(len(got.Started)))
	return unjudged(readCall(&call).script, &got, filepath.Dir(c.ws))
}

// unjudged says what was started or written that is no unit of a script.
func unjudged(s *script, got *outcome, top string) string {
	commands, writes := map[string][]*unit{}, []string{}
	for i := range s.units {
		u := &s.units[i]
		switch {
		case u.target != nil && u.write:
			writes = append(writes, u.target.resolved)
		case u.target == nil && !u.nested:
			var argv []string
			for _, w := range u.words {
				argv = append(argv, w.text)
			}
			commands[key(argv)] = append(commands[key(argv)], u)
		}
	}
	if withoutHere(s.src) != s.src { // "$(cat <<'EOF' …)" was read as its text
		commands[key([]string{"cat"})] = append(commands[key([]string{"cat"})], &unit{})
	}
	for _, argv := range got.Started {
		last := len(argv) - 2
		if last < 1 {
			return fmt.Sprintf("writes down %q", argv)
		}
		as := commands[key(argv[:last])]
		if as == nil {
			return fmt.Sprintf("starts %q, and judged are %q", argv[:last], slices.Sorted(maps.Keys(commands)))
		}
		if !slices.ContainsFunc(as, func(u *unit) bool { return u.dirs == nil || slices.Contains(u.dirs, argv[last]) }) {
			return fmt.Sprintf("starts %q in %s, and judged it in %q", argv[:last], argv[last], as[0].dirs)
		}
		if shows(argv[last+1]) {
			return fmt.Sprintf("gives %q a secret to read", argv[:last])
		}
	}
	for _, p := range got.Changed {
		abs := filepath.Join(top, p)
		if !slices.ContainsFunc(writes, func(w string) bool { return w == abs || strings.HasPrefix(w, abs+"/") }) {
			return "changes " + p
		}
	}
	return ""
}

// key is a command with its words in one order: Bash sorts what a wildcard stands for by
// the locale.
func key(argv []string) string {
	words := slices.Clone(argv)
	slices.Sort(words[1:])
	return fmt.Sprintf("%q", words)
}

// bashScripts composes scripts: what the rules allow, in every spelling of the shell, with
// what they do not allow hidden in comments, quotes and here-documents.
type bashScripts struct{ r *rand.Rand }

func (g bashScripts) pick(of ...string) string { return of[g.r.IntN(len(of))] }

func (g bashScripts) chance(of int) bool { return g.r.IntN(of) == 0 }

func (g bashScripts) script() string {
	var b strings.Builder
	for n := 1 + g.r.IntN(4); n > 0; n-- {
		b.WriteString(g.command(2))
		if n > 1 || g.chance(4) {
			b.WriteString(g.separator())
		}
	}
	s := b.String()
	for g.chance(2) {
		s = g.mutated(s)
	}
	return s
}

// separator is what may stand between two commands.
func (g bashScripts) separator() string {
	sep := g.pick("\n", "; ", " && ", " || ", " | ", " |& ", " & ", "\n\n", " ;\n", " &&\n", " |\n\t", "&", ";", "|", "&&", "||", " \\\n&& ", " \\\n | ")
	if g.chance(4) {
		sep = g.comment() + "\n" + g.pick("", sep)
	}
	return sep
}

func (g bashScripts) comment() string {
	return g.pick(" ", "\t", "\n", "", ";", " \\\n") + "#" + g.pick("", " ", "!") + g.pick("", "x", "evil 1", "it's", "\"q", "`", "$(evil 2)", "<<EOF", "a # b", "{", "((", "é") + g.pick("", "", "\\", " \\", "\\\\", "'")
}

// command is a command that the rules allow, plain or in a construct.
func (g bashScripts) command(deep int) string {
	if deep == 0 || !g.chance(6) {
		return g.simple()
	}
	c := g.command(deep - 1)
	if g.chance(2) {
		return fmt.Sprintf(g.pick("(%s)", "( %s )", "{ %s; }", "! %s", "time %s", "if true; then %s; fi", "if %s\nthen true\nelse ls; fi", "timeout 5 %s", "CI=1 %s"), c)
	}
	return fmt.Sprintf(g.pick("(%s)", "( %s )", "{ %s; }", "{ %s\n}", "! %s", "time %s", "time -p %s", "if true; then %s; fi", "if %s\nthen true\nelse ls; fi", "if true; then ls; elif true; then %s; fi",
		"for i in a b; do %s; done", "while %s; do true; done", "until %s; do true; done", "case x in x) %s;; esac", "case x in (x) %s;& y) ls;;& esac", "f() { %s; }; f", "function f { %s; }", "coproc %s", "select i in a; do %s; done",
		"timeout 5 %s", "nice %s", "env %s", "command %s", "nohup %s", "$(%s)", "echo \"$(%s)\"", "cat <(%s)", "`%s`", "[[ a == a ]] && %s", "((1)) && %s", "CI=1 %s", "x=1 %s", "eval %s", "exec %s", "%s &", "shopt -s extglob\n%s",
		"alias ls=evil\n%s", "set -- a; %s", "trap evil EXIT; %s", "let 1; %s", "%s > >(cat)"), c)
}

func (g bashScripts) simple() string {
	var b strings.Builder
	if g.chance(12) {
		return g.hereDocument()
	}
	if g.chance(10) {
		b.WriteString(g.pick("CI=1 ", "LC_ALL=C ", "GOOS='linux' ", "CI=1 NO_COLOR=1 ", "2>&1 ", "< a ", "> src/x ", "x=1 ", "a[0]=1 ", "CI+=1 ", "TZ=\"UTC\" "))
	}
	b.WriteString(g.program())
	for n := g.r.IntN(4); n > 0; n-- {
		b.WriteString(g.blank())
		if g.chance(8) {
			b.WriteString(g.redirection())
			continue
		}
		b.WriteString(g.word())
	}
	return b.String()
}

func (g bashScripts) program() string {
	return g.pick("echo", "ls", "cat", "grep", "printf", "true", "frob", "echo", "ls", "frob", "frob", "git commit", "'echo'", "\"ls\"", "\\cat", "ec''ho", "e\\cho", "[", "cd src;frob", "cd src\nls", "cd src&&frob", "cd nowhere||frob", "cd ..; ls", "cd src/..;frob", "cd src & frob", "cd src|cat", "cd .\nfrob", "timeout 5 frob", "nice frob")
}

func (g bashScripts) blank() string {
	return g.pick(" ", " ", " ", " ", "  ", "\t", " \\\n", " \\\n  ", "\\\n", " \\\n\\\n", "\\\n ")
}

// word is a word that is harmless if it is read as it is, and not if its quotes are
// taken for something else.
func (g bashScripts) word() string {
	inner := g.pick("a", "x y", "evil 3", "; evil 4", "\nevil 5\n", "#", "# ", "&& evil 6", "| evil 7", "> evil", "$(evil 8)", "`evil 9`", "\\", "\\\\", "'", "\"", "EOF", "<<EOF", "é", "…", "日本", "\u00a0", "!", "!!", "~", "*", "{a,b}", "$x", "$", "a$", "\t", "if", "then", ")", "}", "\\\n", "(", "a=(")
	switch g.r.IntN(20) {
	case 0, 1:
		return "'" + inner + "'"
	case 2, 3:
		return `"` + inner + `"`
	case 4:
		return "$'" + strings.ReplaceAll(inner, "'", `\'`) + "'"
	case 5:
		return `$"` + inner + `"`
	case 6:
		return g.word() + g.word()
	case 7:
		return inner
	case 8:
		return g.pick("{a,b}", "{a,'b c'}", "{1..3}", "{a,{b,c}}", "x{,y}", "{,a}", "{,}", "{a,}", "{}", "{a}", "*", "src/*", "?", "[ab]", "s[r]c/?", "*.txt", "@(a|b)", "!(a)", "~", "~+", "a=~", "$((1))", "${x:-a}", "$x", "$1", "$#", "$?", "a#b", "#a", "a\\ b", "\\#", "\\;", "\\'", "\\\"", "\\$x", "\\`", "a\\\nb", "-", "--", "=", "a=b", "{", "}", "!", "fi", "time", "]", "[", "a[1]", "%", "^", "^a^b", "src/x{,}", "HEAD@{1}", "{a,b", "a,b}", "{a\\,b}", "'{'a,b}", "{\"a,b\",c}", "[!a]", "[^a]", "[a-c]", "[[:alpha:]]", "\\*", "'*'", "*'.txt'", "src/\"*\"", ".*", "**")
	}
	return g.pick("a", "b.txt", "src/x", "src", "-l", "-n", "x=y", "1", "2", ".", "src/y.txt", "x", "--", "-e")
}

func (g bashScripts) redirection() string {
	return g.pick("", "", "1", "2", "3", "12", "{fd}", "&") + g.pick(">", ">>", "<", ">|", "<>", "<<<", ">&", "<&", "&>", "&>>") + g.pick("", " ") + g.pick("src/x", "src/new", "a", "/dev/null", "1", "2", "-", "1-", "'src/x y'", "\"src/z\"", "src/{a,b}", "src/*", "&1", "secret", "evil", "src/\\x", "(evil 10)", "$x", "a;evil 11", "#a", "\\\nsrc/x", "src/x&", "src/x|ls", "1>src/x", "2>src/new")
}

func (g bashScripts) hereDocument() string {
	end := g.pick("EOF", "'EOF'", "\"EOF\"", "\\EOF", "E'OF'", "-EOF", "-'EOF'", " EOF", "''", "$x", "EOF;ls", "EOF | cat", "EOF > src/x", "EOF #", "'EOF' \\\n a", "E\\\nOF", "'E OF'")
	text := g.pick("", "text\n", "evil 12\n", "$(evil 13)\n", "`evil 14`\n", "EOF \nevil 15\n", " EOF\nevil 16\n", "\tEOF\nevil 17\n", "a\\\nEOF\nevil 18\n", "\\EOF\n", "EO\\\nF\nevil 19\n", "EOF2\n", "it's\n", "\"\n", ")\n", "EOF)\nevil 20\n")
	last := g.pick("EOF", "EOF", "EOF", "EOF\n", "\tEOF", "EOF ", "", "EOF)", "EOF\nls", "EOF\necho a")
	if g.chance(3) {
		return g.pick("echo", "frob", "git commit -m", "cat") + " " + g.pick("\"", "\"", "", "\"a ") + "$(cat <<" + end + "\n" + text + last + "\n)" + g.pick("\"", "\"", "", " b\"")
	}
	return g.pick("cat", "frob", "git commit -F -", "cat > src/new", "cat -", "echo a; cat") + " <<" + end + "\n" + text + last
}

// snippets are what changes the meaning of what stands beside it.
var snippets = []string{"\\\n", "\\", "#", " #", " # \\\n", "'", "\"", "`", "$", "$(", "${", "$((", "$'", "$\"", "(", ")", "{", "}", "((", "))", "[[", "]]", "[", "]", ";", ";;", ";&", ";;&", "&", "&&", "|", "||", "|&", "<", ">", "<<", "<<<", "<<EOF\n", "<(", ">(", "\n", "\r", "\r\n", "\t", " ", "\v", "\f", "\x00", "\x01", "\x7f", "\x80", "\xa0", "\xff", "\u00a0", "\u2028", "\ufeff", "é", "!", "!!", "~", "*", "?", "=", "=(", ",", "evil", "\nevil\n", "; evil ;", "EOF", "\nEOF\n", "if ", " then ", " fi", " do ", " done", " esac", " in ", "time ", "coproc ", "function ", "-p ", "1", "2>", "&>", "nul", ">nul", "\x1b", "\b"}

// mutated changes a byte, or a few.
func (g bashScripts) mutated(s string) string {
	at := g.r.IntN(len(s) + 1)
	to := min(at+g.r.IntN(8), len(s))
	switch g.r.IntN(5) {
	case 0:
		return s[:at] + s[to:]
	case 1:
		return s[:to] + s[at:]
	case 2:
		from := g.r.IntN(len(s) + 1)
		return s[:from] + s[at:to] + s[from:]
	case 3:
		return s[:at] + string([]byte{byte(g.r.IntN(256))}) + s[at:]
	}
	return s[:at] + snippets[g.r.IntN(len(snippets))] + s[at:]
}

// make attack runs this for minutes.
func TestAttackBash(t *testing.T) {
	t.Parallel()
	needShutIn(t)
	top := plainFixture(t)
	c := newBashCheck(t, top)
	each(t, top, *attackN*2, func(s *shutIn, i int) {
		g := bashScripts{rand.New(rand.NewPCG(uint64(*attackSeed), uint64(i)))} //nolint:gosec // it is to be repeatable
		for range 100 {
			script := g.script()
			if why := c.check(t, s, script); why != "" {
				t.Errorf("%q is allowed, and Bash %s", c.least(t, s, script), why)
			}
		}
	})
	t.Logf("%d scripts decided; %d allowed and run, which started %d programs; seed %d", c.decided.Load(), c.allowed.Load(), c.started.Load(), *attackSeed)
	if c.allowed.Load() < c.decided.Load()/50 || c.started.Load() == 0 {
		t.Errorf("of %d scripts %d are allowed, and started %d programs: that tells little", c.decided.Load(), c.allowed.Load(), c.started.Load())
	}
}

// least drops bytes from a script as long as Bash does what was not judged.
func (c *bashCheck) least(t testing.TB, s *shutIn, script string) string {
	t.Helper()
	for n := max(len(script)/2, 1); n > 0; n /= 2 {
		for i := 0; i+n <= len(script); {
			if less := script[:i] + script[i+n:]; c.check(t, s, less) != "" {
				script = less
			} else {
				i++
			}
		}
	}
	return script
}

// bashCorpus are scripts that once showed a difference, or may show one.
func bashCorpus(t testing.TB) []string {
	return slices.Concat(lines(t, "bash.txt"), lines(t, "evasions.shell.txt"), lines(t, "benign.txt"), lines(t, "evasions.deny.txt"))
}

// FuzzBash is TestAttackBash with scripts of the fuzzer's, which sees what they make the
// policy do. Whatever becomes of a script, what is suggested for it covers it, and a card
// says of one that may hide a line that it may.
func FuzzBash(f *testing.F) {
	needShutIn(f)
	for _, s := range bashCorpus(f) {
		f.Add(s)
	}
	g := bashScripts{rand.New(rand.NewPCG(1, 2))} //nolint:gosec // it is to be repeatable
	for range 200 {
		f.Add(g.script())
	}
	top := plainFixture(f)
	c := newBashCheck(f, top)
	shut := startShutIn(f, top)
	f.Fuzz(func(t *testing.T, script string) {
		if why := c.check(t, shut, script); why != "" {
			t.Errorf("%q is allowed, and Bash %s", script, why)
		}
		call := bash(t, c.ws, script)
		for _, s := range Suggest(call) {
			if ok, why := Covers(s.Pattern, call); !ok {
				t.Errorf("%s is suggested for %q and does not cover it: %s", s.Pattern, script, why)
			}
		}
		if risks, card := Assess(call), Touches(call); readCall(&call).script.unsure && (len(risks) == 0 || len(card.Unknown) == 0) {
			t.Errorf("the card of %q does not say that it may do more", script)
		}
	})
}
