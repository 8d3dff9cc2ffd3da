package egress

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// maxVisits bounds the hosts named by a session's tally; the rest are counted together as others.
const maxVisits = 200

const others = "others"

// Visit is the traffic between a session and a host.
type Visit struct {
	// Host is host:port, or "mcp:" and the name of a server; "others" when there are many.
	Host string `json:"host"`
	// Up and Down are bytes, including TLS and heads.
	Up   int64 `json:"up"`
	Down int64 `json:"down"`
	// Connections were opened; Refused were not, or were closed for what they sent.
	Connections int64 `json:"connections"`
	Refused     int64 `json:"refused,omitempty"`
}

// Total is the traffic of all sessions of a project.
type Total struct{ Up, Down, Connections, Refused int64 }

// tally counts a session's visits.
type tally struct {
	mu     sync.Mutex
	visits map[string]*Visit
	total  *sharedTotal
}

// sharedTotal is a [Total] that several tallies add to.
type sharedTotal struct {
	mu sync.Mutex
	Total
}

// visit is a host that is being visited. It goes on counting after its tally was taken.
type visit struct {
	of   *tally
	host string
}

func (v visit) up(n int)   { v.of.add(v.host, Total{Up: int64(n)}) }
func (v visit) down(n int) { v.of.add(v.host, Total{Down: int64(n)}) }

func (t *tally) connected(to target) visit { return t.visited(to.String()) }

func (t *tally) visited(host string) visit {
	t.add(host, Total{Connections: 1})
	return visit{t, host}
}

func (t *tally) refused(to target) { t.add(to.String(), Total{Refused: 1}) }

func (t *tally) add(host string, n Total) {
	t.mu.Lock()
	if t.visits == nil {
		t.visits = map[string]*Visit{}
	}
	v := t.visits[host]
	if v == nil && len(t.visits) >= maxVisits {
		host = others
		v = t.visits[host]
	}
	if v == nil {
		v = &Visit{Host: host}
		t.visits[host] = v
	}
	v.Up, v.Down, v.Connections, v.Refused = v.Up+n.Up, v.Down+n.Down, v.Connections+n.Connections, v.Refused+n.Refused
	t.mu.Unlock()
	t.total.add(n)
}

func (t *sharedTotal) add(n Total) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Up, t.Down, t.Connections, t.Refused = t.Up+n.Up, t.Down+n.Down, t.Connections+n.Connections, t.Refused+n.Refused
}

// Take returns the visits since the last Take, by host.
func (s *Session) Take() []Visit {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	out := make([]Visit, 0, len(s.tally.visits))
	for _, v := range s.tally.visits {
		out = append(out, *v)
	}
	s.tally.visits = nil
	slices.SortFunc(out, func(a, b Visit) int { return strings.Compare(a.Host, b.Host) })
	return out
}

func (p *Proxy) total(project string) *sharedTotal {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.totals[project]
	if t == nil {
		t = &sharedTotal{}
		p.totals[project] = t
	}
	return t
}

// Totals are the visits of all sessions since the start, by project.
func (p *Proxy) Totals() map[string]Total {
	p.mu.Lock()
	all := maps.Clone(p.totals)
	p.mu.Unlock()
	out := make(map[string]Total, len(all))
	for project, t := range all {
		t.mu.Lock()
		out[project] = t.Total
		t.mu.Unlock()
	}
	return out
}
