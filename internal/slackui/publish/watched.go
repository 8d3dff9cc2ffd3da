package publish

import "time"

const (
	// lookTime is how long a group that somebody has looked at goes first.
	lookTime = 2 * time.Minute
	// lookWeight is how many shares of a rate one of its messages has.
	lookWeight = 3
)

// Watched notes that somebody looks at a group: has clicked or written there. What is new in
// it is shown before what is new in others, and more often, for two minutes.
func (s *Scheduler) Watched(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.looks) >= groupsKept {
		for n, at := range s.looks {
			if now.Sub(at) >= lookTime {
				delete(s.looks, n)
			}
		}
	}
	s.looks[name] = now
	s.signal()
}

func (s *Scheduler) isWatched(name string, now time.Time) bool {
	at, ok := s.looks[name]
	return ok && now.Sub(at) < lookTime
}

// weight is how many shares of a rate a job has.
func (s *Scheduler) weight(j *job, now time.Time) float64 {
	if j.call == nil && s.isWatched(j.msg.Group, now) {
		return lookWeight
	}
	return 1
}

// pool is what is paced by one rate: messages, and the shares that they have together.
type pool struct {
	n      int
	weight float64
}

func (p pool) with(weight float64, n int) pool {
	return pool{n: p.n + n, weight: p.weight + float64(n)*weight}
}
