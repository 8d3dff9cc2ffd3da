package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// If the bot has a cgroup (version 2) of its own, for example as a systemd service with Delegate=yes, each session
// gets one below it, and the kernel enforces its limits: no program of the session can leave it by forking, and all
// its memory counts.

// groups is the bot's own cgroup.
type groups struct{ dir string }

// The bot's own place in its cgroup, since one with children holds no process, and the prefix of the sessions'.
const (
	botGroup      = "bot"
	sessionPrefix = "session-"
)

// ownGroups is the bot's cgroup, prepared once per process, or nil if it has none.
var ownGroups = sync.OnceValue(func() *groups {
	dir := findGroup("/proc/self")
	if dir == "" {
		return nil
	}
	g := &groups{dir}
	if err := g.take(os.Getpid()); err != nil {
		return nil // not delegated to us: a watcher enforces the limits
	}
	return g
})

// findGroup is the folder of a process's version 2 cgroup; empty if there is none.
func findGroup(proc string) string {
	own, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return ""
	}
	name := ""
	for line := range strings.Lines(string(own)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			name = path
		}
	}
	if name == "" || strings.HasPrefix(name, "/..") {
		return ""
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup2 ") || len(fields) < 5 {
			continue
		}
		if within, ok := strings.CutPrefix(name, strings.TrimSuffix(fields[3], "/")); ok {
			return filepath.Join(fields[4], within)
		}
	}
	return ""
}

// take prepares the cgroup for children if the process is alone in it: others are not moved.
func (g *groups) take(pid int) error {
	controllers, err := os.ReadFile(filepath.Join(g.dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var wanted []string
	for _, c := range []string{"memory", "pids", "cpu"} {
		if !slices.Contains(strings.Fields(string(controllers)), c) {
			return fmt.Errorf("the cgroup %s has no controller %s", g.dir, c)
		}
		wanted = append(wanted, "+"+c)
	}
	members, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	if own := strconv.Itoa(pid); strings.TrimSpace(string(members)) != own {
		return fmt.Errorf("the cgroup %s is not the bot's alone", g.dir)
	}
	bot := filepath.Join(g.dir, botGroup)
	if err := os.Mkdir(bot, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // like the kernel's own
		return err
	}
	if err := put(bot, "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return err
	}
	if err := put(g.dir, "cgroup.subtree_control", strings.Join(wanted, " ")); err != nil {
		// Return to where others expect it.
		return errors.Join(err, put(g.dir, "cgroup.procs", strconv.Itoa(pid)))
	}
	g.sweep()
	return nil
}

// sweep removes what a killed bot has left.
func (g *groups) sweep() {
	left, _ := filepath.Glob(filepath.Join(g.dir, sessionPrefix+"*")) // the pattern is valid
	for _, dir := range left {
		_ = (&group{dir}).remove() // what is left is empty and harmless
	}
}

// group is a session's cgroup; nil if there is none.
type group struct{ dir string }

// make makes a session's cgroup.
func (g *groups) make(name string, l Limits) (*group, error) {
	if g == nil || (l.Memory == 0 && l.Processes == 0 && l.CPU == 0) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	s := &group{filepath.Join(g.dir, sessionPrefix+name)}
	if err := os.Mkdir(s.dir, 0o755); err != nil { //nolint:gosec // like the kernel's own
		return nil, fmt.Errorf("make the session's cgroup: %w", err)
	}
	const period = 100_000 // µs
	values := [][2]string{}
	if l.Memory > 0 {
		values = append(values, [2]string{"memory.max", strconv.FormatInt(l.Memory, 10)}, [2]string{"memory.oom.group", "1"})
		if exists(filepath.Join(s.dir, "memory.swap.max")) { // missing on kernels without swap
			values = append(values, [2]string{"memory.swap.max", "0"})
		}
	}
	if l.Processes > 0 {
		values = append(values, [2]string{"pids.max", strconv.Itoa(l.Processes)})
	}
	if l.CPU > 0 {
		values = append(values, [2]string{"cpu.max", fmt.Sprintf("%d %d", int64(math.Ceil(l.CPU*period)), period)})
	}
	for _, v := range values {
		if err := put(s.dir, v[0], v[1]); err != nil {
			return nil, errors.Join(fmt.Errorf("limit the session's cgroup: %w", err), s.remove())
		}
	}
	return s, nil
}

// procs is the file through which a process joins, or empty.
func (g *group) procs() string {
	if g == nil {
		return ""
	}
	return filepath.Join(g.dir, "cgroup.procs")
}

// exceeded says which limit the kernel enforced; empty for none.
func (g *group) exceeded(l Limits) string {
	switch {
	case g == nil:
	case g.event("memory.events", "oom_kill") > 0:
		return overMemory(l.Memory, "more than "+Size(l.Memory))
	case g.event("pids.events", "max") > 0:
		return overProcesses(l.Processes, strconv.Itoa(l.Processes))
	}
	return ""
}

func (g *group) event(file, name string) int64 {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0 // the group is being removed
	}
	for line := range bytes.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(string(line)), " "); ok && key == name {
			n, _ := strconv.ParseInt(value, 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// remove kills what is left in the cgroup and removes it.
func (g *group) remove() error {
	if g == nil {
		return nil
	}
	if f := "cgroup.kill"; exists(filepath.Join(g.dir, f)) { // Linux 5.14
		if err := put(g.dir, f, "1"); err != nil {
			return fmt.Errorf("end what is left in the session's cgroup: %w", err)
		}
	}
	// The kernel takes a moment to reap killed processes.
	var err error
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		if err = os.Remove(g.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("remove the session's cgroup: %w", err)
}

func put(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
