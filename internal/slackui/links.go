package slackui

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/chat"
)

// slackPath is what follows a workspace's address in a link to a message.
var slackPath = regexp.MustCompile(`^/archives/([CGD][A-Z0-9]{2,20})/p(\d{10})(\d{6})(?:\?thread_ts=(\d{10}\.\d{6}))?`)

// Links implements [chat.Screen].
func (a *record) Links(text string) (links []chat.Link) {
	home := strings.TrimSuffix(a.self.TeamURL, "/")
	if home == "" {
		return nil
	}
	for _, rest := range strings.Split(text, home)[1:] {
		at := slackPath.FindStringSubmatch(rest)
		if at == nil {
			continue
		}
		l := chat.Link{Channel: at[1], TS: at[2] + "." + at[3]}
		if l.Thread = cmp.Or(at[4], l.TS); !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	return links
}

// Permalink is the address of a message, as Slack forms it.
func (p *poster) Permalink(channel, ts string) string {
	if p.self.TeamURL == "" {
		return ""
	}
	return strings.TrimSuffix(p.self.TeamURL, "/") + "/archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
}
