package policy

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	attackN    = flag.Int("attack", number("DECKHAND_TEST_ATTACK", 16), "how many composed evasions are run, besides all that are allowed")
	attackSeed = flag.Int("attack-seed", number("DECKHAND_TEST_ATTACK_SEED", 1), "where their sampling starts")
)

// sampled are all of the lines of a list that are run by make attack, and one of so many
// by every other test.
func sampled[T any](all []T, of int) []T {
	if os.Getenv("DECKHAND_TEST_ATTACK") != "" {
		return all
	}
	var out []T
	for i := *attackSeed % of; i < len(all); i += of {
		out = append(out, all[i])
	}
	return out
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// attackFixture adds to the fixture what the payloads of attacks.txt work on.
const attackFixture = `
mkdir secrets t2 docs cmdx cmdt .vscode
echo KEY=SECRET-7f3a > secrets/key
ln -s ../.. docs/up; ln -s .. src/up; ln -s ../secrets src/s
seq 5000 > src/big
printf 'all:\n\t@true\n' > Makefile
printf '{"name": "x", "version": "1.0.0", "scripts": {"test": "true"}}\n' > package.json
printf 'all:\n\t@./run.sh\n' > evil.mk
printf 'all:\n\t@touch ../PWNED\n' > t2/Makefile
printf '{"name": "y", "version": "1.0.0", "scripts": {"test": "touch ../PWNED"}}\n' > t2/package.json
printf 'require("child_process").execSync("touch PWNED")\n' > evil.js
printf 'import os\nos.system("touch PWNED")\n' > evil.py
printf 'system("touch PWNED"); 1;\n' > evil.pl; cp evil.pl evil.pm
printf 'exec ./run.sh\n' > evil.tcl
printf 'module example.org/ws\n\ngo 1.21\n' > go.mod
printf '//go:generate ../run.sh\npackage main\n\nfunc main() {}\n' > cmdx/main.go
printf 'package t\n\nimport "testing"\n\nfunc TestX(t *testing.T) {}\n' > cmdt/t_test.go
printf 'package  x\n' > bad.go
printf 'class A {}\n' > src/A.java
printf 'class Evil { public static void main(String[] a) throws Exception { new ProcessBuilder("./run.sh").start().waitFor(); } }\n' > src/Evil.java
printf 'fn main() {}\n' > src/r.rs
printf 'Host *\n  ProxyCommand ./run.sh\n' > src/ssh
echo '# instructions' > CLAUDE.md
cp run.sh t2/run.sh; cp evil.jq t2/
git config core.trustctime false; git config core.checkStat minimal
git add -A -f secrets && git add -A && git commit -qm third
echo third >> src/n.txt && git commit -qam fourth
`

// makeAttacked makes the folder that evasions and allowed commands are run in.
func makeAttacked(t *testing.T) string {
	t.Helper()
	top := filepath.Join(makeFixture(t), "ws")
	c := exec.CommandContext(t.Context(), "bash", "-euc", attackFixture)
	c.Dir = top
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("making the folder: %v\n%s", err, out)
	}
	return filepath.Dir(top)
}

// payload is a line of attacks.txt.
type payload struct {
	text    string
	words   []mark // «…»
	options []mark // ‹…›
}

// mark is a part of a payload that can be spelt otherwise.
type mark struct {
	from, to int // of the text, the brackets included
	inner    string
}

func readPayload(text string) payload {
	p := payload{text: text}
	p.words, p.options = marks(text, "«", "»"), marks(text, "‹", "›")
	return p
}

func marks(text, open, end string) []mark {
	var out []mark
	for at := 0; ; {
		i := strings.Index(text[at:], open)
		if i < 0 {
			return out
		}
		i += at
		j := i + strings.Index(text[i:], end)
		out = append(out, mark{i, j + len(end), text[i+len(open) : j]})
		at = j
	}
}

// spell puts a text in the place of a mark, and takes the other brackets away.
func (p payload) spell(m *mark, as string) string {
	s := p.text
	if m != nil {
		s = s[:m.from] + as + s[m.to:]
	}
	for _, o := range marks(s, "‹", "›") {
		s = strings.Replace(s, "‹"+o.inner+"›", plainOption(o.inner), 1)
	}
	return strings.NewReplacer("«", "", "»", "").Replace(s)
}

// plainOption is an option as its line spells it first.
func plainOption(inner string) string {
	names, value, has := strings.Cut(inner, " ")
	first, _, _ := strings.Cut(names, "|")
	if !has {
		return first
	}
	return first + " " + value
}

// optionSpellings are the ways in which programs read an option.
func optionSpellings(inner string) []string {
	names, value, has := strings.Cut(inner, " ")
	var out []string
	add := func(name string) {
		switch {
		case !has:
			out = append(out, name)
		case strings.HasPrefix(name, "--"):
			out = append(out, name+" "+value, name+"="+value)
		default:
			out = append(out, name+" "+value, name+value, name+"="+value)
		}
	}
	for name := range strings.SplitSeq(names, "|") {
		if !has {
			if n, v, ok := strings.Cut(name, "="); ok && strings.HasPrefix(n, "-") {
				for _, s := range otherNames(n) {
					out = append(out, s+"="+v, s+" "+v)
				}
				continue
			}
		}
		add(name)
		for _, s := range otherNames(name) {
			add(s)
		}
	}
	return out
}

// otherNames are the ways in which a program may read the name of an option.
func otherNames(name string) []string {
	bare := strings.TrimLeft(name, "-")
	if !strings.HasPrefix(name, "--") {
		if len(bare) != 1 {
			return []string{name, "-" + name}
		}
		out := []string{name}
		for _, harmless := range "rnvbqisleE" {
			out = append(out, "-"+string(harmless)+bare)
		}
		return append(out, "-n -v "+name, "-"+strings.ToUpper(bare), "-- "+name)
	}
	out := []string{name, "-" + bare, strings.ToUpper(name), "--no-" + bare + " " + name, strings.ReplaceAll(name, "-", "_")}
	for _, n := range []int{1, 2, 3, len(bare) / 2, len(bare) - 2, len(bare) - 1} {
		if n > 0 && n < len(bare) {
			out = append(out, "--"+bare[:n])
		}
	}
	if parts := strings.Split(bare, "-"); len(parts) > 1 {
		for i := 1; i < len(parts); i++ {
			if parts[i] != "" {
				parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
			}
		}
		out = append(out, "--"+strings.Join(parts, ""), "--"+strings.ReplaceAll(bare, "-", "_"), "--"+strings.ReplaceAll(bare, "-", ""))
	}
	return out
}

// spelling of a word: what comes before the command, instead of the word and after
// the command.
type wordSpelling struct{ before, word, after string }

// wordSpellings are the ways in which the shell makes a word. ws is the workspace.
func wordSpellings(w, ws string) []wordSpelling {
	var out []wordSpelling
	add := func(words ...string) {
		for _, s := range words {
			out = append(out, wordSpelling{"", s, ""})
		}
	}
	dir, base := filepath.Split(w)
	last := len(w) - 1
	add(quoted(w), `"`+w+`"`, `\`+strings.Join(strings.Split(w, ""), `\`), `"`+w[:1]+`"`+w[1:], w[:last]+"'"+w[last:]+"'", hexed(w), "$"+quoted(w), `$"`+w+`"`, w[:last]+"''"+w[last:], w[:last]+"\\\n"+w[last:])
	add("{"+w+",src/n.txt}", "{src/n.txt,"+w+"}", w[:last]+"{"+w[last:]+",}", w[:last]+"{a.."+w[last:]+"}", "{"+w+",}", dir+"{"+base+",x}")
	if base != "" {
		end := base[len(base)-1:]
		add(dir+base[:len(base)-1]+"?", dir+base[:len(base)-1]+"["+end+"]", dir+base[:1]+"*", dir+"*"+base[len(base)-1:], dir+"?"+base[1:], dir+"["+base[:1]+"]"+base[1:], dir+"[!x]"+base[1:], dir+"[[:alnum:]._]"+base[1:])
		if len(base) > 2 {
			add(dir+base[:1]+"*"+base[2:], dir+base[:2]+"?"+base[3:], dir+base[:1]+"{"+base[1:2]+",}"+base[2:], dir+base[:1]+"[a-zA-Z]*")
		}
		for _, ext := range []string{"@(", "+(", "?(", "*("} {
			out = append(out, wordSpelling{"shopt -s extglob\n", dir + ext + base + ")", ""})
		}
		out = append(out, wordSpelling{"shopt -s extglob\n", dir + "!(x*)", ""}, wordSpelling{"shopt -s globstar\n", dir + "**/" + base, ""}, wordSpelling{"shopt -s dotglob\n", dir + "*", ""}, wordSpelling{"shopt -s nocaseglob\n", dir + strings.ToUpper(base[:1]) + base[1:] + "*", ""})
	}
	if !strings.Contains(w, ":") && !strings.HasPrefix(w, "/") {
		add("./"+w, ".//"+w, "src/../"+w, "src/sub/../../"+w, filepath.Join(ws, w), ws+"/"+w, "~+/"+w, "~/../ws/"+w, "$PWD/"+w, "${PWD}/"+w, "/proc/self/cwd/"+w, "src/s/../"+w, "//"+filepath.Join(ws, w)[1:], "src/empty/../../"+w)
		rest, up := strings.CutPrefix(w, "../")
		if w == ".." {
			rest, up = "", true
		}
		if up {
			for _, link := range []string{"up/", "docs/up/", "src/up/../", "u?/", "*p/", "{up,}/", "docs/*/", "[u]p/", "src/../up/", "./up/./", "docs/../up/", "docs/u{p,}/", "~/../", "d*/u*/", "src/up/up/", "src/sub/../../../"} {
				add(link + rest)
			}
		}
		if w == "../secret" {
			add("out", "o?t", "*ut", "{out,}", "./out", `o"u"t`, "ou[t]", "src/../out", "*")
		}
	}
	for _, sub := range []string{"$(echo %s)", "`echo %s`", "${x:-%s}", "${x-%s}", "${x:=%s}", "$(printf %%s %s)", "$(< <(echo %s))", "\"$(echo %s)\"", "$x%s", "%s$x", "${x}%s", "$()%s", "%s$IFS", "${IFS:9}%s", "$@%s", "%s$*", "${x+y}%s", "$(:)%s"} {
		add(fmt.Sprintf(sub, w))
	}
	for _, set := range [][2]string{
		{"x=%s; ", "$x"},
		{"x=%s; ", "\"$x\""},
		{"x=%s && ", "${x}"},
		{"export x=%s; ", "$x"},
		{"set -- %s; ", "$1"},
		{"set -- %s; ", "\"$@\""},
		{"read x <<< %s; ", "$x"},
		{"x=(%s); ", "${x[0]}"},
		{"x=(%s); ", "${x[@]}"},
		{"printf -v x %%s %s; ", "$x"},
		{"declare x=%s; ", "$x"},
		{"y=%s; x=y; ", "${!x}"},
		{": %s; ", "$_"},
		{"x=z%s; ", "${x#z}"},
		{"x=%sz; ", "${x%z}"},
		{"x=%s; ", "${x/q/q}"},
		{"x=%s; ", "${x@Q}"},
		{"x=%s; ", "${x:0}"},
		{"for x in %s; do ", "$x"},
		{"declare -A x=([a]=%s); ", "${x[a]}"},
		{"x=%s; eval y=\\$x; ", "$y"},
		{"mapfile -t x <<< %s; ", "$x"},
		{"typeset -n z=x; z=%s; ", "$x"},
		{"f() { y=$1; }; f %s; ", "$y"},
		{"x+=%s; ", "$x"},
		{"let q=1; x=%s; ", "$x"},
		{"IFS=@; x=%s; ", "$x"},
	} {
		after := ""
		if strings.HasPrefix(set[0], "for ") {
			after = "; done"
		}
		out = append(out, wordSpelling{fmt.Sprintf(set[0], w), set[1], after})
	}
	return out
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// hexed is a word as $'\x2e'.
func hexed(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02x`, s[i])
	}
	return b.String() + "'"
}

// wrappers put a command where another one stands: %s is the command, %q its text
// as one word, %n its program's name, and %r its other words.
var attackWrappers = strings.Split(strings.TrimSpace(`
true && %s
ls && %s
ls; %s
false || %s
! %s
%s | cat
%s | sort | head -50
echo y | %s
%s |& cat
%s 2>&1
%s 2>/dev/null
%s || true
%s; true
%s && ls
%s & wait
(%s)
( ls; %s )
{ %s; }
{ ls && %s; } | cat
if true; then %s; fi
if ls; then %s; else true; fi
if ! true; then ls; elif %s; then ls; fi
while true; do %s; break; done
until %s; do break; done
while %s; do break; done
for i in 1; do %s; done
for ((i=0;i<1;i++)); do %s; done
case x in x) %s;; esac
case x in *) %s;& y) ls;; esac
select i in 1; do %s; break; done <<< 1
time %s
time -p %s
env %s
env x=1 %s
env -i PATH="$PATH" %s
env -u x %s
env -- %s
env -S %q
nice %s
nice -n 5 %s
timeout 9 %s
timeout -k 1 9 %s
timeout --signal=KILL 9 %s
command %s
command -- %s
command -p %s
builtin command %s
exec %s
eval %s
eval %q
nohup %s
setsid %s
setsid -w %s
stdbuf -o0 %s
ionice -c3 %s
taskset 1 %s
chrt -o 0 %s
flock src/n.txt %s
busybox timeout 9 %s
xargs %s < /dev/null
xargs -I{} %s <<< x
echo x | xargs -n1 -I% %s
find . -maxdepth 0 -exec %s \;
find src -maxdepth 0 -execdir true \; ; %s
sh -c %q
bash -c %q
bash -ec %q
dash -c %q
bash <<< %q
bash -s <<< %q
echo %q | sh
printf '%%s\n' %q | bash
cat <<E | sh
%s
E
bash <<E
%s
E
sh <<'E'
%s
E
. /dev/stdin <<< %q
source <(echo %q)
x=1 %s
CI=1 %s
LC_ALL=C %s
x=%q; $x
x=%q; eval "$x"
x=(%s); "${x[@]}"
f() { %s; }; f
function f { %s; }; f
trap %q EXIT
trap %q DEBUG; ls
coproc { %s; }; cat <&${COPROC[0]}; wait
echo $(%s)
echo "$(%s)"
echo ${x:-$(%s)}
cat <(%s)
: >(cat >&2); %s
[[ -n $(%s) ]]; %s
x=$(%s); echo "$x"
mapfile x < <(%s); echo "${x[@]}"
shopt -s expand_aliases
alias x=%q
x
\%s
"%n" %r
'%n' %r
%n"" %r
$(echo %n) %r
{%n,} %r
${x:-%n} %r
x=%n; $x %r
set -- %n; "$@" %r
/usr/bin/%n %r
/bin/%n %r
busybox %n %r
%n  %r
 %s
%s #
%s;
%s &
wait
%n \
 %r
ls
%s
# x
%s
cd src && cd .. && %s
cd . && %s
pushd . >/dev/null; %s
cd src/sub/../.. && %s
cd docs/.. ; %s
(cd . && %s)
%s < src/n.txt
%s <<< x
%s <<E
x
E
%s > src/out; cat src/out
%s > src/out 2>&1
%s | tee src/out
%s >& src/out; cat src/out
%s &> src/out; cat src/out
%s 3>&1
perl -e 'system(shift)' %q
python3 -c 'import os,sys; os.system(sys.argv[1])' %q
awk 'BEGIN{system(ARGV[1])}' %q
node -e 'require("child_process").spawnSync("sh",["-c",process.argv[1]],{stdio:"inherit"})' %q
make -f /dev/null --eval "all: ; "%q
git -c alias.x='!sh -c '%q x
script -qec %q /dev/null
watch -g %q
ssh -o ProxyCommand=%q x
strace -o /dev/null %s
unshare -r %s
sudo %s
doas %s
su -c %q
git stash list; %s
test -d src && %s
[ -d src ] && %s
[[ -d src ]] && %s
mkdir -p src/q && %s
echo x > src/q; %s
set -e; %s
set -f; %s
set +B; %s
set -x; %s
shopt -s nullglob; %s
shopt -s dotglob; %s
umask 0; %s
export x=1; %s
export PATH; %s
ulimit -c 0; %s
wait; %s
type %n; %s
hash %n; %s
`), "\n")

// joinedWrappers are the wrappers, those of several lines as one: a line without %
// belongs to the one before it, and so does one after a line that ends in what asks
// for more.
var joinedWrappers = sync.OnceValue(func() []string {
	var out []string
	for i := 0; i < len(attackWrappers); i++ {
		w := attackWrappers[i]
		more := func(n int) {
			for ; n > 0 && i+1 < len(attackWrappers); n-- {
				i++
				w += "\n" + attackWrappers[i]
			}
		}
		switch {
		case strings.HasSuffix(w, "<<E | sh"), strings.HasSuffix(w, "<<E"), strings.HasSuffix(w, "<<'E'"), w == "shopt -s expand_aliases":
			more(2)
		case w == "%s &", w == `%n \`, w == "ls", w == "# x":
			more(1)
		}
		out = append(out, w)
	}
	return out
})

func wrap(w, cmd string) string {
	name, rest, _ := strings.Cut(cmd, " ")
	w = strings.ReplaceAll(w, "%%", "\x00")
	w = strings.NewReplacer("%s", cmd, "%q", quoted(cmd), "%n", name, "%r", rest).Replace(w)
	return strings.ReplaceAll(w, "\x00", "%")
}

// composer makes evasions.
type composer struct {
	payloads []payload
	ws       string
}

// variant is a payload in one spelling: what stands before the command, the command,
// and what stands after it.
func (c *composer) variant(r *rand.Rand, p payload, spelt bool) (string, string, string) {
	n := len(p.words) + len(p.options)
	if !spelt || n == 0 {
		return "", p.spell(nil, ""), ""
	}
	k := r.IntN(n)
	if k >= len(p.words) {
		m := p.options[k-len(p.words)]
		all := optionSpellings(m.inner)
		return "", p.spell(&m, all[r.IntN(len(all))]), ""
	}
	m := p.words[k]
	all := wordSpellings(m.inner, c.ws)
	s := all[r.IntN(len(all))]
	return s.before, p.spell(&m, s.word), s.after
}

// one composes an evasion: a payload as it stands, in another spelling, in a wrapper,
// or in both, or two deep.
func (c *composer) one(r *rand.Rand) string {
	p := c.payloads[r.IntN(len(c.payloads))]
	how := r.IntN(8)
	before, cmd, after := c.variant(r, p, how < 6)
	ws := joinedWrappers()
	if how == 2 || how > 3 {
		cmd = wrap(ws[r.IntN(len(ws))], cmd)
	}
	if how == 5 || how == 7 {
		cmd = wrap(ws[r.IntN(len(ws))], cmd)
	}
	return before + cmd + after
}

// attackPolicies are what a team may write: a rule for every program, and one for
// whatever is known.
func attackPolicies(t *testing.T, programs []string) map[string]*Policy {
	t.Helper()
	every := []string{"deny Read(secrets/**)", "allow Edit(src/**)"}
	for _, p := range programs {
		if p != "env" && p != "printenv" { // showing the environment is what such a rule says
			every = append(every, "allow Bash("+p+" *)")
		}
	}
	return map[string]*Policy{
		"a rule for every program": rules(t, every...),
		"Bash":                     rules(t, "deny Read(secrets/**)", "allow Edit(src/**)", "allow Bash"),
		"Bash and all reading":     rules(t, "deny Read(secrets/**)", "ask Read(.env)", "allow Edit(src/**)", "allow Bash(*)", "allow Read"),
	}
}

// programsOf are the programs that payloads and wrappers begin with, and all that
// have a specification.
func programsOf(payloads []payload) []string {
	all := map[string]bool{}
	for _, p := range payloads {
		if name := strings.Fields(p.spell(nil, ""))[0]; plainValue.MatchString(name) {
			all[name] = true
		}
	}
	for _, w := range joinedWrappers() {
		if name := strings.Fields(w)[0]; plainValue.MatchString(name) {
			all[name] = true
		}
	}
	for name := range programs() {
		if plainValue.MatchString(name) {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// harm says what an evasion touched that no rule of attackPolicies speaks of; empty
// for nothing.
func (o *outcome) harm() string {
	switch {
	case o.Fetched:
		return "reaches the network"
	case shows(o.Output):
		return "shows a secret"
	case len(o.Leaked) > 0:
		return "copies a secret to " + o.Leaked[0]
	}
	for _, p := range o.Changed {
		inSrc := p == "ws/src" || strings.HasPrefix(p, "ws/src/")
		own := p == "home" || strings.HasPrefix(p, "home/") || p == "" || p == "ws"                                                         // its own, thrown away
		upkeep := p == "ws/.git" || p == "ws/.git/index" || strings.HasPrefix(p, "ws/.git/objects") || strings.HasPrefix(p, "ws/.git/logs") // as any git
		if strings.Contains(p, "PWNED") || !inSrc && !own && !upkeep {
			return "changes " + p
		}
	}
	return ""
}

// Evasions, composed from payloads, spellings of options and words, and wrappers, are
// run, and those that touch something are real. No policy allows a real one. make
// attack runs thousands; this test, a sample.
func TestAttack(t *testing.T) {
	t.Parallel()
	needShutIn(t)
	top := makeAttacked(t)
	ws := filepath.Join(top, "ws")
	c := &composer{ws: ws}
	for _, l := range lines(t, "attacks.txt") {
		c.payloads = append(c.payloads, readPayload(l))
	}
	programs := programsOf(c.payloads)
	policies := attackPolicies(t, programs)
	todo, decided := c.sample(t, policies, *attackN, ws)
	proven := runAll(t, top, todo, policies)
	byProgram := map[string]bool{}
	for cmd := range proven {
		byProgram[programIn(cmd, programs)] = true
	}
	t.Logf("%d evasions composed and decided; %d run, %d of them real, of %d programs; seed %d", decided, len(todo), len(proven), len(byProgram), *attackSeed)
	if *attackN >= 4000 && (len(proven) < 1500 || len(byProgram) < 60) {
		t.Errorf("%d evasions of %d programs are real, want 1500 of 60", len(proven), len(byProgram))
	}
	if len(proven) == 0 {
		t.Errorf("of %d evasions none is real: what they should touch is not there", len(todo))
	}
}

// programIn is the program of the payload in an evasion, as far as the text says.
func programIn(cmd string, programs []string) string {
	for _, w := range strings.FieldsFunc(cmd, func(r rune) bool { return !plainValue.MatchString(string(r)) && r != '-' && r != '.' }) {
		if w = strings.Trim(w, "'\""); slices.Contains(programs, w) && w != "ls" && w != "true" && w != "echo" && w != "cd" {
			return w
		}
	}
	return strings.Fields(cmd)[0]
}

// sample composes evasions: n of them to be run, and all those out of 25 times as
// many that some policy allows.
func (c *composer) sample(t *testing.T, policies map[string]*Policy, n int, ws string) (todo []string, decided int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(*attackSeed), 10)) //nolint:gosec // it is to be repeatable
	seen := map[string]bool{}
	for range 25 * n {
		cmd := c.one(r)
		if seen[cmd] {
			continue
		}
		seen[cmd] = true
		decided++
		if len(seen) <= n || allowing(t, policies, ws, cmd) != "" {
			todo = append(todo, cmd)
		}
	}
	return todo, decided
}

// allowing is the name of a policy that allows a command; empty for none.
func allowing(t testing.TB, policies map[string]*Policy, ws, cmd string) string {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		d := policies[name].Decide(bash(t, ws, cmd))
		if d.Fault != "" {
			t.Errorf("%q: %s", cmd, d.Fault)
		}
		if d.Verdict == Allow {
			return name
		}
	}
	return ""
}

// runAll runs evasions, and returns the real ones.
func runAll(t *testing.T, top string, todo []string, policies map[string]*Policy) map[string]bool {
	t.Helper()
	proven := map[string]bool{}
	var mu sync.Mutex
	each(t, top, len(todo), func(s *shutIn, i int) {
		cmd := todo[i]
		got, err := s.run(order{Command: cmd})
		if err != nil {
			t.Error(err)
			return
		}
		harm := got.harm()
		if harm == "" {
			return
		}
		mu.Lock()
		proven[cmd] = true
		mu.Unlock()
		if by := allowing(t, policies, filepath.Join(top, "ws"), cmd); by != "" {
			least := minimal(t, s, policies, filepath.Join(top, "ws"), cmd)
			t.Errorf("%q %s, and is allowed by %s; the least that is so: %q\n%s", cmd, harm, by, least, got.Output[:min(len(got.Output), 300)])
		}
	})
	return proven
}

// minimal drops words from an evasion as long as it is allowed and does harm.
func minimal(t testing.TB, s *shutIn, policies map[string]*Policy, ws, cmd string) string {
	t.Helper()
	words := strings.Split(cmd, " ")
	for again := true; again; {
		again = false
		for i := range words {
			less := slices.Delete(slices.Clone(words), i, i+1)
			shorter := strings.Join(less, " ")
			if strings.TrimSpace(shorter) == "" || allowing(t, policies, ws, shorter) == "" {
				continue
			}
			got, err := s.run(order{Command: shorter})
			if err != nil {
				return strings.Join(words, " ")
			}
			if got.harm() != "" {
				words, again = less, true
				break
			}
		}
	}
	return strings.Join(words, " ")
}
