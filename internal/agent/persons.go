package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/pulls"
	"deckhand/internal/gateway/egress"
)

// At some MCP servers whoever is worked for acts as themselves. A process has such a server if its
// turn's requester is connected there; the gateway adds their token, and nobody else's, while a
// turn of theirs runs. The next turn of somebody else begins with a process of its own, since a
// server may remember who it speaks to.

// Accounts are people's own: [*accounts.Service], which tells what each method does.
type Accounts interface {
	pulls.Accounts
	Connected(ctx context.Context, team, user, host string) error
	Refused(ctx context.Context, team, user, host, token string)
}

// unconnected are the servers at which the person to be worked for is to act as themselves and
// cannot, with why, a sentence.
func (h *leased) unconnected(ctx context.Context) map[string]string {
	out := map[string]string{}
	for name, s := range h.project.MCPServers {
		if s.Person == "" {
			continue
		}
		if err := h.connected(ctx, s); err != nil {
			out[name] = err.Error()
		}
	}
	return out
}

func (h *leased) connected(ctx context.Context, s place.MCPServer) error {
	if h.people == nil || h.actsFor == "" {
		return errors.New("nobody is known to act there")
	}
	return h.people.Connected(ctx, h.thread.TeamID, h.actsFor, s.Person)
}

// personal has the servers of a process act as the person who is worked for, leaves out those at
// which they are not connected, into without with the reason, and offers them to connect.
func (h *leased) personal(ctx context.Context, p *place.Project, without map[string]string) {
	missing := h.unconnected(ctx)
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		s := p.MCPServers[name]
		why, lacks := missing[name]
		switch {
		case s.Person == "":
			continue
		case lacks:
			delete(p.MCPServers, name)
			without[name] = h.front.Name(ctx, h.actsFor) + " was told: " + why
			h.front.OfferConnection(h.thread.Key(), h.actsFor, s.Person, "The MCP server "+name+" acts as you, so its tools are missing: "+why+".")
			continue
		}
		s.Acts = h.actingAt(s.Person)
		p.MCPServers[name] = s
	}
}

// actingAt is how the gateway learns whose token a call of a server is made with.
func (h *leased) actingAt(host string) *egress.Person {
	team, user, people := h.thread.TeamID, h.actsFor, h.people
	return &egress.Person{
		Token: func(ctx context.Context) (string, error) {
			if now := h.acting.Load(); now == nil || *now != user {
				return "", errors.New("acts as the person whose turn runs, and none of theirs does")
			}
			token, err := people.Token(ctx, team, user, host)
			switch {
			case err != nil:
				return "", fmt.Errorf("acts as whoever asks, and their token cannot be used: %w", err)
			case token == "":
				return "", errors.New("acts as whoever asks, who is not connected there any more: they write “connect” to Deckhand")
			}
			return token, nil
		},
		Refused: func(ctx context.Context, token string) { people.Refused(ctx, team, user, host, token) },
	}
}

// worksFor notes who is worked for next, or goes on to be. The process acts as them already, since it connects to
// its servers when it starts: call [worker.actsInTurns] when it is known whether a turn has begun.
func (h *leased) worksFor(user string) {
	h.actsFor = user
	h.acting.Store(&user)
}

// actsInTurns has the process act as nobody, unless a turn runs.
func (w *worker) actsInTurns() {
	if w.turn == nil {
		w.acting.Store(nil)
	}
}

// othersProcess reports whether the process acts at servers as somebody else than is to be worked
// for.
func (w *worker) othersProcess() bool {
	return w.session != nil && w.session.actsFor != w.actsFor && w.hasPersonal()
}

func (h *leased) hasPersonal() bool {
	for _, s := range h.project.MCPServers {
		if s.Person != "" {
			return true
		}
	}
	return false
}

// noPerson says why a call of a server's tool cannot be made for whoever is worked for, who is
// offered to connect; empty if it can, or acts as nobody.
func (w *worker) noPerson(ctx context.Context, hook *claude.HookCallback) string {
	rest, ok := strings.CutPrefix(hook.ToolName, "mcp__")
	if !ok || hook.Event != "PreToolUse" || !w.hasPersonal() {
		return ""
	}
	name, _, _ := strings.Cut(rest, "__")
	s := w.project.MCPServers[name]
	if s.Person == "" {
		return ""
	}
	err := w.connected(ctx, s)
	if err == nil && w.turn.row.RequestedBy == w.session.actsFor {
		return ""
	}
	if err == nil {
		return "The MCP server " + name + " acts as whoever asks for the work, and this process was not begun for them. Try again with the next message."
	}
	w.front.OfferConnection(w.thread.Key(), w.actsFor, s.Person, "A tool of the MCP server "+name+" was refused: "+err.Error()+".")
	return "The MCP server " + name + " acts as the person who asked for this work, and they are not connected there. They were told how to connect. Nothing ran; say what you would have needed it for."
}
