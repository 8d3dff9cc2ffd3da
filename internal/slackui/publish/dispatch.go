package publish

import (
	"context"
	"hash/maphash"
	"maps"
	"time"

	"github.com/slack-go/slack"
)

// group is the unit of fairness.
type group struct {
	refs   int    // existing jobs of the group
	served uint64 // queue.seq when one of them was last sent
}

// groupsKept is how many groups are remembered before idle ones are forgotten.
const groupsKept = 1024

func (s *queue) join(name string) *group {
	g := s.groups[name]
	if g == nil {
		if len(s.groups) >= groupsKept {
			// Whoever was served long ago has nothing to be remembered for.
			maps.DeleteFunc(s.groups, func(_ string, old *group) bool { return old.refs == 0 && s.seq-old.served > groupsKept/2 })
		}
		g = &group{}
		s.groups[name] = g
	}
	g.refs++
	return g
}

// tombstones remembers the last keys that were finished or given up, so that a late Show does not post the message
// again.
type tombstones struct {
	seed  maphash.Seed
	known map[uint64]struct{}
	ring  []uint64
	next  int
}

const tombstonesKept = 4096

func (t *tombstones) hash(key string) uint64 { return maphash.String(t.seed, key) }

func (t *tombstones) has(key uint64) bool {
	_, ok := t.known[key]
	return ok
}

func (t *tombstones) add(key uint64) {
	if t.known == nil {
		t.known = map[uint64]struct{}{}
	}
	if len(t.ring) < tombstonesKept {
		t.ring = append(t.ring, key)
	} else {
		delete(t.known, t.ring[t.next])
		t.ring[t.next] = key
		t.next = (t.next + 1) % tombstonesKept
	}
	t.known[key] = struct{}{}
}

// dispatch begins every call that may begin now. It returns when to call it again, zero if only an event can change
// anything, and how much is pending or in flight.
func (s *Scheduler) dispatch(base context.Context) (next time.Time, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	now := time.Now()
	due := s.attend(now)
	for s.inFlight < maxInFlight && len(s.pending) > 0 {
		pools := maps.Clone(s.pools)
		for _, j := range s.pending {
			j.next, j.urgency = s.nextCall(j, now)
			if j.paced() {
				pools[j.next] = pools[j.next].with(s.weight(j, now), 1)
			}
		}
		var best *job
		next = time.Time{}
		for _, j := range s.pending {
			at, ok := s.readyAt(j, now, pools[j.next])
			switch {
			case !ok:
			case at.After(now):
				if next.IsZero() || at.Before(next) {
					next = at
				}
			case best == nil || s.before(j, best, now):
				best = j
			}
		}
		if best == nil {
			break
		}
		s.begin(base, best, now)
	}
	if !due.IsZero() && (next.IsZero() || due.Before(next)) {
		next = due
	}
	return next, len(s.pending) + s.inFlight
}

// nextCall is the method and priority of a job's next call; of a message, step (stream.go) tells whether it
// is a post, an edit or a part of a stream.
func (s *Scheduler) nextCall(j *job, now time.Time) (Method, Priority) {
	if j.call != nil {
		return j.call.Method, j.call.Priority
	}
	return s.step(j, now)
}

// before orders calls that may all go now: within a priority, tidying comes last, and watched groups come before
// others.
func (s *Scheduler) before(a, b *job, now time.Time) bool {
	if a.urgency != b.urgency {
		return a.urgency > b.urgency
	}
	if ta, tb := a.tidies(), b.tidies(); ta != tb {
		return tb
	}
	if la, lb := s.weight(a, now), s.weight(b, now); la != lb {
		return la > lb
	}
	if a.group.served != b.group.served {
		return a.group.served < b.group.served
	}
	return a.seq < b.seq
}

// readyAt returns the time from which j may be sent, or false when it waits for an event. live is the pool of live
// changes by the same method.
func (s *Scheduler) readyAt(j *job, now time.Time, live pool) (time.Time, bool) {
	if j.call != nil {
		if j.after != nil && !j.after.done {
			return time.Time{}, false
		}
	} else if j.msg.held() {
		return time.Time{}, false
	} else if j.ts == "" && j.msg.After != "" {
		first := s.messages[j.msg.After]
		if first != nil && first != j && first.ts == "" && (first.flying || first.index >= 0) {
			return time.Time{}, false
		}
	}
	b := s.bucket(j.next, now)
	need := 1.0
	at := j.retryAt
	switch {
	case j.urgency == Live:
		need += s.kept(b, live.n)
		if s.inFlight >= maxInFlight-maxInFlight/4 {
			return time.Time{}, false
		}
	case j.tidies():
		need += s.kept(b, live.n)
	case j.urgency == Normal:
		need += b.reserve
	case j.urgency < Card: // clicks are few, and their authors are watching
		need += b.reserve / 3
	}
	if j.urgency < Click && s.inFlight >= maxInFlight-1 {
		return time.Time{}, false
	}
	if j.paced() {
		at = later(at, s.paceAt(j, b, now, live))
	}
	at = later(at, b.when(now, need))
	if j.next == PostMessage {
		at = later(at, s.channelBucket(j.channel(), now).when(now, 1))
	}
	return at, true
}

// kept is the reserve of a rate for last states and answers while so many messages are live: the more there are,
// the more may end at once. Temporary changes and tidying may not use it.
func (s *usage) kept(b *bucket, live int) float64 {
	return max(b.reserve, min(b.reserve+float64(live)/8, b.burst-1.5))
}

// paceAt returns when the next live edit of j is due: soon while the rate has a token for every live message, else
// after the message's share of the refill. The first edit is due at once, since a message is often posted just
// before its text begins.
func (s *Scheduler) paceAt(j *job, b *bucket, now time.Time, live pool) time.Time {
	if j.edits == 0 {
		return now
	}
	soon := j.begun.Add(editInterval)
	share := j.begun.Add(max(editInterval, time.Duration(live.weight/s.weight(j, now)*float64(b.period()))))
	plenty := b.reserve + float64(live.n)
	if plenty > b.burst {
		return share
	}
	if enough := later(soon, b.when(now, plenty)); enough.Before(share) {
		return enough
	}
	return share
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *usage) bucket(m Method, now time.Time) *bucket {
	b := s.buckets[m]
	if b == nil {
		b = newBucket(rateOf(m).part(s.share), now)
		s.buckets[m] = b
	}
	return b
}

// channelsKept is how many channels' buckets are kept before full ones, which equal new ones, are dropped.
const channelsKept = 256

func (s *usage) channelBucket(channel string, now time.Time) *bucket {
	b := s.channels[channel]
	if b == nil {
		if len(s.channels) >= channelsKept {
			maps.DeleteFunc(s.channels, func(_ string, old *bucket) bool { return old.full(now) })
		}
		b = newBucket(perChannel.part(s.share), now)
		s.channels[channel] = b
	}
	return b
}

// begin starts j's call: runMessage (send.go) makes it for a message, else runCall (calls.go).
func (s *Scheduler) begin(base context.Context, j *job, now time.Time) {
	method := j.next
	s.dequeue(j)
	s.bucket(method, now).take(now)
	if method == PostMessage {
		s.channelBucket(j.channel(), now).take(now)
	}
	if method == StartStream {
		s.makeWay(now)
	}
	s.seq++
	j.group.served = s.seq
	j.flying, j.begun, j.newer = true, now, false
	if j.paced() {
		j.live = s.weight(j, now)
		s.pools[method] = s.pools[method].with(j.live, 1)
	}
	s.inFlight++
	if j.call != nil {
		s.calls.Go(func() { s.runCall(base, j, method) })
		return
	}
	a := attempt{msg: j.msg, ts: j.ts, sum: j.sum, rendering: j.rendering, doubt: j.doubt, method: method, ends: len(j.ends)}
	switch method {
	case StartStream, AppendStream, StopStream:
		a.growth = *j.growth()
		if sign := j.stream.sign(); method == AppendStream && len(a.growth.chunks) == 0 && sign != nil {
			a.growth.chunks = []slack.StreamChunk{sign}
		}
		if method == StopStream && (j.stream.broken || !a.growth.leads) {
			a.growth.chunks = nil
		}
		if closer := j.stream.closer(); method == StopStream && len(a.growth.chunks) == 0 && closer != "" {
			a.growth.chunks = []slack.StreamChunk{slack.NewMarkdownTextChunk(closer)}
		}
	}
	s.calls.Go(func() { s.runMessage(base, j, a) })
}
