package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/turns"
)

// ThreadSessions lists the sessions that a thread had, the newest first.
func ThreadSessions(list []turns.PastSession) Page {
	if len(list) == 0 {
		return Sentence("This thread had no session yet.")
	}
	lines := []string{"*Sessions of this thread*"}
	for _, s := range list {
		state := ""
		if s.Now {
			state = "now · "
		}
		lines = append(lines, fmt.Sprintf("• %s%s · begun %s · last message %s · %s · %s", state, mrkdwn.Code(s.ID[:8]),
			dateTime(s.StartedAt), dateTime(s.LastAt), plural(s.Turns, "turn", "turns"), money.USD(s.CostMicroUSD)))
	}
	text := strings.Join(lines, "\n")
	return Page{Text: text, Blocks: []slack.Block{section("", text)}}
}

// MCPServers says how a thread's MCP servers are, with buttons below. What a server says of
// itself is shown as it is.
func MCPServers(names []string, now inbox.Steering, buttons []view.Choice) Page {
	lines := []string{"*MCP servers of this thread*"}
	for _, name := range names {
		line := "• " + mrkdwn.Code(name) + " · "
		at := slices.IndexFunc(now.MCPSeen, func(m inbox.MCPServer) bool { return m.Name == name })
		switch {
		case slices.Contains(now.MCPOff, name):
			line += "off"
		case at < 0:
			line += "not looked at yet: it is started with the next message"
		case now.MCPSeen[at].Error != "":
			line += "❌ " + mrkdwn.Escape(now.MCPSeen[at].Error)
		case now.MCPSeen[at].Status == agent.ServerConnected:
			line += "connected · " + plural(now.MCPSeen[at].Tools, "tool", "tools")
			if n := now.MCPSeen[at].Tokens; n > 0 {
				line += fmt.Sprintf(" · about %d tokens", n)
			}
		default:
			line += "is being connected"
		}
		lines = append(lines, line)
	}
	if !now.MCPSeenAt.IsZero() {
		lines = append(lines, "As they were "+dateTime(now.MCPSeenAt)+". “context” says what their tools cost.")
	}
	page := AskBack("", buttons[:min(len(buttons), pickMost)], "")
	page.Text = mrkdwn.ClipEscaped(strings.Join(lines, "\n"), sectionMax)
	page.Blocks[0] = section("", page.Text)
	return page
}

// Forked is the first message of a thread that has another one's conversation, which has a title
// and an address; either may be empty.
func Forked(name, title, address string) Page {
	text := "🔀 " + mrkdwn.Escape(name) + " forked " + mrkdwn.Link(address, "a thread")
	if title != "" {
		text += ": " + mrkdwn.Escape(plaintext.OneLine(title))
	}
	text = mrkdwn.ClipEscaped(text, sectionMax-200) + "\nThis thread begins with its conversation and its files. Write here what is to be done otherwise."
	return Page{Text: text, Blocks: []slack.Block{section("", text)}}
}

// ForkedHere says in a thread where the one is that was forked from it.
func ForkedHere(name, address string) Page {
	text := "🔀 " + mrkdwn.Escape(name) + " forked this thread: " + mrkdwn.Link(address, "the new one") + " goes its own way."
	return Page{Text: text, Blocks: []slack.Block{section("", text)}}
}
