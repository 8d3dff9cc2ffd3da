package claude_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/needtest"
)

var processRows = []row{
	{"resume", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.run("say: first")
		s.must(s.p.Stop(s.ctx))
		if exit := s.exit(); exit.Reason != claude.ExitClean || exit.Sentence() == "" {
			t.Errorf("%v", exit)
		}
		if err := s.p.Prompt(uuid.NewString(), claude.Text("too late")); err == nil {
			t.Error("a prompt to an ended process was accepted")
		}
		s.start(resumed)
		if turn := s.run("say: second"); turn.Result.IsError || s.p.SessionID() != s.id {
			t.Errorf("session %s, want %s: %s", s.p.SessionID(), s.id, show(turn))
		}
	}},
	{"fork", "2.1.276", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.run("say: first")
		s.must(s.p.Stop(s.ctx))
		parent := s.fork()
		s.start(resumed)
		if turn := s.run("say: forked"); turn.Result.IsError || s.p.SessionID() != s.id {
			t.Errorf("session %s, want %s", s.p.SessionID(), s.id)
		}
		s.must(s.p.Stop(s.ctx))
		if found, err := filepath.Glob(filepath.Join(s.home, ".claude", "projects", "*", parent+".jsonl")); err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		} else if b, err := os.ReadFile(found[0]); err != nil || bytes.Contains(b, []byte("forked")) {
			t.Errorf("the parent has what was said in the copy: %v", err)
		}
	}},
	{"resume an unknown session", "2.0.0", func(t *testing.T, cli program) {
		exit := fails(t, cli, func(s *session, o *claude.Options) { o.Resume = true })
		if exit.Reason != claude.ExitUnknownSession {
			t.Errorf("%v\n%s", exit, exit.Stderr)
		}
	}},
	{"session id in use", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.run("say: first")
		s.must(s.p.Stop(s.ctx))
		s.ended()
		p, err := claude.Start(s.ctx, s.options())
		s.must(err)
		s.p = p
		_, _ = p.Initialize(s.ctx, claude.InitializeRequest{}) // the exit tells
		if exit := s.exit(); exit.Reason != claude.ExitIDInUse {
			t.Errorf("%v\n%s", exit, exit.Stderr)
		}
	}},
	{"bad flag", "2.0.0", func(t *testing.T, cli program) {
		exit := fails(t, cli, func(_ *session, o *claude.Options) { o.Command = append(o.Command, "--no-such-flag") })
		if exit.Reason != claude.ExitBadFlag || !strings.Contains(exit.Stderr, "--no-such-flag") {
			t.Errorf("%v\n%s", exit, exit.Stderr)
		}
	}},
	{"not logged in", "2.0.0", func(t *testing.T, cli program) {
		exit := fails(t, cli, func(s *session, o *claude.Options) { o.Env = s.env(map[string]string{"ANTHROPIC_API_KEY": ""}) })
		if exit.Reason != claude.ExitNotLoggedIn {
			t.Errorf("%v\n%s", exit, exit.Stderr)
		}
	}},
	{"max turns", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli, func(_ *session, o *claude.Options, _ *claude.InitializeRequest) { o.MaxTurns = 1 })
		s.prompt(bash(t, "echo one"), bash(t, "echo two"), "say: end")
		if r := s.result(); r.Subtype != "error_max_turns" {
			t.Errorf("result %s", r.Raw)
		}
	}},
	{"stop leaves no descendant", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.run(leaveSleepers(t), "say: Left them.")
		tree := sleepers(t, s)
		s.must(s.p.Stop(s.ctx))
		allGone(t, tree)
	}},
	{"kill leaves no descendant", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.run(leaveSleepers(t), "say: Left them.")
		tree := sleepers(t, s)
		s.transcribed()
		s.p.Kill()
		waitDone(t, s.p)
		allGone(t, tree)
		if exit := s.exit(); exit.Reason != claude.ExitKilled {
			t.Errorf("%v", exit)
		}
		s.start(resumed)
		if turn := s.run("say: survived"); turn.Result.IsError {
			t.Errorf("resume after a kill: %s", turn.Result.Raw)
		}
	}},
	{"stop in mid-turn", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.prompt("slow: 10", "say: "+strings.Repeat("endless ", 200))
		s.until("the first delta", isDelta)
		s.must(s.p.Stop(s.ctx))
		if exit := s.exit(); exit.Reason != claude.ExitClean && exit.Reason != claude.ExitKilled {
			t.Errorf("%v", exit)
		}
	}},
	{"kill while an approval is due", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.onAsk = func(*claude.CanUseTool) {}
		s.prompt(bash(t, "touch x"), "say: Done.")
		s.until("an approval", func(m claude.Message) bool { _, ok := m.(*claude.CanUseTool); return ok })
		s.transcribed()
		s.p.Kill()
		s.ended()
		s.start(resumed)
		if turn := s.run("say: on we go"); turn.Result.IsError {
			t.Errorf("resume: %s", turn.Result.Raw)
		}
	}},
	{"in a sandbox", "2.0.0", func(t *testing.T, cli program) {
		bwrap := needtest.Program(t, "bwrap")
		s := prepare(t, cli)
		args := []string{
			bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session",
			"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", s.dir, s.dir, "--bind", s.home, s.home, "--",
		}
		if out, err := exec.CommandContext(t.Context(), args[0], append(args[1:], "true")...).CombinedOutput(); err != nil {
			needtest.Missing(t, "bubblewrap does not work here: "+string(out))
		}
		s.start(func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.Command = append(args, o.Command...)
		})
		s.run(leaveSleepers(t), "say: Left them.")
		tree := sleepers(t, s)
		s.p.Kill()
		waitDone(t, s.p)
		allGone(t, tree)

		// The order to end reaches the CLI, which saves its state, and not bwrap, whose end
		// kills it.
		s.transcribed()
		s.start(resumed, func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.Command = append(args, o.Command...)
		})
		s.prompt("slow: 10", "say: "+strings.Repeat("endless ", 200))
		s.until("the first delta", isDelta)
		s.must(s.p.Stop(s.ctx))
		if exit := s.exit(); exit.Code != 143 {
			t.Errorf("%v, not by itself: code %d, signal %v", exit, exit.Code, exit.Signal)
		}
	}},
	{"version", "2.0.0", func(t *testing.T, cli program) {
		v, err := claude.Version(t.Context(), []string{cli.path})
		if err != nil || v != cli.version {
			t.Errorf("version %q, %v, want %s", v, err, cli.version)
		}
	}},
}

// fails starts a process that is expected to end by itself, at the latest when
// it is asked to do something.
func fails(t *testing.T, cli program, with func(*session, *claude.Options)) *claude.ExitError {
	t.Helper()
	s := prepare(t, cli)
	o := s.options()
	with(s, &o)
	p, err := claude.Start(s.ctx, o)
	s.must(err)
	s.p = p
	t.Cleanup(func() {
		p.Kill()
		waitDone(t, p)
	})
	if _, err := p.Initialize(s.ctx, claude.InitializeRequest{}); err == nil {
		s.prompt("say: hi")
		s.until("a result or the end", func(m claude.Message) bool { _, ok := m.(*claude.Result); return ok })
		// A CLI that lives on after a failed turn ends when its input does.
		go func() { _ = p.Stop(s.ctx) }()
	}
	exit := s.exit()
	if exit.Sentence() == "" || exit.Error() == "" {
		t.Errorf("no words for %+v", exit)
	}
	return exit
}

// leaveSleepers is a command whose children leave its session and its process
// group, and one that has lost its parent.
func leaveSleepers(t *testing.T) string {
	t.Helper()
	return bash(t, "setsid sleep 3600 >/dev/null 2>&1 & nohup sleep 3601 >/dev/null 2>&1 & (setsid sleep 3602 >/dev/null 2>&1 &); sleep 0.1")
}

// sleepers returns the pids of the whole tree once the sleepers are in it.
func sleepers(t *testing.T, s *session) []int {
	t.Helper()
	var pids []int
	eventually(s.ctx, t, func() bool {
		pids = below(s.p.ReaperPID())
		n := 0
		for _, pid := range pids {
			if strings.HasPrefix(commandLine(pid), "sleep\x0036") {
				n++
			}
		}
		return n >= 3
	})
	return pids
}

// allGone fails if one of the processes lives: nothing waits, since Done has
// promised it.
func allGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if line := commandLine(pid); line != "" {
			t.Errorf("process %d lives: %q", pid, line)
		}
	}
}

// fork has the session be a copy of itself by another name, and returns the old one's.
func (s *session) fork() (parent string) {
	s.t.Helper()
	s.transcribed()
	found, err := filepath.Glob(filepath.Join(s.home, ".claude", "projects", "*", s.id+".jsonl"))
	s.must(err)
	b, err := os.ReadFile(found[0])
	s.must(err)
	parent, s.id = s.id, uuid.NewString()
	s.must(os.WriteFile(filepath.Join(filepath.Dir(found[0]), s.id+".jsonl"), b, 0o600))
	return parent
}
