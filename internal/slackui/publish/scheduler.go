package publish

import (
	"hash/maphash"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Options tune a [Scheduler]; the zero value is good for production.
type Options struct {
	// Log gets what went wrong, in full; nil means nowhere.
	Log *zap.Logger
	// DrainTimeout bounds how long Run goes on sending final states after its
	// context has ended; zero means 5 s.
	DrainTimeout time.Duration
	// CallTimeout bounds one call; zero means 15 s.
	CallTimeout time.Duration
	// GiveUpAfter is how long a state is retried after errors that may pass, from
	// the first of them; zero means 15 min. Waiting for a rate limit does not count.
	GiveUpAfter time.Duration
	// EditInterval is the shortest time between two Live edits of one message;
	// zero means 400 ms.
	EditInterval time.Duration
	// MaxInFlight is how many calls may be under way at once; zero means 16. A
	// quarter of them is kept for priorities above Live.
	MaxInFlight int
	// MaxCalls is how many Calls may wait; zero means 10,000. Messages are not
	// counted: of each key at most one state is kept.
	MaxCalls int
	// CallAttempts is how often a Call is tried in all; zero means 5.
	CallAttempts int
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	setInt := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	set(&o.DrainTimeout, 5*time.Second)
	set(&o.CallTimeout, 15*time.Second)
	set(&o.GiveUpAfter, 15*time.Minute)
	set(&o.EditInterval, 400*time.Millisecond)
	setInt(&o.MaxInFlight, 16)
	setInt(&o.MaxCalls, 10_000)
	setInt(&o.CallAttempts, 5)
	return o
}

// Scheduler paces, orders and retries all calls to Slack. Create it with New; its
// methods are safe for concurrent use.
type Scheduler struct {
	api  API
	o    Options
	wake chan struct{} // capacity 1: something became pending, or a slot free

	refusals refusals

	mu        sync.Mutex
	seq       uint64 // orders what became pending and who was served
	messages  map[string]*job
	lastCall  map[string]*job // by Call.Key: the newest call that is not done
	pending   []*job
	waiting   int // pending Calls
	inFlight  int
	pools     map[Method]pool      // of Live changes in flight
	open      map[*job]struct{}    // messages that are streams now
	noStreams map[string]time.Time // until when none is begun, by channel; "": anywhere
	looks     map[string]time.Time // when somebody looked at a group
	buckets   map[Method]*bucket
	channels  map[string]*bucket // chat.postMessage per channel
	share     Share              // of the rates
	groups    map[string]*group
	ended     tombstones
	draining  bool
	stopped   bool
	rounds    int // of dispatch

	calls sync.WaitGroup
}

// New returns a scheduler that sends nothing until Run is called.
func New(api API, o Options) *Scheduler {
	return &Scheduler{
		api:       api,
		o:         o.withDefaults(),
		wake:      make(chan struct{}, 1),
		messages:  map[string]*job{},
		lastCall:  map[string]*job{},
		buckets:   map[Method]*bucket{},
		channels:  map[string]*bucket{},
		share:     Share{Anywhere: 1, Turns: 1},
		groups:    map[string]*group{},
		pools:     map[Method]pool{},
		open:      map[*job]struct{}{},
		noStreams: map[string]time.Time{},
		looks:     map[string]time.Time{},
		ended:     tombstones{seed: maphash.MakeSeed()},
	}
}

// job is a message with its latest state, or a call. All fields are guarded by
// Scheduler.mu, but msg and call do not change while the job is in flight except
// through next.
type job struct {
	seq     uint64 // when it became pending
	group   *group
	index   int // in Scheduler.pending; -1 when it is not there
	flying  bool
	next    Method    // of its next call, or of the one in flight
	urgency Priority  // of that call
	live    float64   // its shares in Scheduler.pools
	begun   time.Time // when its last attempt began
	retryAt time.Time // not before, after an error
	failing time.Time // the first error of the current row of errors
	fails   int

	msg       Message // the latest state shown
	key       uint64  // hash of msg.Key
	ts        string  // where it stands in Slack
	sum       uint64  // of the content that Slack has; 0 if unknown
	edits     int
	stream    stream    // while it is one
	grown     *growth   // to the latest state; nil while nobody asked
	gone      bool      // it is not wanted any more
	told      bool      // Slack has its last state, not as it is to look in the end
	edited    bool      // it is not begun as a stream any more
	streamed  bool      // it is a stream, or was one
	changed   time.Time // when a state was shown that Slack does not have
	rendering rendering // what is left of this message's rendering, after Slack's refusals
	filed     bool      // all of it is in a file
	newer     bool      // msg was shown while an older state was in flight
	doubt     bool      // Slack may have the message, posted by an attempt that seemed to fail
	// ends are the OnEnd of the states that Slack does not have, in the order in which they
	// were shown.
	ends []func(error)

	call  *Call // nil for a message
	after *job  // the call of the same key that must be done first
	done  bool
}

// stays reports whether the job is done before the scheduler stops.
func (j *job) stays() bool {
	if j.call != nil {
		return j.call.Priority >= Answer
	}
	return j.stream.stop || j.msg.stays()
}

func (j *job) channel() string {
	if j.call != nil {
		return j.call.Channel
	}
	return j.msg.Channel
}

// paced reports whether the job's next call is one of many that change a message.
func (j *job) paced() bool {
	return j.call == nil && j.ts != "" && j.urgency == Live
}

// isSent reports whether Slack has the latest state already.
func (s *Scheduler) isSent(j *job) bool {
	if j.stream.open {
		return len(j.growth().chunks) == 0 && !j.closes(time.Now())
	}
	if j.ts == "" || j.sum == 0 {
		return false
	}
	_, page, _ := s.refusals.put(j.rendering, InMessage, j.msg.Page)
	sum, err := contentSum(page)
	return err == nil && sum == j.sum
}

// Show makes m the state to be shown for its key; an older state that has not
// been sent is dropped. It never blocks. States for a key that has had its final
// one are ignored.
func (s *Scheduler) Show(m Message) {
	for _, end := range s.show(m) {
		end(nil)
	}
}

// show returns whom to tell that Slack has what they have shown.
func (s *Scheduler) show(m Message) (ended []func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	j := s.messages[m.Key]
	if j == nil {
		key := s.ended.hash(m.Key)
		if s.ended.has(key) {
			if m.OnEnd != nil {
				ended = append(ended, m.OnEnd)
			}
			return ended
		}
		j = &job{index: -1, key: key, msg: m, ts: m.TS, doubt: m.Doubtful, group: s.join(m.Group)}
		j.wants(m)
		j.changed = time.Now()
		s.messages[m.Key] = j
		s.enqueue(j)
		return nil
	}
	j.wants(m)
	if j.msg.Final {
		return nil
	}
	m.Key, m.Channel, m.ThreadTS = j.msg.Key, j.msg.Channel, j.msg.ThreadTS
	m.TS = "" // known since the first Show, or from our own post
	j.msg, j.grown = m, nil
	if m.Final {
		j.rendering = rich // the last state deserves a new try
	}
	if !s.isSent(j) {
		j.changed = time.Now()
	}
	switch {
	case j.flying:
		j.newer = true
	case j.index < 0 && s.isSent(j):
		if !j.stream.open {
			ended = j.ended(len(j.ends))
		}
		if m.Final {
			s.forget(j)
		}
	case j.index < 0:
		s.enqueue(j)
	default: // pending: what is sent is just newer
		if m.Final || m.Priority != Live {
			s.signal()
		}
	}
	return ended
}

// wants notes whom to tell of a state that was shown.
func (j *job) wants(m Message) {
	if m.OnEnd != nil {
		j.ends = append(j.ends, m.OnEnd)
	}
}

// ended takes the first n of those who are to be told.
func (j *job) ended(n int) []func(error) {
	out := j.ends[:n:n]
	j.ends = j.ends[n:]
	return out
}

// reached takes those who are to be told that a state is in Slack. After a last state nothing
// more is sent: they are all.
func (j *job) reached(a attempt) []func(error) {
	if a.msg.Final {
		return j.ended(len(j.ends))
	}
	return j.ended(a.ends)
}

// Forget takes back a message that is not to be shown any more: what was not sent is not,
// and no state of its key is from now on. Taking it away in Slack is the caller's; one
// that is on its way there is told to OnPosted all the same.
func (s *Scheduler) Forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.messages[key]
	switch {
	case j == nil:
		s.ended.add(s.ended.hash(key))
	case j.flying:
		j.newer, j.msg.Final, j.gone = false, true, true
	default:
		if j.index >= 0 {
			s.dequeue(j)
		}
		s.forget(j)
	}
}

// Known reports whether a message of this key was shown and may be shown again, or whether it
// is over, as far as is remembered: its last state is in Slack, or it was forgotten.
func (s *Scheduler) Known(key string) (shown, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[key] != nil, s.ended.has(s.ended.hash(key))
}

// Once schedules a call. It never blocks; when too many calls wait already,
// OnError gets ErrTooMany.
func (s *Scheduler) Once(c Call) {
	if s.admit(&c) {
		return
	}
	if c.OnError != nil {
		c.OnError(ErrTooMany)
	}
	if c.OnEnd != nil {
		c.OnEnd(ErrTooMany)
	}
}

func (s *Scheduler) admit(c *Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return true
	}
	if s.waiting >= s.o.MaxCalls {
		return false
	}
	j := &job{index: -1, call: c, group: s.join(c.Group)}
	if c.Key != "" {
		prev := s.lastCall[c.Key]
		for c.Replace && prev != nil && prev.index >= 0 {
			// What the dropped call was waiting for, this one waits for.
			older := prev.after
			s.dequeue(prev)
			s.forget(prev)
			prev = older
		}
		if prev != nil && !prev.done {
			j.after = prev
		}
		s.lastCall[c.Key] = j
	}
	s.enqueue(j)
	return true
}
