package policy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// planted are the links below src/dst-NAME, by that name, as commands for its subfolder b:
// whoever writes b/f, b/c/f or b/g.go there may write somewhere else. What is in clean is
// none.
var planted = map[string]string{
	"clean":        `echo old > f`,
	"package":      `ln -s ../../../package.json f`,
	"git":          `ln -s ../../../.git/config f`,
	"outside":      `ln -s ../../../../outer/f f`,
	"folder":       `rm -r c && ln -s ../../../../outer c`,
	"other-folder": `rm -r c && ln -s ../../../lib c`,
	"nowhere":      `ln -s ../../../../outer/new f`,
	"orders":       `echo {} > ../package.json && ln -s ../package.json f`,
	"hard":         `ln ../../../package.json f`,
	"hard-outside": `ln ../../../../outer/f f`,
	"source":       `ln -s ../../../../outer/g.go g.go`,
	"two-steps":    `ln -s ../../hop f`,
}

// makePlanted makes a workspace with a folder for each of them.
func makePlanted(t *testing.T) string {
	t.Helper()
	script := `set -eu
mkdir -p home outer ws/src/from/b/c ws/src/two/b ws/lib && echo old > outer/f && printf 'package  g\n' > outer/g.go
cd ws && git init -q . && echo '{}' > package.json && echo old > lib/f && ln -s ../../outer/f src/hop
for d in src/from src/from/b src/from/b/c src/two src/two/b; do echo new > $d/f; printf 'package  g\n' > $d/g.go; done
(cd src/from && tar cf ../x.tar f b/f b/c/f b/g.go && rm -f ../x.zip && zip -q ../x.zip f b/f b/c/f)
printf -- '--- a/src/dst/b/f\n+++ b/src/dst/b/f\n@@ -1 +1 @@\n-old\n+new\n' > src/p.patch
`
	for _, name := range slices.Sorted(maps.Keys(planted)) {
		script += fmt.Sprintf("mkdir -p src/dst-%s/b/c && (cd src/dst-%[1]s/b && %s)\n", name, planted[name])
	}
	script += "git config user.name t && git config user.email t@t && git config commit.gpgsign false && git add -A && git commit -qm first\n"
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = top
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("making the folder: %v\n%s", err, out)
	}
	return top
}

// treeWriters are commands that write below a folder, DST, files that their words do not name.
var treeWriters = []string{
	"cp -r src/from/. DST", "cp -R src/from/. DST", "cp -a src/from/. DST", "cp -rf src/from/. DST", "cp -ru src/from/. DST", "cp -rn src/from/. DST/",
	"cp --recursive src/from/. DST", "cp -r src/from/b DST", "cp -r src/from/b/ DST", "cp -r src/from/* DST", "cp -r src/from/{f,b} DST", "cp -r src/from/b/. DST/b",
	"cp -r src/from/. src/two/. DST", "mkdir -p DST/n && cp -r src/from/. DST", "cp -rv src/from/. DST/b/..", "cp -rt DST src/from/.", "cp -rl src/from/. DST", "cp -rb src/from/. DST",
	"(cd src && cp -r from/. SUB)", "cd DST && cp -r ../from/. .",
	"gofmt -w DST", "gofmt -l -w DST/b", "terraform fmt -recursive DST", "shfmt -w DST", "chmod -R 600 DST", "chmod -R go-w DST/b",
	"cd DST && tar xf ../x.tar", "cd DST && tar -xzf ../x.tgz", "cd DST/b && tar xvf ../../x.tar", "tar xf src/x.tar -C DST", "tar -C DST -xf src/x.tar", "cd DST && unzip -o ../x.zip", "unzip -o src/x.zip -d DST",
	"rsync -a src/from/ DST/", "install src/from/f DST/b/", "git apply src/p.patch", "patch -p1 < src/p.patch", "cpio -pdm DST < src/list", "ditto src/from DST", "7z x src/x.zip -oDST",
	"coverage html -d DST", "cmake -B DST", "go test -o DST/ ./...", "go build -o DST ./...", "npx jest --coverageDirectory DST", "npx jest --coverageDirectory=DST", "npx prettier --write DST",
	"npx eslint --fix DST", "black DST", "isort DST", "ruff format DST", "ruff check --fix DST", "dotnet build -o DST", "vendor/bin/phpunit --coverage-html DST", "goimports -w DST", "gofumpt -w DST",
}

// fileWriters write what they name, or put something in the place of what lies there.
var fileWriters = []string{
	"cp src/from/f DST/b/f", "cp src/from/f DST/b", "cp src/from/f src/from/g.go DST/b", "cp src/from/b/c/f DST/b/c", "cp -f src/from/f DST/b/f", "cp --remove-destination src/from/f DST/b/f", "cp src/from/* DST/b",
	"mv src/from/b DST", "mv -f src/from/f DST/b/f", "mv src/from/f DST/b", "mv src/from/* DST/b", "mv DST/b src/new", "mv src/from/b/c DST/b", "ln src/from/f DST/b/f", "ln -sf f DST/b/f", "git mv src/from/b DST",
	"tee DST/b/f", "tee -a DST/b/*", "truncate -s 0 DST/b/f", "truncate -s 0 DST/b/*", "touch DST/b/f", "touch DST/b/*", "chmod 600 DST/b/f", "sed -i s/o/x/ DST/b/f", "sed -i s/o/x/ DST/b/*", "sort -o DST/b/f src/from/f",
	"dd if=src/from/f of=DST/b/f", "zip DST/b/f src/from/f", "xxd src/from/f DST/b/f", "uniq src/from/f DST/b/f", "echo x > DST/b/f", "cat src/from/f >> DST/b/c/f", "gofmt -w DST/b/g.go", "gofmt -w DST/b/*.go",
	"rm -r DST", "rm -rf DST/b", "rm -f DST/b/*", "rm -rf DST/b/c", "rmdir DST/b/c", "mkdir -p DST/b/c/d", "mkdir -p DST/b/f/d", "git archive -o DST/b/f HEAD", "git rm -r DST", "git checkout -- DST", "git restore DST",
	"git clean -fd", "git reset --hard", "git stash", "tar cf DST/b/f src/from", "cd DST && zip -r b/f ../from", "curl -s -o DST/b/f http://127.0.0.1:8099/x",
}

// A command that writes below a folder what its words do not name is asked, whether a link there leads elsewhere or
// not.
func TestLinksBelowWhatIsWritten(t *testing.T) {
	t.Parallel()
	ws := filepath.Join(makePlanted(t), "ws")
	list := []string{"allow Edit(src/**)", "allow Read(**)", "allow Bash(npx jest *)", "allow Bash(npx prettier *)", "allow Bash(npx eslint *)", "allow Bash(tar xf *)", "allow Bash(tar xvf *)", "allow Bash(tar -xzf *)"}
	for name := range programs() {
		list = append(list, "allow Bash("+name+" *)")
	}
	p := rules(t, list...)
	for _, cmd := range treeWriters {
		for name := range planted {
			at := strings.NewReplacer("DST", "src/dst-"+name, "SUB", "dst-"+name).Replace(cmd)
			if d := p.Decide(bash(t, ws, at)); d.Verdict == Allow {
				t.Errorf("%q is allowed by %s", at, d.Rule)
			}
		}
	}
}

// TestAllowedCommandsWriteWhereTheirRulesSay runs what is allowed in a workspace full of
// links, and looks at what has changed.
func TestAllowedCommandsWriteWhereTheirRulesSay(t *testing.T) {
	t.Parallel()
	needShutIn(t)
	top := makePlanted(t)
	ws := filepath.Join(top, "ws")
	policies := truthPolicies(t)
	var todo []string
	seen := map[string]bool{}
	add := func(cmd string) bool {
		if seen[cmd] || allowing(t, policies, ws, cmd) == "" {
			return false
		}
		seen[cmd] = true
		todo = append(todo, cmd)
		return true
	}
	for _, writer := range slices.Concat(treeWriters, fileWriters) {
		for _, name := range slices.Sorted(maps.Keys(planted)) {
			add(strings.NewReplacer("DST", "src/dst-"+name, "SUB", "dst-"+name).Replace(writer))
		}
	}
	todo = sampled(todo, 4)
	g := &generator{rand.New(rand.NewPCG(uint64(*attackSeed), 13)), plantedWords()} //nolint:gosec // it is to be repeatable
	writers := programsThatWrite()
	for made, tries := 0, 0; made < *attackN && tries < 400**attackN; tries++ {
		name := writers[tries%len(writers)]
		if add(line(g.command(name, programs()[name]))) {
			made++
		}
	}
	var wrote atomic.Int64
	each(t, top, len(todo), func(s *shutIn, i int) {
		got, err := s.run(order{Command: todo[i]})
		if err != nil {
			t.Error(err)
			return
		}
		if len(got.Changed) > 0 {
			wrote.Add(1)
		}
		for _, path := range got.Changed {
			if why := beyond(t, policies, ws, todo[i], path); why != "" {
				t.Errorf("%q is allowed by %s and has changed %s, %s", todo[i], allowing(t, policies, ws, todo[i]), path, why)
			}
		}
	})
	t.Logf("%d allowed commands run, %d of which wrote something", len(todo), wrote.Load())
}

// beyond says how a file that a command has changed is beyond what its rules cover; empty
// when it is not: Edit(src/**), and where a rule spells a subcommand what that is for, in
// the workspace.
func beyond(t *testing.T, policies map[string]*Policy, ws, cmd, path string) string {
	rel, in := strings.CutPrefix(path, "ws/")
	c := bash(t, ws, cmd)
	req := readCall(&c)
	excused := slices.ContainsFunc(req.script.units, func(u unit) bool {
		return u.reading != nil && u.reading.block != nil && (u.reading.code || slices.ContainsFunc(u.reading.block.effects, func(e string) bool { return strings.HasPrefix(e, "write:") }))
	})
	switch {
	case strings.HasPrefix(path, "home/"), upkeep[path]:
		return ""
	case !in:
		return "outside of the workspace"
	case excused && policies["every program"].Decide(c).Verdict != Allow:
		return ""
	case !strings.HasPrefix(rel, "src/"):
		return "which no rule covers"
	case protected(rel) != "":
		return "where programs take orders from"
	}
	return ""
}

// plantedWords are words for the generator that lead to the links.
func plantedWords() map[role][]string {
	from := []string{"src/from/.", "src/from", "src/from/b", "src/from/f", "src/from/b/c", "src/two/.", "src/two", "src/from/g.go", "src/x.tar", "src/from/b/."}
	to := []string{"src/new", "src/from"}
	for name := range planted {
		to = append(to, "src/dst-"+name, "src/dst-"+name+"/b", "src/dst-"+name+"/b/f", "src/dst-"+name+"/b/c", "src/dst-"+name+"/", "src/dst-"+name+"/b/g.go")
	}
	slices.Sort(to)
	out := maps.Clone(sampleWords)
	for _, r := range []role{roleRead, roleTree, roleNames, roleMoved, roleFollow} {
		out[r] = from
	}
	for _, r := range []role{roleWrite, roleInto, roleFolder} {
		out[r] = to
	}
	return out
}

// programsThatWrite are the programs that are installed here and write files, by their
// specifications.
func programsThatWrite() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(programs())) {
		p := programs()[name]
		blocks := slices.AppendSeq([]*block{&p.block}, maps.Values(p.subs))
		if _, err := exec.LookPath(name); err == nil && plainValue.MatchString(name) && !waits[name] && slices.ContainsFunc(blocks, func(b *block) bool { return b.writes }) {
			out = append(out, name)
		}
	}
	return out
}
