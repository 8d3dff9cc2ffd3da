package policy

import (
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// sampleWords are words that a role may stand for: what people write, and what would
// do harm if the role were not true. What the policy does not allow is not run.
var sampleWords = map[role][]string{
	roleText: {
		"a", "b", "x", "1", "2", "1,2", "1-3", ":", "%s", "%h %s", "*.go", "a.*", "n.txt", "-1", "+1", "always", "json", "HEAD", "2020-01-01", "src", "src/n.txt", "{}",
		"../secret", "../secret2.json", "PWNED", "../PWNED", ".git/config", "./run.sh", "run.sh", "@../secret", "file:../secret", ".env", "secrets/key", "up/secret", "|./run.sh", "!./run.sh",
		"exec=./run.sh", "$(touch PWNED)", "`touch PWNED`", ";touch PWNED", "w PWNED", "1e./run.sh", "http://127.0.0.1:8099/x", "127.0.0.1:8099", "format:%s", "=../secret", "c:PWNED", "%(trailers)", "../../PWNED*",
	},
	roleNames:   {"src", ".", "src/n.txt", "run.yml", "lib", "src/sub", "src/none"},
	roleRead:    {"src/n.txt", "src/a.go", "src/d.json", "src/hit", "src/pat", "list.txt", "src/x.tar", "src/a.gz", "src/b64", "src/hex", "src/d.yml", "atfile", "-", "src/p.patch", "src/none", "src/sub"},
	roleTree:    {"src", "lib", "src/n.txt", "src/sub", "cmdt", "HEAD", "HEAD~1", "HEAD~1..HEAD", "master"},
	roleTracked: {"HEAD", "HEAD~1", "HEAD~1..HEAD", "HEAD:src/n.txt", "src/n.txt", "master", "src", "lib", "run.yml", "cmdt"},
	rolePast:    {"HEAD", "HEAD~1", "HEAD:src/n.txt", "src/n.txt", "master", "src"},
	roleWrite:   {"src/new", "src/n.txt", "src/sub", "src/empty", "src/a/b", "src/x.tar", "lib", "src/a.go", "cmdx/main.go"},
	roleFolder:  {"src/new", "src/sub", "src/a/b"},
	roleFollow:  {"lib", "src/n.txt", "src/sub", "cmdt"},
	roleInto:    {"src/new", "src/sub", "src/hit", "src"},
	roleMoved:   {"src/n.txt", "src/hit", "src/sub", "src/b.go"},
	rolePackage: {"./...", "./cmdt", "./cmdx", "fmt", "cmdx/main.go", "."},
	roleTest:    {"cmdt", "src/n.txt", "src/n.txt::x"},
	roleExec:    {"./run.sh", "src/n.txt", "evil.py", "x"},
}

// smallWords are words of which some have the forms that the table asks for.
var smallWords = []string{
	"a", "x", "src", "HEAD", "PWNED", "run.sh", "src/n.txt", "127.0.0.1:8099", "master", "origin", "fmt", "evil", "evil.py", "x@y", "0", "1", "2", "10", "1K", "0.5", "-1", "+2", "s/a/b/", "s/a/b/g", "2p", "1,2p", "2,$p", "1d", "s/a/b/w src/w",
	"{print $1}", "{print}", "{print > \"src/w\"}", ".", ".a", ".items[]", "keys", "length", "%s\\n", "%d", "%b", "%n", "+%s", "+%Y-%m-%d", "oneline", "%h %s", "%(trailers)", "full", "run", "test", "json", "aux", "./", "all",
}

// generator makes commands from the specifications themselves.
type generator struct {
	r     *rand.Rand
	words map[role][]string // for each role
}

func (g *generator) pick(of []string) string { return of[g.r.IntN(len(of))] }

// value is a word for a role.
func (g *generator) value(u use) string {
	if u.form != nil {
		if fit := slices.DeleteFunc(slices.Clone(smallWords), func(w string) bool { return !u.form.MatchString(w) }); len(fit) > 0 && g.r.IntN(8) > 0 {
			return g.pick(fit)
		}
		return g.pick(smallWords)
	}
	return g.pick(g.words[u.role])
}

// options are the words of some options of a block.
func (g *generator) options(b *block, most int) []string {
	names := slices.Sorted(maps.Keys(b.options))
	var out []string
	for range g.r.IntN(most + 1) {
		if len(names) == 0 {
			break
		}
		out = append(out, g.option(b, g.pick(names))...)
	}
	return out
}

func (g *generator) option(b *block, name string) []string {
	o := b.options[name]
	if o.value == nil {
		return []string{name}
	}
	v := g.value(*o.value)
	switch {
	case strings.HasSuffix(name, "="):
		return []string{name + v}
	case (b.words || strings.HasPrefix(name, "--")) && g.r.IntN(2) == 0:
		return []string{name + "=" + v}
	case !b.words && !strings.HasPrefix(name, "--") && g.r.IntN(2) == 0:
		return []string{name + v}
	}
	return []string{name, v}
}

// command is a call of a program, or of one of its subcommands.
func (g *generator) command(name string, p *program) []string {
	out, b := []string{name}, &p.block
	subs := slices.Sorted(maps.Keys(p.subs))
	if len(subs) > 0 && (p.operands == nil || g.r.IntN(4) > 0) {
		out = append(out, g.options(b, 1)...)
		sub := g.pick(subs)
		b = p.subs[sub]
		out = append(out, strings.Fields(sub)...)
	}
	options, operands := g.options(b, 3), g.operands(b)
	switch {
	case g.r.IntN(8) == 0:
		operands = slices.Insert(operands, g.r.IntN(len(operands)+1), "--")
	case g.r.IntN(3) == 0:
		return append(append(out, operands...), options...)
	}
	return append(append(out, options...), operands...)
}

func (g *generator) operands(b *block) []string {
	var out []string
	for i, u := range b.operands {
		n := 1
		if i == b.rest {
			n = g.r.IntN(3)
		} else if g.r.IntN(6) == 0 {
			n = 0
		}
		for range n {
			out = append(out, g.value(u))
		}
	}
	return out
}

// line is a command as bash reads it.
func line(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; a == "" || !plain(a) {
			out[i] = quoted(a)
		}
	}
	return strings.Join(out, " ")
}

// waits are programs and words with which a command waits for something.
var waits = words("sleep ping ping6 wait vmstat -f -F --follow --retry dockerd top")

// truthPolicies are rules for every program, and for every subcommand.
func truthPolicies(t *testing.T) map[string]*Policy {
	t.Helper()
	every := []string{"deny Read(secrets/**)", "allow Edit(src/**)"}
	spelt := slices.Clone(every)
	for _, name := range slices.Sorted(maps.Keys(programs())) {
		p := programs()[name]
		every = append(every, "allow Bash("+name+" *)")
		if len(p.subs) == 0 {
			spelt = append(spelt, "allow Bash("+name+" *)")
		}
		for _, sub := range slices.Sorted(maps.Keys(p.subs)) {
			spelt = append(spelt, "allow Bash("+name+" "+sub+" *)")
		}
	}
	return map[string]*Policy{"every program": rules(t, every...), "every subcommand": rules(t, spelt...)}
}

// truth is what allowed commands were seen to do.
type truth struct {
	policies map[string]*Policy
	ws       string
	programs map[string]int // that were run
	missing  map[string]bool
}

// What the policy says of a command is what the command does. Commands that it allows,
// of the lists and made at random from the specifications, are run under strace; what
// they opened, changed, ran and reached must be what the policy derived from their
// words. make attack runs thousands; this test, a sample.
func TestTruth(t *testing.T) {
	t.Parallel()
	needShutIn(t, "strace")
	top := makeAttacked(t)
	tr := &truth{policies: truthPolicies(t), ws: filepath.Join(top, "ws"), programs: map[string]int{}, missing: map[string]bool{}}
	todo := tr.generated(t, max(*attackN/2, 1))
	todo = append(todo, tr.listed(t, max(*attackN/2, 1))...)
	var differences atomic.Int64
	each(t, top, len(todo), func(s *shutIn, i int) {
		got, err := s.run(order{Command: todo[i], Trace: true})
		if err != nil {
			t.Error(err)
			return
		}
		for _, d := range tr.differences(t, todo[i], &got) {
			differences.Add(1)
			t.Errorf("%q %s, which the policy does not say\n%q", todo[i], d, got.Output[:min(len(got.Output), 200)])
		}
	})
	t.Logf("%d allowed commands of %d programs run under strace, %d differences; not installed: %s", len(todo), len(tr.programs), differences.Load(), strings.Join(slices.Sorted(maps.Keys(tr.missing)), " "))
}

// generated are n commands that a policy allows.
func (tr *truth) generated(t *testing.T, n int) []string {
	t.Helper()
	g := &generator{rand.New(rand.NewPCG(uint64(*attackSeed), 11)), sampleWords} //nolint:gosec // it is to be repeatable
	var names []string
	for _, name := range slices.Sorted(maps.Keys(programs())) {
		if _, err := exec.LookPath(name); (err != nil || !plainValue.MatchString(name)) && !builtin[name] {
			tr.missing[name] = true
		} else if !waits[name] {
			names = append(names, name)
		}
	}
	var out []string
	seen := map[string]bool{}
	for i := 0; len(out) < n && i < 400*n; i++ {
		name := names[i%len(names)]
		args := g.command(name, programs()[name])
		cmd := line(args)
		if seen[cmd] || slices.ContainsFunc(args, func(a string) bool { return waits[a] }) || allowing(t, tr.policies, tr.ws, cmd) == "" {
			continue
		}
		seen[cmd] = true
		tr.programs[name]++
		out = append(out, cmd)
	}
	return out
}

// listed are up to n lines of the lists that a policy allows.
func (tr *truth) listed(t *testing.T, n int) []string {
	t.Helper()
	var all []string
	for _, name := range specLists {
		for _, l := range specLines(t, name) {
			all = append(all, l[1])
		}
	}
	all = append(append(all, lines(t, "everyday.txt")...), lines(t, "benign.txt")...)
	rand.New(rand.NewPCG(uint64(*attackSeed), 12)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // it is to be repeatable
	var out []string
	for _, cmd := range all {
		words := strings.Fields(cmd)
		if _, err := exec.LookPath(words[0]); err != nil && !builtin[words[0]] || slices.ContainsFunc(words, func(w string) bool { return waits[w] }) || allowing(t, tr.policies, tr.ws, cmd) == "" {
			continue
		}
		if out = append(out, cmd); len(out) == n {
			break
		}
		tr.programs[words[0]]++
	}
	return out
}

// differences are what a command did that the policy did not say.
func (tr *truth) differences(t *testing.T, cmd string, got *outcome) []string {
	t.Helper()
	call := bash(t, tr.ws, cmd)
	s := readCall(&call).script
	for i := range s.units {
		if r := s.units[i].reading; r != nil && r.code {
			return nil // the workspace's code does what it does
		}
	}
	var out []string
	for _, f := range got.Facts {
		if why := tr.difference(s, f); why != "" && !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	output := got.Output
	if strings.Contains(cmd, "secret2.json") { // which says the name itself
		output = strings.ReplaceAll(output, "secret2.json", "")
	}
	if shows(output) && !showsEnvironment(s) && !slices.ContainsFunc(s.units, func(u unit) bool { return u.target != nil && u.names }) {
		out = append(out, "shows a secret")
	}
	if got.Fetched && !fetches(s) {
		out = append(out, "reaches the network")
	}
	return out
}

// showsEnvironment reports whether that is what the command is for, by a rule that spells it.
func showsEnvironment(s *script) bool {
	return slices.ContainsFunc(s.units, func(u unit) bool {
		return u.reading != nil && u.reading.block != nil && slices.Contains(u.reading.block.effects, "environ")
	})
}

func fetches(s *script) bool {
	return slices.ContainsFunc(s.units, func(u unit) bool {
		return u.reading != nil && slices.ContainsFunc(u.reading.demands, func(d demand) bool { return d.reaches })
	})
}

func (tr *truth) difference(s *script, f fact) string {
	top := filepath.Dir(tr.ws)
	rel, ours := strings.CutPrefix(f.Path, top+"/")
	switch f.Kind {
	case "connect":
		if !fetches(s) && !slices.ContainsFunc(s.units, func(u unit) bool { return u.reading != nil && callsHome[u.program()] }) {
			return "connects to " + f.Path
		}
	case "exec":
		if ours || strings.HasPrefix(f.Path, "/tmp/") {
			return "runs " + f.Path
		}
	case "write":
		scratch := strings.HasPrefix(f.Path, "/dev/") || strings.HasPrefix(f.Path, "/proc/") || strings.HasPrefix(f.Path, "/tmp/") && !ours || strings.HasPrefix(f.Path, "pipe:") || strings.HasPrefix(f.Path, "socket:")
		own := ours && (rel == "home" || strings.HasPrefix(rel, "home/")) // caches, in a home that is made anew
		if !scratch && !own && !upkeep[rel] && !said(s, f.Path, true) && !toBeRenamed(s, f.Path) {
			return "writes " + f.Path
		}
	case "read":
		secret := rel == "ws/.env" || strings.HasPrefix(rel, "ws/secrets/") || ours && !strings.HasPrefix(rel, "ws/") && !strings.HasPrefix(rel, "home/")
		if scans := slices.ContainsFunc(s.units, func(u unit) bool { return u.reading != nil && (u.program() == "go" || u.program() == "git") }); scans {
			return "" // go opens files to find out what they are, git to compare them; what they show is looked at below
		}
		if secret && info(f.Path) && !said(s, f.Path, false) {
			return "reads " + f.Path
		}
	}
	return ""
}

// callsHome are programs that look for a newer version of themselves, and those that
// ask for names: where there is a network, that is what running them means.
var callsHome = words("npm npx pip pip3 terraform dig host nslookup")

// info reports whether a path is no folder, as far as is known now.
func info(p string) bool {
	i, err := os.Stat(p)
	return err != nil || !i.IsDir()
}

// upkeep is what every command of git may write: the index, with what it learnt of
// files that were touched.
var upkeep = map[string]bool{"ws/.git/index.lock": true, "ws/.git/index": true}

// temporary is what zip, sed and ln call a file until it is whole.
var temporary = regexp.MustCompile(`^(zi|sed|Cu)[A-Za-z0-9]{6}$`)

// toBeRenamed reports whether a path is a file that is about to be renamed to the one that
// the policy derived, in the same folder.
func toBeRenamed(s *script, p string) bool {
	return temporary.MatchString(filepath.Base(p)) && slices.ContainsFunc(s.units, func(u unit) bool {
		return u.target != nil && u.write && filepath.Dir(u.target.abs) == filepath.Dir(p)
	})
}

// said reports whether the policy derived that a path is read or written.
func said(s *script, p string, write bool) bool {
	return slices.ContainsFunc(s.units, func(u unit) bool {
		t := u.target
		if t == nil || u.write != write || !write && u.names {
			return false
		}
		if p == t.resolved || p == t.abs {
			return true
		}
		_, in := below(t.resolved, p)
		_, leads := below(p, t.resolved) // the folders that lead to it are made with it
		return in && t.folder || write && (leads || in && !t.exists)
	})
}

// each calls f for 0 to n-1, several at a time, each with a process that runs commands.
func each(t *testing.T, top string, n int, f func(s *shutIn, i int)) {
	t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8, n) {
		s := startShutIn(t, top)
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(s, i)
			}
		})
	}
	all.Wait()
}
