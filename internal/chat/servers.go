package chat

import (
	"context"
	"slices"
	"strings"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

const (
	// serversWait is how long an answer about MCP servers waits for the replica that runs them
	// to look at them, and serversEvery how often it looks whether that has.
	serversWait  = 3 * time.Second
	serversEvery = 50 * time.Millisecond
)

// onMCPCommand says how a thread's MCP servers are, or has one be switched off or on or be
// connected again.
func (a steerer) onMCPCommand(ctx context.Context, in *Incoming, t threads.Thread, words string) (outcome string, err error) {
	names := a.agent.MCPServers(t.Project)
	do, name, _ := strings.Cut(strings.ToLower(words), " ")
	name = strings.TrimSpace(name)
	switch {
	case len(names) == 0:
		a.Answer(in, "The project "+t.Project+" has no MCP servers. An admin can write some under mcp_servers in deckhand.yaml.")
		return "no MCP servers", nil
	case do == "":
		return a.showServers(ctx, in, t, names)
	case !slices.Contains(names, name):
		a.reply(in, view.AskBack{Sentence: "There is no MCP server “" + quoted(name) + "” here. There are: " + strings.Join(names, ", ") + ".", TS: in.postTS()})
		return "no such MCP server", nil
	case do == "off":
		return a.steer(ctx, in, t, inbox.SteerMCPOff, name, "switched the MCP server "+name+" off in this thread. “mcp on "+name+"” ends that.")
	case do == "on":
		return a.steer(ctx, in, t, inbox.SteerMCPOn, name, "switched the MCP server "+name+" on in this thread. It is there from the next message on.")
	}
	return a.steer(ctx, in, t, inbox.SteerMCPAgain, name, "wants the MCP server "+name+" to be connected again. That is done at once if the session runs, else with the next message.")
}

// showServers says how the servers are: now, if some replica runs them, else as they were.
func (a steerer) showServers(ctx context.Context, in *Incoming, t threads.Thread, names []string) (outcome string, err error) {
	now, err := a.c.Store.Steering(ctx, t.ID)
	if err == nil && t.LeaseOwner != "" {
		now, err = a.lookAtServers(ctx, t, now)
	}
	if err != nil {
		return "", err
	}
	var buttons []view.Choice
	for i := range now.MCPSeen {
		now.MCPSeen[i].Error = a.c.Redact(now.MCPSeen[i].Error)
	}
	for _, name := range names {
		do := "off"
		is := func(status string) bool {
			return slices.ContainsFunc(now.MCPSeen, func(m inbox.MCPServer) bool { return m.Name == name && m.Status == status })
		}
		switch {
		case slices.Contains(now.MCPOff, name):
			do = "on"
		case is(agent.ServerUnconnected):
			buttons = append(buttons, view.Choice{Say: "connect", Label: "connect " + name})
			continue
		case is(agent.ServerFailed):
			do = "reconnect"
		}
		buttons = append(buttons, view.Choice{Say: "mcp " + do + " " + name, Label: do + " " + name})
	}
	a.reply(in, view.MCPServers{Names: names, Now: now, Buttons: buttons})
	return "mcp", nil
}

// lookAtServers has the replica that runs the thread look at its servers.
func (a steerer) lookAtServers(ctx context.Context, t threads.Thread, was inbox.Steering) (inbox.Steering, error) {
	if err := a.c.Store.Notify(ctx, pg.Notice{Kind: pg.NoticeServers, ThreadID: t.ID}); err != nil {
		return was, err
	}
	now := was
	until(ctx, serversWait, serversEvery, func(ctx context.Context) bool {
		s, err := a.c.Store.Steering(ctx, t.ID)
		if err == nil {
			now = s
		}
		return !now.MCPSeenAt.Equal(was.MCPSeenAt)
	})
	return now, nil
}
