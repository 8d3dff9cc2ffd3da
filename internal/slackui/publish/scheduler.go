package publish

import (
	"cmp"
	"hash/maphash"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Options tune a [Scheduler]; the zero value suits production.
type Options struct {
	// Log receives errors in full; nil logs nothing.
	Log *zap.Logger
	// CallTimeout bounds one call; zero means 15 s.
	CallTimeout time.Duration
	// MaxCalls bounds the waiting Calls; zero means 10,000. Messages are not counted: each key has at most one
	// state.
	MaxCalls int
}

const (
	// drainTimeout bounds how long Run sends final states after its context has ended.
	drainTimeout = 5 * time.Second
	// giveUpAfter is how long a state is retried after the first of consecutive errors that may pass. Waiting for a
	// rate limit does not count.
	giveUpAfter = 15 * time.Minute
	// editInterval is the shortest time between two Live edits of one message.
	editInterval = 400 * time.Millisecond
	// maxInFlight bounds the concurrent calls. A quarter is reserved for priorities above Live.
	maxInFlight = 16
	// callAttempts is the number of tries of a Call.
	callAttempts = 5
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	o.CallTimeout, o.MaxCalls = cmp.Or(o.CallTimeout, 15*time.Second), cmp.Or(o.MaxCalls, 10_000)
	return o
}

// Scheduler paces, orders and retries all calls to Slack. Create it with New; its methods are safe for concurrent
// use.
type Scheduler struct {
	api      API
	o        Options
	refusals refusals
	queue
	usage
	rounds int // of dispatch
	calls  sync.WaitGroup
}

// queue are the messages and calls that are known. Its mu guards all of the scheduler's state.
type queue struct {
	wake chan struct{} // capacity 1: something became pending, or a slot free

	mu       sync.Mutex
	seq      uint64 // orders pending jobs and served groups
	messages map[string]*job
	lastCall map[string]*job // by Call.Key: the newest unfinished call
	pending  []*job
	waiting  int               // pending Calls
	open     map[*job]struct{} // messages that are streams now
	groups   map[string]*group
	ended    tombstones
	draining bool
	stopped  bool
}

// usage is what Slack allows, and what is used of that.
type usage struct {
	inFlight  int
	pools     map[Method]pool // of Live changes in flight
	buckets   map[Method]*bucket
	channels  map[string]*bucket   // chat.postMessage per channel
	share     Share                // of the rates
	noStreams map[string]time.Time // until when none is begun, by channel; "": everywhere
	looks     map[string]time.Time // when somebody was active in a group
}

// New returns a scheduler that sends nothing until Run is called.
func New(api API, o Options) *Scheduler {
	return &Scheduler{
		api: api,
		o:   o.withDefaults(),
		queue: queue{
			wake:     make(chan struct{}, 1),
			messages: map[string]*job{},
			lastCall: map[string]*job{},
			open:     map[*job]struct{}{},
			groups:   map[string]*group{},
			ended:    tombstones{seed: maphash.MakeSeed()},
		},
		usage: usage{
			pools:     map[Method]pool{},
			buckets:   map[Method]*bucket{},
			channels:  map[string]*bucket{},
			share:     Share{Anywhere: 1, Turns: 1},
			noStreams: map[string]time.Time{},
			looks:     map[string]time.Time{},
		},
	}
}

// job is a message with its latest state, or a call. queue.mu guards all fields; while the job is in flight,
// msg and call change only through next.
type job struct {
	place
	tries
	state
	streaming

	call  *Call // nil for a message
	after *job  // the call of the same key that must finish first
	done  bool
}

// place is a job's position in the queue.
type place struct {
	seq     uint64 // when it became pending
	group   *group
	index   int // in queue.pending; -1 if absent
	flying  bool
	next    Method   // of its next call, or of the one in flight
	urgency Priority // of that call
	live    float64  // its shares in usage.pools
}

// tries are a job's attempts.
type tries struct {
	begun   time.Time // when the last one began
	retryAt time.Time // not before, after an error
	failing time.Time // the first of consecutive errors
	fails   int
	doubt   bool // Slack may have the message from an attempt that seemed to fail
}

// state is what a message is to show, and what Slack has of it.
type state struct {
	msg       Message // the latest state shown
	key       uint64  // hash of msg.Key
	ts        string  // its ts in Slack
	sum       uint64  // of the content in Slack; 0 if unknown
	edits     int
	gone      bool      // it is not wanted any more
	changed   time.Time // when a state that Slack lacks was shown
	rendering rendering // after Slack's refusals of this message
	filed     bool      // the full text is attached as a file
	newer     bool      // msg changed while an older state was in flight
	// ends are the OnEnd of the states that Slack lacks, in order.
	ends []func(error)
}

// streaming is the state of a message that is sent as a Slack stream.
type streaming struct {
	stream   stream  // while it is one
	grown    *growth // to the latest state; nil until computed
	told     bool    // Slack has its last state, though not in its final form
	edited   bool    // it cannot begin as a stream any more
	streamed bool    // it is a stream, or was one
}

// stays reports whether the job must finish before the scheduler stops.
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

// paced reports whether the job's next call is a live change.
func (j *job) paced() bool {
	return j.call == nil && j.ts != "" && j.urgency == Live
}

// isSent reports whether Slack already has the latest state.
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

// Show sets the state to show for m's key; an older unsent state is dropped. It never blocks. States after a key's
// final one are ignored.
func (s *Scheduler) Show(m Message) {
	for _, end := range s.show(m) {
		end(nil)
	}
}

// show returns the callbacks of states that Slack already has.
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
		j = &job{place: place{index: -1, group: s.join(m.Group)}, tries: tries{doubt: m.Doubtful}, state: state{key: key, msg: m, ts: m.TS}}
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
	default: // pending: the newer state is sent
		if m.Final || m.Priority != Live {
			s.signal()
		}
	}
	return ended
}

// wants records a state's callback.
func (j *job) wants(m Message) {
	if m.OnEnd != nil {
		j.ends = append(j.ends, m.OnEnd)
	}
}

// ended takes the first n callbacks.
func (j *job) ended(n int) []func(error) {
	out := j.ends[:n:n]
	j.ends = j.ends[n:]
	return out
}

// reached takes the callbacks of states that are in Slack: all of them after a last state.
func (j *job) reached(a attempt) []func(error) {
	if a.msg.Final {
		return j.ended(len(j.ends))
	}
	return j.ended(a.ends)
}

// Forget drops a message that is not to be shown any more: unsent states are dropped, and further ones ignored. The
// caller deletes it in Slack; if its post is in flight, OnPosted is still called.
func (s *queue) Forget(key string) {
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

// Known reports whether a message of this key was shown and may be shown again, or whether it is over, as far as is
// remembered: its last state is in Slack, or it was forgotten.
func (s *queue) Known(key string) (shown, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[key] != nil, s.ended.has(s.ended.hash(key))
}

// Once schedules a call. It never blocks; if too many calls already wait, OnEnd gets ErrTooMany.
func (s *Scheduler) Once(c Call) {
	if !s.admit(&c) && c.OnEnd != nil {
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
	j := &job{place: place{index: -1, group: s.join(c.Group)}, call: c}
	if c.Key != "" {
		prev := s.lastCall[c.Key]
		for c.Replace && prev != nil && prev.index >= 0 {
			// This call inherits the dropped one's predecessor.
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
