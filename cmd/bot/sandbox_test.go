package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/playground/slack"
)

// TestWhatWasAllowedIsShutIn: the demo's agent is in bwrap, without a network, and does
// its work there with the real CLI. What is asked and allowed sees the workspace, and of
// the bot nothing. Start log, audit and Home tab say what is in force.
func TestWhatWasAllowedIsShutIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret := filepath.Join(w.dir, "secret")
	if err := os.WriteFile(secret, []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	thread := w.runs(linus, eng, "", strings.Join([]string{
		"pwd > in", "git status --short > /dev/null && echo git >> in", "grep Seccomp: /proc/self/status >> in",
		"cat " + secret + " " + filepath.Join(w.dir, "deckhand.yaml") + " " + filepath.Join(w.dir, "bot.log") + " > out",
		"cd " + filepath.Join(w.dir, "bot") + " && find . -mindepth 1 -maxdepth 2 -not -name '*.sock' | sed 's,/[^/]*$,,' | sort | uniq -c >> " + filepath.Join(w.Workspace, "out") + "; cd " + w.Workspace, "cat /etc/shadow >> out", "env | grep -i -e slack -e database -e sk-ant >> out", "tail -n +2 /proc/net/route >> out", "true",
	}, "; "))
	w.click(ada, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, thread)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(w.Workspace, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if in := read("in"); in != w.Workspace+"\ngit\nSeccomp:\t2\n" {
		t.Errorf("what it saw of its own: %q", in)
	}
	// Of the bot's folder it sees its own home, its way to the model, what says whose its commits are, and nothing else.
	if out := strings.Fields(read("out")); strings.Join(out, " ") != "3 . 1 ./commits 1 ./gateway 1 ./home" {
		t.Errorf("what it saw of others': %q", out)
	}
	if log, err := os.ReadFile(filepath.Join(w.dir, "bot.log")); err != nil || !strings.Contains(string(log), `{"sample":"bwrap, no network, 8 GiB, 2048 processes, 20 GiB disk"}`) {
		t.Errorf("the start log does not say what is in force: %v\n%s", err, log)
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'started' AND details::jsonb->'sandboxes'->>'sample' LIKE 'bwrap, no network, 8 GiB, %'`); n != 1 {
		t.Errorf("%d rows of the audit say what is in force", n)
	}
	w.eventually("the home tab to say what is in force", func() bool {
		var home map[string]any
		w.must(http.MethodGet, "/_control/home?user="+ada, nil, &home)
		return strings.Contains(flatten(home), "bwrap, no network, 8 GiB")
	})
}

// TestAProjectWhoseSandboxDoesNotWork does not run, and its thread is told why.
func TestAProjectWhoseSandboxDoesNotWork(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	w.configure("sandbox: {see: [/opt/nowhere-to-be-seen]}", "")
	w.start()
	thread := w.post(linus, slack.ChannelEngineering, "", "@deckhand tool: Bash {\"command\": \"touch made\"}")
	w.says(eng, thread, "/opt/nowhere-to-be-seen")
	if w.exists("made") {
		t.Error("something ran")
	}
	w.doneWithAll()
}

// ownTrees has each thread work in a working tree of its own.
func (w *world) ownTrees() {
	w.t.Helper()
	w.configure(demoSandbox(w.t.Context()), "")
	w.replace("    dir:", "    workspace: worktree\n    dir:")
}

// add writes something at the end of the configuration.
func (w *world) add(text string) {
	w.t.Helper()
	w.edit(func(config string) string { return config + text })
}

// replace writes something else in the place of a part of the configuration.
func (w *world) replace(old, text string) {
	w.t.Helper()
	w.edit(func(config string) string { return strings.Replace(config, old, text, 1) })
}

func (w *world) edit(change func(config string) string) {
	w.t.Helper()
	file := filepath.Join(w.dir, "deckhand.yaml")
	config, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(change(string(config))), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// TestThreadsDoNotSeeEachOther: each has a clone of its own in which a commit works, and
// nothing of the other's is there. A third one starts from where the project is by then.
func TestThreadsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	w.ownTrees()
	w.start()
	run := func(command string) string {
		thread := w.runs(linus, eng, "", command)
		w.click(ada, eng, w.card(eng, thread).TS, "approve")
		w.done(eng, thread, thread)
		return w.text(`SELECT workspace FROM threads ORDER BY id DESC LIMIT 1`)
	}
	first := run("echo mine > mine && git add mine && git -c user.name=a -c user.email=a@b commit -qm mine && git log --format=%s -1 > out; echo x >> .git/config || echo refused >> out")
	if out, err := os.ReadFile(filepath.Join(first, "out")); err != nil || string(out) != "mine\nrefused\n" {
		t.Errorf("a commit in the first thread: %q, %v", out, err)
	}
	second := run("cat " + first + "/mine > out; ls -A " + filepath.Dir(first) + " >> out; ls -A " + filepath.Dir(filepath.Dir(first)) + " >> out; git log --all --format=%s | grep mine >> out; true")
	if first == second {
		t.Fatalf("both work in %s", first)
	}
	if out, err := os.ReadFile(filepath.Join(second, "out")); err != nil || string(out) != filepath.Base(second)+"\n"+filepath.Base(filepath.Dir(second))+"\n" {
		t.Errorf("what the second thread saw of the first: %q, %v", out, err)
	}

	// The project moves on.
	commit := exec.CommandContext(t.Context(), "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "moved on")
	commit.Dir = w.Workspace
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	third := run("git log --format=%s -1 > out")
	if out, err := os.ReadFile(filepath.Join(third, "out")); err != nil || string(out) != "moved on\n" {
		t.Errorf("the third thread starts from %q, %v", out, err)
	}

	if n := w.count(`SELECT count(*) FROM turns`) - w.count(`SELECT count(*) FROM threads`); n != 0 {
		t.Errorf("%d turns too many", n)
	}
}
