package publish

import (
	"math"
	"slices"
	"time"
)

// Method is a method of Slack's Web API, or a family of methods that share a
// limit. Limits are per method, per workspace, for the whole app.
type Method string

// The methods whose limits are known.
const (
	PostMessage    Method = "chat.postMessage"
	UpdateMessage  Method = "chat.update"
	StartStream    Method = "chat.startStream"
	AppendStream   Method = "chat.appendStream"
	StopStream     Method = "chat.stopStream"
	DeleteMessage  Method = "chat.delete"
	PostEphemeral  Method = "chat.postEphemeral"
	AddReaction    Method = "reactions.add"
	RemoveReaction Method = "reactions.remove"
	SetStatus      Method = "assistant.threads.setStatus"
	SetSession     Method = "agents.sessions.setStatus"
	SetPrompts     Method = "assistant.threads.setSuggestedPrompts"
	SetTitle       Method = "assistant.threads.setTitle"
	OpenView       Method = "views.open"
	UpdateView     Method = "views.update"
	PublishView    Method = "views.publish"
	UploadFile     Method = "files.upload"
)

// rate is a method's limit: perMinute sustained, burst at once. In any window of 60 seconds at most perMinute+burst
// calls begin, which must not exceed Slack's limit, unless most is given: then that is the maximum, and the method
// is unavailable afterwards. reserve is the minimum part of the burst for priorities above Normal (see
// Scheduler.kept), and partly for those above Answer. anywhere is the part of the calls that any replica may make,
// such as answers to people; the rest belongs to turns, on their replicas.
type rate struct {
	perMinute, burst, reserve, anywhere float64
	most                                int
}

// rates are Slack's documented limits; see rate for the sums.
var rates = map[Method]rate{
	// Slack allows one message per second per channel (perChannel) and has an
	// undisclosed limit for the workspace, assumed here.
	PostMessage:    {perMinute: 240, burst: 20, reserve: 4},
	UpdateMessage:  {perMinute: 42, burst: 8, reserve: 5},
	StartStream:    {perMinute: 30, burst: 10, most: 20},
	AppendStream:   {perMinute: 94, burst: 6, reserve: 3},
	StopStream:     {perMinute: 30, burst: 10, most: 20},
	DeleteMessage:  {perMinute: 40, burst: 10, reserve: 1},
	PostEphemeral:  {perMinute: 85, burst: 15, reserve: 3, anywhere: 1},
	AddReaction:    {perMinute: 40, burst: 10, reserve: 2, anywhere: 0.5},
	RemoveReaction: {perMinute: 15, burst: 5, anywhere: 0.5},
	SetStatus:      {perMinute: 40, burst: 10, reserve: 2},
	SetSession:     {perMinute: 40, burst: 10, reserve: 2},
	SetPrompts:     {perMinute: 85, burst: 15, anywhere: 1},
	SetTitle:       {perMinute: 85, burst: 15},
	OpenView:       {perMinute: 80, burst: 20, reserve: 2, anywhere: 1},
	UpdateView:     {perMinute: 80, burst: 20, reserve: 2, anywhere: 1},
	PublishView:    {perMinute: 80, burst: 20, reserve: 2, anywhere: 1},
	UploadFile:     {perMinute: 80, burst: 20, reserve: 2},
}

// otherMethod is assumed for methods missing in rates: Slack's tier 2.
var otherMethod = rate{perMinute: 15, burst: 5, reserve: 1, anywhere: 0.5}

// perChannel limits chat.postMessage in one channel.
var perChannel = rate{perMinute: 57, burst: 3}

func rateOf(m Method) rate {
	if b, ok := rates[m]; ok {
		return b
	}
	return otherMethod
}

// Share is our part of Slack's rates, from 0 to 1: Slack counts all replicas as one app. Anywhere is for calls that
// any replica may make, Turns for turns' messages. All replicas' shares add up to 1 for each.
type Share struct {
	Anywhere, Turns float64
}

// SetShare sets our part of Slack's rates; until it is called, it is everything.
func (s *Scheduler) SetShare(share Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if share == s.share {
		return
	}
	s.share = share
	now := time.Now()
	for m, b := range s.buckets {
		b.become(rateOf(m).part(share), now)
	}
	for _, b := range s.channels {
		b.become(perChannel.part(share), now)
	}
	s.signal()
}

// part is a share of the rate. A small share leaves a small burst: it must allow a Live call beside the reserve, at
// the expense of the sustained rate.
func (r rate) part(s Share) rate {
	p := r.anywhere*s.Anywhere + (1-r.anywhere)*s.Turns
	if p >= 1 {
		return r
	}
	part := rate{reserve: p * r.reserve, anywhere: r.anywhere}
	if r.reserve > 0 {
		part.reserve = max(1, part.reserve)
	}
	part.burst = max(1+part.reserve, p*r.burst)
	part.perMinute = max(p*(r.perMinute+r.burst)-part.burst, p*r.perMinute/4)
	if r.most > 0 {
		part.most = max(1, int(p*float64(r.most)))
	}
	return part
}

// bucket is a token bucket. The zero value is not usable.
type bucket struct {
	rate
	tokens float64
	at     time.Time // when tokens was true
	// taken is when the last calls began, oldest first, if rate.most is given.
	taken []time.Time
}

// window is the time in which at most rate.most calls begin. It is longer than Slack's, since the latency of calls
// varies.
const window = 61 * time.Second

func newBucket(b rate, now time.Time) *bucket {
	return &bucket{rate: b, tokens: b.burst, at: now}
}

// period is the time to refill one token.
func (b *bucket) period() time.Duration {
	return time.Duration(float64(time.Minute) / b.perMinute)
}

func (b *bucket) level(now time.Time) float64 {
	if !now.After(b.at) {
		return b.tokens
	}
	return min(b.burst, b.tokens+now.Sub(b.at).Minutes()*b.perMinute)
}

// when returns the time from which the bucket holds n tokens, n ≤ burst.
func (b *bucket) when(now time.Time, n float64) time.Time {
	const rounding = 1e-6 // of a token, so that a wait never ends too early
	have := b.level(now)
	from := later(now, b.at) // a pause sets b.at into the future
	free := from
	if i := len(b.taken) - b.most + min(b.most, int(math.Ceil(n))) - 1; b.most > 0 && i >= 0 {
		free = later(from, b.taken[i].Add(window))
	}
	if have+rounding >= n {
		return free
	}
	return later(free, from.Add(time.Duration(math.Ceil((n-have)/b.perMinute*float64(time.Minute)))))
}

func (b *bucket) take(now time.Time) {
	b.tokens = b.level(now) - 1
	if now.After(b.at) {
		b.at = now
	}
	b.note(1, now)
}

// note records calls that begin now, and forgets expired ones.
func (b *bucket) note(n int, now time.Time) {
	if b.most == 0 {
		return
	}
	b.taken = slices.DeleteFunc(b.taken, func(at time.Time) bool { return now.Sub(at) >= window })
	b.taken = append(b.taken, slices.Repeat([]time.Time{now}, n)...)
}

// giveBack returns the token of a call that was not made.
func (b *bucket) giveBack() {
	b.tokens = min(b.burst, b.tokens+1)
	b.taken = b.taken[:max(0, len(b.taken)-1)]
}

// drainUntil leaves only the reserve when a pause ends, so that a refused method restarts gently, urgent calls
// first.
func (b *bucket) drainUntil(now, end time.Time) {
	b.tokens = min(b.level(now), b.reserve)
	b.at = end
}

// become changes the rate. Existing tokens count up to the new burst; calls recorded for most expire as before.
func (b *bucket) become(r rate, now time.Time) {
	b.tokens, b.at = min(b.level(now), r.burst), later(now, b.at)
	b.note(max(0, r.most-b.most), now)
	b.rate = r
}

func (b *bucket) full(now time.Time) bool { return b.level(now) >= b.burst }
