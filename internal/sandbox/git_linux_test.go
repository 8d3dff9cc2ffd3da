package sandbox

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// git runs git outside, as an admin does.
func (h *house) git(dir string, args ...string) string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		h.t.Fatalf("git %q: %v\n%s", args, err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// repository makes one with a commit and an identity.
func (h *house) repository(path string) string {
	h.t.Helper()
	dir := h.folder(path)
	h.git(dir, "init", "-q", "-b", "main")
	h.git(dir, "config", "user.name", "agent")
	h.git(dir, "config", "user.email", "agent@example.org")
	h.write(path+"/file", "one\n")
	h.git(dir, "add", ".")
	h.git(dir, "commit", "-q", "-m", "first")
	return dir
}

// gitHouses are the ways in which a workspace has a repository.
var gitHouses = map[string]func(h *house){
	"a folder": func(h *house) {
		h.session.Workspace = h.repository("shared")
	},
	"a clone that borrows": func(h *house) {
		upstream := h.repository("data/repos/web")
		h.git(h.root, "clone", "-q", "--shared", upstream, h.work)
		h.git(h.work, "config", "user.name", "agent")
		h.git(h.work, "config", "user.email", "agent@example.org")
		h.session.ReadOnly = []string{filepath.Join(upstream, ".git", "objects")}
	},
	"a linked worktree": func(h *house) {
		main := h.repository("main")
		h.session.Workspace = filepath.Join(h.root, "linked")
		h.git(main, "worktree", "add", "-q", "-b", "side", h.session.Workspace)
	},
	"a submodule": func(h *house) {
		sub, super := h.repository("library"), h.repository("super")
		h.git(super, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "library")
		h.git(super, "commit", "-q", "-m", "with a library")
		h.session.Workspace = filepath.Join(super, "library")
		h.git(h.session.Workspace, "config", "user.name", "agent")
		h.git(h.session.Workspace, "config", "user.email", "agent@example.org")
	},
}

// everyGit runs a test in each of them.
func everyGit(t *testing.T, test func(t *testing.T, h *house)) {
	for name, furnish := range gitHouses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			furnish(h)
			test(t, h)
		})
	}
}

// What people do with git every day works, and what was done is there afterwards, with
// nothing in the way that git says is wrong.
func TestEverydayGitWorks(t *testing.T) {
	t.Parallel()
	everyGit(t, func(t *testing.T, h *house) {
		out := h.does(`set -e
			git status --short; git log --oneline
			echo two >> file; git commit -qam second
			git switch -q -c topic; echo three >> file; git add file; git commit -qm third
			echo four >> file; git stash -q; git stash list; git stash pop -q; git checkout -q -- file
			git mv file renamed; git commit -qm renamed; git tag v1; git rm -q --cached renamed; git reset -q --hard
			git switch -q -; echo other > other; git add other; git commit -qm other; git merge -q --no-edit topic
			git reset -q --hard HEAD~1; git rebase -q topic; git branch copy HEAD~1; git cherry-pick -x --allow-empty HEAD > /dev/null || git cherry-pick --quit
			git update-ref refs/heads/moved HEAD; git update-ref -d refs/heads/moved; git tag -d v1 > /dev/null
			if git rev-parse -q --verify origin/main; then git switch -q -c follows origin/main; git switch -q -; fi
			git reflog | head -1; git diff HEAD~1; git show --stat; git blame renamed; git grep -n one
			git commit -q --allow-empty --amend -m amended`)
		if strings.Contains(out, "error:") || strings.Contains(out, "fatal:") || strings.Contains(out, "warning:") {
			t.Errorf("git complains:\n%s", out)
		}
		if out := h.git(h.session.Workspace, "status", "--porcelain"); out != "" {
			t.Errorf("status afterwards: %s", out)
		}
		if out := h.git(h.session.Workspace, "log", "-1", "--format=%s"); out != "amended" {
			t.Errorf("the last commit is %q", out)
		}
		h.git(h.session.Workspace, "fsck", "--strict")
		h.git(h.session.Workspace, "gc", "--quiet")
	})
}

// What the repository's configuration includes, and its folder of hooks, are read-only
// where they lie in the workspace, and so is the way to them.
func TestWhatTheConfigurationNamesCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.session.Workspace = h.repository("shared")
	h.write("shared/team/git/config", "[include]\n\tpath = more\n")
	h.git(h.session.Workspace, "config", "include.path", "../team/git/config")
	h.git(h.session.Workspace, "config", "includeIf.onbranch:evil.path", h.session.Workspace+"/not-there")
	h.git(h.session.Workspace, "config", "core.hooksPath", "tools/hooks")
	for _, script := range []string{
		`echo evil >> team/git/config`, `echo evil >> team/git/more`, `echo evil >> not-there`, `rm not-there`,
		`echo evil > tools/hooks/pre-commit`, `mv tools t2`, `mv team t2`, `mv team/git t2`, `rm -rf tools; test ! -e tools`,
	} {
		h.cannot(script)
	}
	h.does(`echo fine > team/notes; echo fine > tools/notes; git add team/notes; git commit -qm fine`)
}

// gitDirs finds the folder of the workspace's git, and the one that has its objects.
const gitDirs = `G=$(git rev-parse --absolute-git-dir); C=$(cd "$(git rev-parse --git-common-dir)" && pwd); `

// gitEvasions are attempts to leave something that git obeys.
var gitEvasions = map[string]string{
	"set a configuration":           `git config core.fsmonitor /evil`,
	"write the configuration":       `echo '[core] fsmonitor = /evil' >> "$C/config"`,
	"replace the configuration":     `cp "$C/config" /tmp/c && mv /tmp/c "$C/config"`,
	"remove the configuration":      `rm -f "$C/config"`,
	"link the configuration":        `ln -f "$C/config" ./config`,
	"rename onto the configuration": `echo evil > "$G/x" && mv -f "$G/x" "$C/config"`,
	"write a worktree's":            `echo evil >> "$G/config.worktree"`,
	"make a hook":                   `echo evil > "$C/hooks/pre-commit"`,
	"replace the hooks":             `mv "$C/hooks" "$C/h2"`,
	"link the hooks":                `rmdir "$C/hooks" && ln -s /tmp "$C/hooks"`,
	"make attributes":               `mkdir -p "$C/info"; echo '* filter=evil' > "$C/info/attributes"`,
	"make excludes":                 `mkdir -p "$C/info"; echo x >> "$C/info/exclude"`,
	"move info away":                `mv "$C/info" "$C/i2"`,
	"borrow objects":                `echo /elsewhere >> "$C/objects/info/alternates"`,
	"remove the borrowed":           `rm -f "$C/objects/info/alternates"`,
	"move the objects' info away":   `mv "$C/objects/info" "$C/objects/i2"`,
	"move the objects away":         `mv "$C/objects" "$C/o2"`,
	"move the references away":      `mv "$C/refs" "$C/r2"`,
	"move the logs away":            `mv "$C/logs" "$C/l2"`,
	"write commondir":               `echo ../evil > "$G/commondir"`,
	"remove commondir":              `rm -f "$G/commondir"`,
	"rename onto commondir":         `echo ../evil > "$G/x" && mv -f "$G/x" "$G/commondir"`,
	"write gitdir":                  `test -f "$G/gitdir" && echo /evil > "$G/gitdir"`,
	"make a module":                 `mkdir -p "$C/modules/x" && echo evil > "$C/modules/x/config"`,
	"make a worktree's":             `mkdir -p "$C/worktrees/evil" && echo /evil > "$C/worktrees/evil/commondir"`,
	"make a remote":                 `mkdir -p "$C/remotes" && echo 'URL: ext::evil' > "$C/remotes/origin"`,
	"move .git away":                `mv .git .g2`,
	"remove .git":                   `rm -rf .git; test ! -e .git`,
	"exchange .git":                 `mkdir g2 && mv -T .git g3 && mv -T g2 .git`,
}

func TestWhatGitObeysCannotBeWritten(t *testing.T) {
	t.Parallel()
	everyGit(t, func(t *testing.T, h *house) {
		obeyed := map[string]string{}
		seen := h.view()
		for path, m := range seen.at {
			// A linked worktree's own folder is in worktrees.
			if strings.Contains(path, ".git") && m.kind == readOnly && seen.at[path+"/linked"].kind != writable {
				obeyed[path] = tree(t, path)
			}
		}
		if len(obeyed) < 10 {
			t.Errorf("%d files and folders are protected", len(obeyed))
		}
		for name, script := range gitEvasions {
			if out, ok := h.runs("set -e; " + gitDirs + script); ok {
				t.Errorf("%s: it worked\n%s", name, out)
			}
		}
		for path, before := range obeyed {
			if after := tree(t, path); after != before {
				t.Errorf("%s is not what it was:\n%s\nbefore:\n%s", path, after, before)
			}
		}
	})
}

// What an earlier session without a sandbox could have left is not followed.
func TestLinksThatWerePlantedAreRefused(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(h *house, git string) error{
		"hooks": func(h *house, git string) error {
			_ = os.RemoveAll(git + "/hooks")
			return os.Symlink(h.folder("elsewhere"), git+"/hooks")
		},
		"objects": func(h *house, git string) error {
			if err := os.Rename(git+"/objects", h.root+"/objects"); err != nil {
				return err
			}
			return os.Symlink(h.root+"/objects", git+"/objects")
		},
		"config": func(h *house, git string) error {
			if err := os.Rename(git+"/config", h.root+"/config"); err != nil {
				return err
			}
			return os.Symlink(h.root+"/config", git+"/config")
		},
		"config, by another name": func(h *house, git string) error { return os.Link(git+"/config", h.session.Workspace+"/c") },
		"commondir":               func(_ *house, git string) error { return os.WriteFile(git+"/commondir", []byte("../../evil\n"), 0o644) },
		"alternates": func(h *house, git string) error {
			return os.WriteFile(git+"/objects/info/alternates", []byte(h.other+"\n"), 0o644)
		},
		"the folder": func(h *house, git string) error {
			if err := os.Rename(git, h.root+"/git"); err != nil {
				return err
			}
			return os.Symlink(h.root+"/git", git)
		},
		"another repository": func(h *house, git string) error {
			if err := os.RemoveAll(git); err != nil {
				return err
			}
			return os.WriteFile(git, []byte("gitdir: "+h.repository("theirs")+"/.git\n"), 0o644)
		},
		"another repository's worktree": func(h *house, git string) error {
			if err := os.RemoveAll(git); err != nil {
				return err
			}
			theirs := h.repository("theirs")
			h.git(theirs, "worktree", "add", "-q", h.root+"/their-tree")
			return os.WriteFile(git, []byte("gitdir: "+theirs+"/.git/worktrees/their-tree\n"), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.session.Workspace = h.repository("shared")
			if err := plant(h, filepath.Join(h.session.Workspace, ".git")); err != nil {
				t.Fatal(err)
			}
			if _, err := h.box(); err == nil {
				t.Error("the session was prepared")
			} else {
				t.Log(err)
			}
		})
	}
}

// view is what the house's session sees.
func (h *house) view() *view {
	h.t.Helper()
	v := newView()
	if _, err := v.session(h.spec, h.session); err != nil {
		h.t.Fatal(err)
	}
	return v
}

// tree is the names and contents of a file or a folder.
func tree(t *testing.T, path string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		out.WriteString(p + " " + d.Type().String() + "\n")
		if d.Type().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out.Write(b)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return out.String()
}

// Whatever git would find in a configuration, it is asked for.
func TestConfigurationsThatMayLeadElsewhere(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	if leads(file) {
		t.Error("a file that is not there")
	}
	for text, want := range map[string]bool{
		"":                         false,
		"[core]\n\tbare = false\n": false,
		"[remote \"origin\"]\n\turl = https://a/b": false,
		"[core]\n\thooksPath = x\n":                true,
		"[CORE] HOOKSPATH=x":                       true,
		"[include]\npath = x":                      true,
		"[InCludeIf \"gitdir:/\"] path = x":        true,
		"[include.x]\npath = y":                    true,
		strings.Repeat("#", 1<<20):                 true,
	} {
		writeAt(t, file, text)
		if got := leads(file); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

// Sessions that start at once in one folder, of which one has created a file and not yet written
// it, or whose bot was killed then, do not refuse each other.
func TestPinsAreMadeByMany(t *testing.T) {
	t.Parallel()
	for range 50 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "commondir"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		var many sync.WaitGroup
		for range 8 {
			many.Go(func() {
				if err := newView().gitFolder(dir); err != nil {
					t.Error(err)
				}
			})
		}
		many.Wait()
		if got, err := os.ReadFile(filepath.Join(dir, "commondir")); err != nil || string(got) != ".\n" {
			t.Fatalf("commondir holds %q: %v", got, err)
		}
	}
}
