package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox/stage"
	"deckhand/internal/waittest"
)

// watched runs a script inside, watched, and returns what it was ended for.
func (h *house) watched(script string, meanwhile func(s *Watch)) string {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	box, err := h.box()
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), waittest.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append(box.Command, script)...)
	cmd.Env, cmd.Dir = append(box.Env, roleVariable+"=starter"), h.session.Workspace
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	var w Watcher
	s := w.Watch(box, cmd.Process.Pid, func() { _ = cmd.Process.Kill() })
	defer s.Stop()
	if meanwhile != nil {
		meanwhile(s)
	}
	_ = cmd.Wait() // it is killed
	if ctx.Err() != nil {
		h.t.Fatal("nothing has ended it")
	}
	return s.Over()
}

// A session that reaches a limit is ended, and it is said which one, how much, and what to
// do.
func TestALimitBites(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		limits       Limits
		want         []string
	}{
		{"memory", "(head -c 900M /dev/zero; sleep 100000) | tail", Limits{Memory: 64 * mib}, []string{"of memory and may use 64 MiB", "sandbox.limits.memory"}},
		{"processes", "(while :; do sleep 100000 & done); sleep 100000", Limits{Processes: 50}, []string{"processes and threads at once and may have 50", "sandbox.limits.processes"}},
		{"disk", "until test -e go; do sleep 0.01; done; head -c 90M /dev/zero > \"$HOME/large\"; sleep 100000", Limits{Disk: 64 * mib}, []string{"may have 64 MiB", "sandbox.limits.disk"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.spec.Limits = tt.limits
			over := h.watched(tt.script, func(s *Watch) {
				if tt.limits.Disk == 0 {
					return
				}
				for known := false; !known; time.Sleep(time.Millisecond) {
					s.disk.mu.Lock()
					known = s.disk.most > 0
					s.disk.mu.Unlock()
				}
				if err := os.WriteFile(filepath.Join(h.session.Workspace, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			})
			for _, want := range tt.want {
				if !strings.Contains(over, want) {
					t.Errorf("%q, without %q", over, want)
				}
			}
		})
	}
}

// What processes share counts once, such as the C library of many.
func TestSharedMemoryCountsOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.spec.Limits.Memory = 4 * gib
	h.watched("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 100000 & done; touch ready; sleep 100000", func(s *Watch) {
		defer s.end()
		for !exists(filepath.Join(h.session.Workspace, "ready")) {
			time.Sleep(time.Millisecond)
		}
		var table processTable
		table.read([]*Watch{s})
		u := table.uses[s.root]
		if n := u.exactly(); len(u.pids) < 11 || n == 0 || n > u.resident/2 {
			t.Errorf("%d processes have %s, of %s that are mapped", len(u.pids), Size(n), Size(u.resident))
		}
	})
}

// What lies in memory without being mapped is limited where it lies, the kernel takes
// memory from sessions first, and more open files than the bot itself may have are no
// mistake.
func TestWhatTheKernelLimits(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.spec.Limits = Limits{Memory: 64 * mib, Files: 1 << 30}
	h.does(`test "$(cat /proc/self/oom_score_adj)" = 1000
		for d in /tmp:32 /dev/shm:16 /var/tmp:16; do
			test "$(df --output=size -m "${d%:*}" | tail -1 | tr -d ' ')" = "${d#*:}" || { df -m; exit 1; }
			touch "${d%:*}/made" || exit 1
		done
		echo > /dev/null && head -c 1 /dev/urandom > /dev/null`)
	h.cannot("head -c 40M /dev/zero > /tmp/large")
	h.cannot("touch /dev/made")
	h.spec.Limits.Files = 300
	h.does(`test "$(ulimit -Hn)" = 300`)
}

// In a namespace of its own a session's processes are counted apart. Root is exempt.
func TestTheKernelRefusesProcesses(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root's processes are not counted")
	}
	h := newHouse(t)
	h.spec.Limits.Processes = 60
	over := h.watched(`until grep "^Max processes *60 " /proc/self/limits > limit; do sleep 0.01; done; (while :; do sleep 100000 & done); sleep 100000`, nil)
	if limit := h.read("data/workspaces/web/1/limit"); limit == "" || over == "" {
		t.Errorf("the kernel's limit is %q; %q", limit, over)
	}
}

// A limit that nobody keeps is refused: this bot has no cgroup.
func TestCoresNeedACgroup(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.spec.Limits.CPU = 2
	if ownGroups() != nil {
		t.Skip("there is one")
	}
	s, err := New(h.spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), tryRun); err == nil || !strings.Contains(err.Error(), "Delegate=yes") {
		t.Errorf("%v", err)
	}
}

// fakeGroups is a folder that looks like a cgroup that was given to the bot.
func fakeGroups(t *testing.T, procs string) *groups {
	t.Helper()
	g := &groups{t.TempDir()}
	for name, text := range map[string]string{
		"cgroup.controllers": "cpu io memory pids\n", "cgroup.procs": procs, "cgroup.subtree_control": "", "bot/cgroup.procs": "",
	} {
		writeAt(t, filepath.Join(g.dir, name), text)
	}
	return g
}

func writeAt(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func readAt(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

func TestTheBotTakesACgroupThatIsItsAlone(t *testing.T) {
	t.Parallel()
	g := fakeGroups(t, "42\n")
	must(t, g.take(42))
	if got := readAt(t, filepath.Join(g.dir, "bot/cgroup.procs")); got != "42" {
		t.Errorf("in the bot's own: %q", got)
	}
	if got := readAt(t, filepath.Join(g.dir, "cgroup.subtree_control")); got != "+memory +pids +cpu" {
		t.Errorf("controllers: %q", got)
	}
	for name, g := range map[string]*groups{"with others": fakeGroups(t, "1\n42\n"), "without memory": fakeGroups(t, "42\n")} {
		if name == "without memory" {
			writeAt(t, filepath.Join(g.dir, "cgroup.controllers"), "hugetlb\n")
		}
		if err := g.take(42); err == nil || readAt(t, filepath.Join(g.dir, "bot/cgroup.procs")) != "" {
			t.Errorf("%s: taken, %v", name, err)
		}
	}
}

func TestWhichCgroupIsTheBots(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ own, mounts, want string }{
		{"0::/system.slice/deckhand.service\n", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/system.slice/deckhand.service"},
		{"0::/\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "/sys/fs/cgroup"},
		{"0::/kubepods/pod1/c1\n", "30 23 0:26 /kubepods/pod1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "/sys/fs/cgroup/c1"},
		{"0::/../other\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", ""},
		{"4:memory:/x\n", "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", ""},
	} {
		dir := t.TempDir()
		writeAt(t, filepath.Join(dir, "cgroup"), tt.own)
		writeAt(t, filepath.Join(dir, "mountinfo"), tt.mounts)
		if got := findGroup(dir); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.own, got, tt.want)
		}
	}
}

func TestTheKernelsWordOnACgroup(t *testing.T) {
	t.Parallel()
	g := &group{t.TempDir()}
	limits := Limits{Memory: 4 * gib, Processes: 100}
	writeAt(t, filepath.Join(g.dir, "memory.events"), "low 0\nmax 7\noom 0\noom_kill 0\n")
	writeAt(t, filepath.Join(g.dir, "pids.events"), "max 0\n")
	if got := g.exceeded(limits); got != "" {
		t.Errorf("within its limits: %q", got)
	}
	writeAt(t, filepath.Join(g.dir, "pids.events"), "max 3\n")
	if got := g.exceeded(limits); !strings.Contains(got, "100 processes and threads") {
		t.Errorf("forked: %q", got)
	}
	writeAt(t, filepath.Join(g.dir, "memory.events"), "oom 1\noom_kill 2\n")
	if got := g.exceeded(limits); !strings.Contains(got, "more than 4 GiB of memory") {
		t.Errorf("out of memory: %q", got)
	}
}

// A session joins its cgroup before anything of it runs, and ends with it. Of the real
// kernel: where there is a cgroup of version 2 that can be written to, whatever it controls.
func TestASessionIsInItsCgroup(t *testing.T) {
	t.Parallel()
	dir := findGroup("/proc/self")
	g := &group{filepath.Join(dir, sessionPrefix+"test-"+strconv.Itoa(os.Getpid()))}
	if dir == "" || os.Mkdir(g.dir, 0o755) != nil {
		t.Skip("no cgroup of version 2 that can be written to")
	}
	h := newHouse(t)
	box, err := h.box()
	must(t, err)
	box.Command, err = staged(Bwrap, grouped(t, box.Command[2], g.procs()))
	must(t, err)
	box.group = g
	cmd := exec.CommandContext(t.Context(), box.Command[0], append(box.Command[1:], "-c", "echo; sleep 100000 & sleep 100000")...)
	cmd.Env, cmd.Dir = box.Env, h.session.Workspace
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(readAt(t, g.procs()))); n < 3 {
		t.Errorf("%d processes are in the cgroup", n)
	}
	must(t, g.remove())
	_ = cmd.Wait() // it was killed
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

// grouped is the plan of a stage with a cgroup to join.
func grouped(t *testing.T, text, procs string) stage.Bwrap {
	t.Helper()
	var p stage.Bwrap
	must(t, json.Unmarshal([]byte(text), &p))
	p.Group = procs
	return p
}
