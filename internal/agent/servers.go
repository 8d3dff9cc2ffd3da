package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

// People switch a session's MCP servers off and on, and have them connected again. What they
// want is in the database. A process starts without those that are off, and is told of what
// changes at once, and at its next turn if that message was lost. How the servers are is
// written down at each look: when a turn begins, when it ends, and when somebody asks.

const (
	// serversLimit bounds a look at what people want.
	serversLimit = 10 * time.Second
	// maxReason bounds why a server does not work.
	maxReason = 300
)

// The states of a server, as Claude Code names them.
const (
	ServerConnected = "connected"
	ServerFailed    = "failed"
	ServerNeedsAuth = "needs-auth"
	ServerDisabled  = "disabled"
	// ServerUnconnected is our own state: the process lacks it, as whoever it works for is not connected there.
	ServerUnconnected = "unconnected"
)

// MCPServers are the names of a project's MCP servers.
func (s *Supervisor) MCPServers(project string) []string {
	return slices.Sorted(maps.Keys(s.projects[project].MCPServers))
}

// withServers is the project as the thread's next process has it, and the servers that it lacks: those that are off,
// and with the reason those at which whoever is worked for is not connected.
func (h *leased) withServers(ctx context.Context) (p place.Project, without map[string]string, err error) {
	p = h.project
	if len(p.MCPServers) == 0 {
		return p, nil, nil
	}
	want, err := h.store.Steering(ctx, h.threadID)
	p.MCPServers, without = maps.Clone(p.MCPServers), map[string]string{}
	for _, name := range want.MCPOff {
		if _, ok := p.MCPServers[name]; ok {
			delete(p.MCPServers, name)
			without[name] = ""
		}
	}
	h.personal(ctx, &p, without)
	return p, without, err
}

// lacksServer reports whether the process was started without a server that is on by now.
func (s *session) lacksServer(ctx context.Context) (bool, error) {
	if s == nil || len(s.without) == 0 {
		return false, nil
	}
	want, err := s.store.Steering(ctx, s.threadID)
	missing := s.unconnected(ctx)
	for name := range s.without {
		if !slices.Contains(want.MCPOff, name) && missing[name] == "" {
			return true, err
		}
	}
	return false, err
}

// serversOff has the process be without the servers that are off.
func (s *session) serversOff(ctx context.Context, want inbox.Steering) error {
	if len(want.MCPOff) == 0 || len(s.project.MCPServers) == 0 {
		return nil
	}
	_, err := switchServers(ctx, s.proc, want, true)
	return err
}

// switchServers has a process have its servers off and on as people want them, or only off, and
// returns how they are.
func switchServers(ctx context.Context, proc place.Process, want inbox.Steering, offAlone bool) ([]claude.MCPServer, error) {
	list, err := proc.MCPStatus(ctx)
	switched := false
	for _, m := range list {
		off := slices.Contains(want.MCPOff, m.Name)
		if off == (m.Status == ServerDisabled) || offAlone && !off {
			continue
		}
		if err := proc.MCPToggle(ctx, m.Name, !off); err != nil && off {
			return nil, fmt.Errorf("switch the MCP server %s off: %w", m.Name, err)
		} // one that cannot be connected says so in its state
		switched = true
	}
	if switched {
		list, err = proc.MCPStatus(ctx)
	}
	return list, err
}

// lookAtServers has the process's servers be as people want them, beside the loop, and looks
// how they are. Where one acts as a person, none is connected between turns, when nobody's token
// is added: the next turn does it.
func (s *session) lookAtServers(ctx context.Context) {
	if s == nil || len(s.project.MCPServers) == 0 {
		return
	}
	personal := s.hasPersonal()
	s.request(ctx, s.log, "look at the MCP servers", func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, serversLimit)
		want, err := s.store.Steering(limited, s.threadID)
		cancel()
		if err != nil {
			return err
		}
		rests := personal && s.acting.Load() == nil
		if rests {
			want.MCPAgain = nil
		}
		list, err := switchServers(ctx, s.proc, want, rests)
		if err != nil {
			return err
		}
		for _, name := range want.MCPAgain {
			if slices.ContainsFunc(list, func(m claude.MCPServer) bool { return m.Name == name && m.Status != ServerDisabled }) {
				if err := s.proc.MCPReconnect(ctx, name); err != nil {
					s.log.Warn("connect an MCP server again", zap.String("server", name), zap.Error(err))
				}
			}
		}
		if len(want.MCPAgain) > 0 {
			if list, err = s.proc.MCPStatus(ctx); err != nil {
				return err
			}
		}
		s.box.put(message{kind: messageLater, then: func(ctx context.Context) error { return s.onServers(ctx, list, want.MCPAgain) }})
		return nil
	})
}

// onServers writes down how the process's servers are. People are told of one that has come to
// fail, and of those that they wanted to be connected again.
func (s *session) onServers(ctx context.Context, list []claude.MCPServer, again []string) error {
	if s.stopped {
		return nil
	}
	var seen []inbox.MCPServer
	var said []string
	for _, m := range list {
		if _, ok := s.project.MCPServers[m.Name]; !ok {
			continue // the bot's own
		}
		now := inbox.MCPServer{Name: m.Name, Status: m.Status, Error: reasonOf(m), Tools: len(m.Tools)}
		failed := false
		for _, was := range s.servers {
			if was.Name == now.Name {
				now.Tokens, failed = was.Tokens, was.Error != ""
			}
		}
		asked := slices.Contains(again, m.Name)
		switch {
		case now.Error != "" && (asked || !failed):
			said = append(said, fmt.Sprintf("The MCP server %s does not work, so its tools are missing: %s. “mcp reconnect %s” tries again.", m.Name, now.Error, m.Name))
		case asked && m.Status == ServerConnected:
			said = append(said, fmt.Sprintf("The MCP server %s is connected again. Its tools: %d.", m.Name, now.Tools))
		}
		seen = append(seen, now)
	}
	for _, name := range slices.Sorted(maps.Keys(s.without)) {
		if why := s.without[name]; why != "" {
			seen = append(seen, inbox.MCPServer{Name: name, Status: ServerUnconnected, Error: "it acts as whoever asks, and " + why})
		}
	}
	rows, err := s.store.NoteServers(ctx, s.heldLease(), seen, again, said...)
	if errors.Is(err, threads.ErrFenced) {
		return err
	}
	if err != nil {
		s.log.Warn("note how the MCP servers are", zap.Error(err)) // the next look does it
		return nil
	}
	s.servers = seen
	s.front.Tell(rows...)
	return nil
}

// reasonOf is why a server does not work, without a full stop; empty if it does, or has not come
// to an end of trying.
func reasonOf(m claude.MCPServer) string {
	switch m.Status {
	case ServerFailed:
		// A server says it: the database takes no NUL, and nobody would be told that it failed.
		words := strings.FieldsFunc(strings.ToValidUTF8(m.Error, "�"), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		reason := strings.TrimRight(strings.Join(words, " "), ".")
		if _, ours, ok := strings.Cut(reason, ": "+egress.TheServer); ok { // Claude Code puts “Error POSTing to endpoint” before it
			reason = "it " + ours
		}
		if runes := []rune(reason); len(runes) > maxReason {
			reason = string(runes[:maxReason]) + "…"
		}
		return cmp.Or(reason, "Claude Code does not say why")
	case ServerNeedsAuth:
		return "it wants somebody to log in, which nobody can from here; an admin can give it a header, or as: person, in deckhand.yaml"
	}
	return ""
}

// contextTool is a line of /context about a tool of a server's.
var contextTool = regexp.MustCompile(`(?m)^\| mcp__\S+ \| (\S+) \| ~?([0-9.]+)(k?) \|$`)

// priceServers takes what each server's tools cost in the model's context from a turn that has
// said it.
func (s *session) priceServers(t *turn) {
	if strings.TrimSpace(t.prompt.Text) != "/context" {
		return
	}
	tokens := map[string]int{}
	for _, item := range t.content.Items {
		for _, m := range contextTool.FindAllStringSubmatch(item.Text, -1) {
			n, err := strconv.ParseFloat(m[2], 64)
			if m[3] != "" {
				n *= 1000
			}
			if err == nil {
				tokens[m[1]] += int(n)
			}
		}
	}
	for i, m := range s.servers {
		s.servers[i].Tokens = tokens[m.Name]
	}
}
