package sandbox

import (
	"strconv"
	"sync"
	"time"
)

// How often a [Watcher] looks, and how often while somebody has used half of a limit.
const (
	pace = time.Second
	near = 200 * time.Millisecond
)

// Watcher ends sessions that reach a limit which the kernel does not keep for them:
// memory and processes where there is no cgroup, and the disk. It is one for all sessions
// of a bot, and works while there are any. Its zero value is ready, and its methods are
// safe for concurrent use.
//
// It looks once a second and so comes late: a session can use more for a moment. What it
// counts is what is mapped by its processes, a shared page once; what lies in its folders
// of memory (/tmp, /dev/shm) is limited when they are made.
type Watcher struct {
	mu      sync.Mutex
	watched map[*Watch]bool
	running bool
	table   processTable
	walking bool
}

// Watch is one session that is watched.
type Watch struct {
	watcher *Watcher
	box     *Box
	root    int
	end     func()
	disk    diskUse
	capped  bool      // the kernel refuses processes over the limit
	exact   time.Time // when its memory was last counted exactly

	mu   sync.Mutex
	over string
}

// Watch looks after the box, whose processes are all below root, until [Watch.Stop]. When
// it reaches a limit, end is called, once.
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

// Stop ends the watching. The session has ended.
func (s *Watch) Stop() {
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	delete(s.watcher.watched, s)
}

// Over says which limit has ended the session, in sentences for people, or nothing. It is
// asked when the session has ended, and before its box is closed.
func (s *Watch) Over() string {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over == "" {
		over = s.box.group.bitten(s.box.limits)
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
		time.Sleep(w.look(watched))
	}
}

// list is what is watched. With nothing to watch the watcher has ended.
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

// look looks at all of them, and says when to look again.
func (w *Watcher) look(watched []*Watch) time.Duration {
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

// judge ends the session if it has reached a limit, and tells whether it is on its way.
func (s *Watch) judge(u *use) (onItsWay bool) {
	l := s.box.limits
	if s.box.group != nil {
		s.stop(s.box.group.bitten(l))
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

// judgeMemory counts exactly, which takes its time, only what may be over the limit.
func (s *Watch) judgeMemory(u *use, limit int64) {
	if u.resident <= limit || time.Since(s.exact) < pace {
		return
	}
	s.exact = time.Now()
	if n := u.exactly(); n > limit {
		s.stop(overMemory(limit, Size(n)))
	}
}

// stop ends the session for a reason, if there is one.
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

// use is what the processes of a session use.
type use struct {
	threads int
	// resident is at least what they have in memory, in bytes: what they share is counted
	// for each.
	resident int64
	pids     []int
}
