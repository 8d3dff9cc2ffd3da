package sandbox

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// processTable is /proc's data about all processes, read at once for all sessions. It reuses its memory.
type processTable struct {
	uses    map[int]*use // by the root of a session
	parents map[int]process
	roots   map[int]int // by process: the root above it, or 0
	text    [1024]byte
}

type process struct {
	parent, threads int
	resident        int64 // bytes
}

// read reads the table anew.
func (t *processTable) read(watched []*Watch) {
	if t.parents == nil {
		t.parents, t.roots, t.uses = map[int]process{}, map[int]int{}, map[int]*use{}
	}
	clear(t.parents)
	clear(t.roots)
	clear(t.uses)
	for _, s := range watched {
		if l := s.box.limits; s.box.group == nil && (l.Memory > 0 || l.Processes > 0) {
			t.uses[s.root] = &use{}
		}
	}
	if len(t.uses) == 0 {
		return
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close() //nolint:errcheck // read only
	names, _ := dir.Readdirnames(-1)
	fd := int(dir.Fd())
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := t.stat(fd, name); ok {
				t.parents[pid] = p
			}
		}
	}
	for pid, p := range t.parents {
		if _, isRoot := t.uses[pid]; isRoot {
			continue
		}
		if u := t.uses[t.rootOf(pid, 0)]; u != nil {
			u.threads += p.threads
			u.resident += p.resident
			u.pids = append(u.pids, pid)
		}
	}
}

// stat reads what is needed of a process, which may have ended.
func (t *processTable) stat(proc int, name string) (process, bool) {
	fd, err := unix.Openat(proc, name+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, false
	}
	n, err := unix.Read(fd, t.text[:])
	_ = unix.Close(fd) // read only
	if err != nil || n <= 0 {
		return process{}, false
	}
	// The name stands in parentheses and may contain anything.
	text := t.text[:n]
	text = text[bytes.LastIndexByte(text, ')')+1:]
	var p process
	for i := 3; len(text) > 0; i++ { // numbered as in proc(5)
		text = bytes.TrimLeft(text, " ")
		field := text
		if end := bytes.IndexByte(text, ' '); end >= 0 {
			field = text[:end]
		}
		text = text[len(field):]
		switch i {
		case 4:
			p.parent = number(field)
		case 20:
			p.threads = number(field)
		case 24:
			p.resident = int64(number(field)) * pageSize
			return p, true
		}
	}
	return process{}, false
}

var pageSize = int64(os.Getpagesize())

func number(digits []byte) int {
	n := 0
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0
		}
		n = 10*n + int(d-'0')
	}
	return n
}

// rootOf is the session of a process, or 0. A table read while processes changed may contain a cycle; depth ends
// it.
func (t *processTable) rootOf(pid, depth int) int {
	if root, ok := t.roots[pid]; ok {
		return root
	}
	if _, isRoot := t.uses[pid]; isRoot {
		return pid
	}
	p, ok := t.parents[pid]
	root := 0
	if ok && p.parent > 1 && depth < len(t.parents) {
		root = t.rootOf(p.parent, depth+1)
	}
	t.roots[pid] = root
	return root
}

// exactly counts shared pages once. An unreadable process counts in full.
func (u *use) exactly() int64 {
	var sum int64
	for _, pid := range u.pids {
		sum += proportional(pid)
	}
	return sum
}

func proportional(pid int) int64 {
	dir := "/proc/" + strconv.Itoa(pid)
	text, err := os.ReadFile(dir + "/smaps_rollup")
	if err == nil {
		for line := range bytes.Lines(text) {
			if value, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
				return int64(number(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB")))) << 10
			}
		}
	}
	text, err = os.ReadFile(dir + "/statm")
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0 // it has ended
	}
	return int64(number(fields[1])) * pageSize
}

// capProcesses makes the kernel refuse processes over the limit to those in their own user namespace, where the
// kernel counts them separately: in the bot's it would count all processes of the user. Root is exempt. It reports
// whether there was one.
func capProcesses(pids []int, limit int) (done bool) {
	ours, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return true
	}
	for _, pid := range pids {
		theirs, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/user")
		if err != nil || theirs == ours {
			continue
		}
		n := unix.Rlimit{Cur: uint64(limit), Max: uint64(limit)}
		done = unix.Prlimit(pid, unix.RLIMIT_NPROC, &n, nil) == nil || done
	}
	return done
}
