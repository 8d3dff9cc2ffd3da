package publish

import (
	"context"
	"hash/maphash"
	"time"
)

// group is what rates are shared between fairly.
type group struct {
	refs   int    // jobs of the group that are remembered
	served uint64 // Scheduler.seq when one of them was last sent
}

// groupsKept is how many groups are remembered before those that have nothing to
// do are forgotten.
const groupsKept = 1024

func (s *Scheduler) join(name string) *group {
	g := s.groups[name]
	if g == nil {
		if len(s.groups) >= groupsKept {
			for n, old := range s.groups {
				// Whoever was served long ago has nothing to be remembered for.
				if old.refs == 0 && s.seq-old.served > groupsKept/2 {
					delete(s.groups, n)
				}
			}
		}
		g = &group{}
		s.groups[name] = g
	}
	g.refs++
	return g
}

// tombstones remembers the last keys that had their final state or were given up,
// so that a late Show does not post the message anew.
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

// remove forgets a key that may be shown anew.
func (t *tombstones) remove(key uint64) { delete(t.known, key) }

// dispatch begins every call that may begin now. It returns when it should be
// called again, zero if only an event can change anything, and how much is
// pending or in flight.
func (s *Scheduler) dispatch(base context.Context) (next time.Time, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	now := time.Now()
	for s.inFlight < s.o.MaxInFlight && len(s.pending) > 0 {
		live := s.liveNow
		for _, j := range s.pending {
			if j.paced() {
				live++
			}
		}
		var best *job
		next = time.Time{}
		for _, j := range s.pending {
			at, ok := s.readyAt(j, now, live)
			switch {
			case !ok:
			case at.After(now):
				if next.IsZero() || at.Before(next) {
					next = at
				}
			case best == nil || before(j, best):
				best = j
			}
		}
		if best == nil {
			break
		}
		s.begin(base, best, now)
	}
	return next, len(s.pending) + s.inFlight
}

// before is the order of calls that may all go now.
func before(a, b *job) bool {
	if pa, pb := a.priority(), b.priority(); pa != pb {
		return pa > pb
	}
	if a.group.served != b.group.served {
		return a.group.served < b.group.served
	}
	return a.seq < b.seq
}

// readyAt returns when j may be sent as far as time decides, or false when it
// waits for an event. live is the number of messages that are being edited live.
func (s *Scheduler) readyAt(j *job, now time.Time, live int) (time.Time, bool) {
	if j.call != nil {
		if j.after != nil && !j.after.done {
			return time.Time{}, false
		}
	} else if j.ts == "" && j.msg.After != "" {
		first := s.messages[j.msg.After]
		if first != nil && first != j && first.ts == "" && (first.flying || first.index >= 0) {
			return time.Time{}, false
		}
	}
	b := s.bucket(j.method(), now)
	need := 1.0
	at := j.retryAt
	if j.priority() == Live {
		need += b.reserve
		if s.inFlight >= max(1, s.o.MaxInFlight-s.o.MaxInFlight/4) {
			return time.Time{}, false
		}
	}
	if j.paced() {
		at = later(at, s.paceAt(j, b, now, live))
	}
	at = later(at, b.when(now, need))
	if j.method() == PostMessage {
		at = later(at, s.channelBucket(j.channel(), now).when(now, 1))
	}
	return at, true
}

// paceAt returns when the next live edit of j is due: soon while the rate has a
// token for every live message, else after the message's even share of what comes
// back. The first edit is due at once, since a message is often posted just
// before its text begins.
func (s *Scheduler) paceAt(j *job, b *bucket, now time.Time, live int) time.Time {
	if j.edits == 0 {
		return now
	}
	soon := j.begun.Add(s.o.EditInterval)
	share := j.begun.Add(max(s.o.EditInterval, time.Duration(live)*b.period()))
	plenty := b.reserve + float64(live)
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

func (s *Scheduler) bucket(m Method, now time.Time) *bucket {
	b := s.buckets[m]
	if b == nil {
		b = newBucket(rateOf(m).part(s.share), now)
		s.buckets[m] = b
	}
	return b
}

// channelsKept is how many channels' buckets are kept before full ones go; a full
// one says nothing that a new one would not.
const channelsKept = 256

func (s *Scheduler) channelBucket(channel string, now time.Time) *bucket {
	b := s.channels[channel]
	if b == nil {
		if len(s.channels) >= channelsKept {
			for c, old := range s.channels {
				if old.full(now) {
					delete(s.channels, c)
				}
			}
		}
		b = newBucket(perChannel.part(s.share), now)
		s.channels[channel] = b
	}
	return b
}

// begin starts j's call.
func (s *Scheduler) begin(base context.Context, j *job, now time.Time) {
	method := j.method()
	s.dequeue(j)
	s.bucket(method, now).take(now)
	if method == PostMessage {
		s.channelBucket(j.channel(), now).take(now)
	}
	s.seq++
	j.group.served = s.seq
	j.flying, j.begun, j.newer = true, now, false
	j.live = j.paced()
	if j.live {
		s.liveNow++
	}
	s.inFlight++
	if j.call != nil {
		s.calls.Go(func() { s.runCall(base, j, method) })
		return
	}
	a := attempt{msg: j.msg, ts: j.ts, sum: j.sum, wear: s.wardrobe.with(j.wear, InMessage, now), doubt: j.doubt, method: method, ends: len(j.ends)}
	s.calls.Go(func() { s.runMessage(base, j, a) })
}
