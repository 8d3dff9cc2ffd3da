package sandbox

import (
	"strconv"
	"sync"
	"time"
)

// How often a [Watcher] checks, and how often once half of a limit is used.
const (
	pace = time.Second
	near = 200 * time.Millisecond
)

// Watcher ends sessions that exceed a limit that the kernel does not enforce: memory and processes without a
// cgroup, and the disk. One watcher serves all sessions of a bot, and runs while there are any. Its zero value is
// ready, and its methods are safe for concurrent use.
//
// It checks once a second, so a session can exceed a limit for a moment. It counts the mapped memory of its
// processes, shared pages once; folders in memory (/tmp, /dev/shm) have their own limit.
type Watcher struct {
	mu      sync.Mutex
	watched map[*Watch]bool
	running bool
	table   processTable
	walking bool
}

// Watch is a watched session.
type Watch struct {
	watcher *Watcher
	box     *Box
	root    int
	end     func()
	disk    diskUse
	capped  bool      // the kernel enforces the limit on processes
	exact   time.Time // when its memory was last measured exactly

	mu   sync.Mutex
	over string
}

// Watch watches the box, whose processes are all below root, until [Watch.Stop]. On reaching a limit it calls end,
// once.
func (w *Watcher) Watch(b *Box, root int, end func()) *Watch {
	s := &Watch{watcher: w, box: b, root: root, end: end, disk: diskUse{folders: b.folders}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		w.watched = map[*Watch]bool{}
	}
	w.watched[s] = true
	if !w.running {
		w.running = true
		go w.run()
	}
	return s
}

// Stop ends the watch, when the session has ended.
func (s *Watch) Stop() {
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	delete(s.watcher.watched, s)
}

// Over says which limit ended the session, in sentences for people, or nothing. Call it after the session's end and
// before closing its box.
func (s *Watch) Over() string {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over == "" {
		over = s.box.group.exceeded(s.box.limits)
	}
	if over == "" && s.box.why != nil {
		over = s.box.why()
	}
	return over
}

func (w *Watcher) run() {
	for {
		watched := w.list()
		if len(watched) == 0 {
			return
		}
		time.Sleep(w.check(watched))
	}
}

// list is what is watched. The watcher ends when there is nothing left.
func (w *Watcher) list() []*Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = len(w.watched) > 0
	out := make([]*Watch, 0, len(w.watched))
	for s := range w.watched {
		out = append(out, s)
	}
	return out
}

// check checks all of them, and returns the time until the next check.
func (w *Watcher) check(watched []*Watch) time.Duration {
	w.table.read(watched)
	next := pace
	for _, s := range watched {
		if s.judge(w.table.uses[s.root]) {
			next = near
		}
	}
	w.walk(watched)
	return next
}

// judge ends the session if it exceeds a limit, and reports whether it is close to one.
func (s *Watch) judge(u *use) (onItsWay bool) {
	l := s.box.limits
	if s.box.group != nil {
		s.stop(s.box.group.exceeded(l))
	} else if u != nil {
		if n := l.Processes; n > 0 {
			if !s.capped {
				s.capped = capProcesses(u.pids, n)
			}
			if u.threads >= n {
				s.stop(overProcesses(n, strconv.Itoa(u.threads)))
			}
			onItsWay = u.threads > n/2
		}
		if n := l.Memory; n > 0 {
			onItsWay = onItsWay || u.resident > n/2
			s.judgeMemory(u, n)
		}
	}
	s.stop(s.disk.over(l.Disk))
	return onItsWay
}

// judgeMemory measures exactly, which is slow, only what may exceed the limit.
func (s *Watch) judgeMemory(u *use, limit int64) {
	if u.resident <= limit || time.Since(s.exact) < pace {
		return
	}
	s.exact = time.Now()
	if n := u.exactly(); n > limit {
		s.stop(overMemory(limit, Size(n)))
	}
}

// stop ends the session if there is a reason.
func (s *Watch) stop(why string) {
	s.mu.Lock()
	first := why != "" && s.over == ""
	if first {
		s.over = why
	}
	s.mu.Unlock()
	if first {
		s.end()
	}
}

// use is the resource use of a session's processes.
type use struct {
	threads int
	// resident is an upper bound of their memory, in bytes: shared pages count for each.
	resident int64
	pids     []int
}
