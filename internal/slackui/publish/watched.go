package publish

import (
	"maps"
	"time"
)

const (
	// lookTime is how long a watched group has precedence.
	lookTime = 2 * time.Minute
	// lookWeight is the number of shares of a watched message.
	lookWeight = 3
)

// Watched records that somebody has clicked or written in a group. Its news is shown before others', and more
// often, for two minutes.
func (s *Scheduler) Watched(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.looks) >= groupsKept {
		maps.DeleteFunc(s.looks, func(_ string, at time.Time) bool { return now.Sub(at) >= lookTime })
	}
	s.looks[name] = now
	s.signal()
}

func (s *usage) isWatched(name string, now time.Time) bool {
	at, ok := s.looks[name]
	return ok && now.Sub(at) < lookTime
}

// weight is a job's number of shares of a rate.
func (s *usage) weight(j *job, now time.Time) float64 {
	if j.call == nil && s.isWatched(j.msg.Group, now) {
		return lookWeight
	}
	return 1
}

// pool is the messages that share a rate, with the sum of their shares.
type pool struct {
	n      int
	weight float64
}

func (p pool) with(weight float64, n int) pool {
	return pool{n: p.n + n, weight: p.weight + float64(n)*weight}
}
