package slackui

import (
	"regexp"
	"strings"

	"deckhand/internal/chat"
)

// slackPath is what follows a workspace's address in a link to a message.
var slackPath = regexp.MustCompile(`/archives/([CGD][A-Z0-9]{2,20})/p(\d{10})(\d{6})(?:\?thread_ts=(\d{10}\.\d{6}))?`)

// Links implements [chat.Screen].
func (a *record) Links(text string) (links []chat.Link) {
	home := strings.TrimSuffix(a.self.TeamURL, "/")
	if home == "" {
		return nil
	}
	seen := map[chat.Link]bool{}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, home)
		if !found {
			return links
		}
		rest = after
		at := slackPath.FindStringSubmatch(rest)
		if at == nil || !strings.HasPrefix(rest, at[0]) {
			continue
		}
		l := chat.Link{Channel: at[1], TS: at[2] + "." + at[3], Thread: at[4]}
		if l.Thread == "" {
			l.Thread = l.TS
		}
		if !seen[l] {
			seen[l] = true
			links = append(links, l)
		}
	}
}

// Permalink is the address of a message, as Slack forms it.
func (p *poster) Permalink(channel, ts string) string {
	if p.self.TeamURL == "" {
		return ""
	}
	return strings.TrimSuffix(p.self.TeamURL, "/") + "/archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
}
