package chat

import (
	"maps"
	"sync"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/store/threads"
)

// visitors remember when this process has heard of whom in a thread. The zero value is
// ready to use.
type visitors struct {
	mu   sync.Mutex
	seen map[visitor]time.Time
}

type visitor struct {
	thread threads.ThreadKey
	user   string
	wrote  bool // and not only did something
}

// peopleMost is how many are remembered before those are forgotten of whom nothing was
// heard for a day.
const peopleMost = 4096

// heard notes that somebody has done something in a thread, or has written there.
func (p *visitors) heard(k threads.ThreadKey, user string, wrote bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.seen == nil {
		p.seen = map[visitor]time.Time{}
	}
	if len(p.seen) >= peopleMost {
		maps.DeleteFunc(p.seen, func(_ visitor, at time.Time) bool { return now.Sub(at) > 24*time.Hour })
	}
	p.seen[visitor{k, user, false}] = now
	if wrote {
		p.seen[visitor{k, user, true}] = now
	}
}

// follows reports whether somebody has written in a thread, as far as this process has
// heard: Slack tells them of every reply.
func (p *visitors) follows(k threads.ThreadKey, user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, wrote := p.seen[visitor{k, user, true}]
	return wrote
}

// saw reports whether somebody has done something in a thread since then.
func (p *visitors) saw(k threads.ThreadKey, user string, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[visitor{k, user, false}].After(since)
}

// CalledAtEnd is whom a turn's closing answer calls: who asked for it, if it took long and they
// have not been in the thread since; empty for nobody.
func (a *Chat) CalledAtEnd(t agent.TurnView) string {
	if t.Closing > 0 && t.EndedAt.Sub(t.StartedAt) >= agent.LongTurn && !a.visitors.saw(t.Thread, t.RequestedBy, t.StartedAt) {
		return t.RequestedBy
	}
	return ""
}
