package slack

import (
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Why a person's device would have made a sound, by Slack's default preferences.
const (
	calledDirect  = "direct"  // a direct message
	calledMention = "mention" // by their name or a user group's, @here or @channel
	calledThread  = "thread"  // a reply in a thread that they have begun, replied in or were mentioned in
)

// notification is what a post would have shown on a person's lock screen. Edits, reactions
// and ephemeral messages notify nobody.
type notification struct {
	Seq      int       `json:"seq"`
	Time     time.Time `json:"time"`
	User     string    `json:"user"`
	Reason   string    `json:"reason"`
	Channel  string    `json:"channel"`
	ThreadTS string    `json:"thread_ts,omitempty"`
	TS       string    `json:"ts"`
	From     string    `json:"from"`
	Text     string    `json:"text"`
	Held     bool      `json:"held"` // the person's devices were quiet: it is found later, and made no sound
}

const (
	maxNotifications = 5000
	notificationText = 200 // characters of a post's text
)

// notificationLog remembers the latest notifications, oldest first, and who follows which
// thread.
type notificationLog struct {
	seq       int
	list      []notification
	followers map[threadKey]map[string]bool
}

func (l *notificationLog) add(n notification) notification {
	l.seq++
	n.Seq = l.seq
	if len(l.list) >= maxNotifications {
		l.list = append(l.list[:0:0], l.list[maxNotifications/10:]...)
	}
	l.list = append(l.list, n)
	return n
}

// notify notes whom a new message calls. The caller holds the workspace's mutex.
func (s *Server) notify(m *message) {
	ch := s.ws.channel(m.Channel)
	if ch == nil || m.EphemeralTo != "" {
		return
	}
	mentioned := s.mentioned(ch, m)
	followers := s.followersOf(m)
	if u := s.ws.user(m.User); u != nil && !u.Bot {
		followers[m.User] = true
	}
	for _, person := range ch.Members {
		u := s.ws.user(person)
		if u == nil || u.Bot || person == m.User {
			continue
		}
		reason := ""
		switch {
		case ch.Kind == kindIM:
			reason = calledDirect
		case mentioned[person]:
			reason = calledMention
		case m.ThreadTS != "" && followers[person]:
			reason = calledThread
		default:
			continue
		}
		n := s.notifications.add(notification{
			Time: now().UTC(), User: person, Reason: reason, Channel: m.Channel, ThreadTS: m.ThreadTS, TS: m.TS, From: m.User, Text: s.onLockScreen(m),
			Held: u.quiet(now()),
		})
		s.live.publish(liveEvent{kind: "notification", user: person, channel: m.Channel, ts: m.TS, body: object{"notification": n}})
	}
	for person := range mentioned {
		followers[person] = true
	}
}

// followersOf are those who hear of replies in a message's thread.
func (s *Server) followersOf(m *message) map[string]bool {
	k := threadKey{m.Channel, m.root()}
	if f := s.notifications.followers[k]; f != nil {
		return f
	}
	f := map[string]bool{}
	for _, x := range append(s.ws.replies(k.channel, k.root), s.ws.message(k.channel, k.root)) {
		if x == nil || x == m {
			continue
		}
		if u := s.ws.user(x.User); u != nil && !u.Bot {
			f[x.User] = true
		}
		for person := range s.mentioned(s.ws.channel(k.channel), x) {
			f[person] = true
		}
	}
	if s.notifications.followers == nil {
		s.notifications.followers = map[threadKey]map[string]bool{}
	}
	s.notifications.followers[k] = f
	return f
}

// mentionMarkup is a live mention: of a person, of a group, or of everybody.
var mentionMarkup = regexp.MustCompile(`<(?:@([UW][A-Z0-9]+)|!subteam\^(S[A-Z0-9]+)|!(here|channel|everyone))(?:\|[^>]*)?>`)

// mentioned are the members of a channel whom a message names. Where it has blocks, its text
// is a fallback that names nobody.
func (s *Server) mentioned(ch *channel, m *message) map[string]bool {
	out := map[string]bool{}
	if ch == nil {
		return out
	}
	add := func(ids ...string) {
		for _, id := range ids {
			if ch.has(id) {
				out[id] = true
			}
		}
	}
	group := func(id string) {
		if g := s.ws.group(id); g != nil {
			add(g.Users...)
		}
	}
	inText := func(t string) {
		for _, found := range mentionMarkup.FindAllStringSubmatch(t, -1) {
			switch {
			case found[1] != "":
				add(found[1])
			case found[2] != "":
				group(found[2])
			default:
				add(ch.Members...)
			}
		}
	}
	if len(m.Blocks) == 0 {
		inText(m.Text)
		return out
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case object:
			switch text(v["type"]) {
			case "mrkdwn", "markdown":
				inText(text(v["text"]))
			case "user":
				add(text(v["user_id"]))
			case "usergroup":
				group(text(v["usergroup_id"]))
			case "broadcast":
				add(ch.Members...)
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(m.Blocks)
	return out
}

// channelMarkup is a conversation's name.
var channelMarkup = regexp.MustCompile(`<#([CDG][A-Z0-9]+)(?:\|[^>]*)?>`)

var linkMarkup = regexp.MustCompile(`<(?:!date\^[^|>]*|[^|>]+)\|([^>]*)>|<([^>]*)>`)

// onLockScreen is the beginning of a message's text as a notification shows it.
func (s *Server) onLockScreen(m *message) string {
	t := mentionMarkup.ReplaceAllStringFunc(m.Text, func(markup string) string {
		found := mentionMarkup.FindStringSubmatch(markup)
		if u := s.ws.user(found[1]); u != nil {
			return "@" + u.RealName
		}
		if g := s.ws.group(found[2]); g != nil {
			return "@" + g.Handle
		}
		return "@" + found[1] + found[2] + found[3]
	})
	t = channelMarkup.ReplaceAllStringFunc(t, func(markup string) string {
		if ch := s.ws.channel(channelMarkup.FindStringSubmatch(markup)[1]); ch != nil && ch.Name != "" {
			return "#" + ch.Name
		}
		return "#a private conversation"
	})
	t = linkMarkup.ReplaceAllString(t, "$1$2")
	t = strings.TrimSpace(html.UnescapeString(t))
	if t == "" { // Slack names the file
		var names []string
		for _, id := range m.Files {
			if f := s.ws.Files[id]; f != nil && !f.Deleted {
				names = append(names, f.Title)
			}
		}
		if len(names) > 0 {
			t = "uploaded a file: " + strings.Join(names, ", ")
		}
	}
	return cutRunes(t, notificationText)
}

// getNotifications answers with what people were notified of, of one of them or of all, after
// a sequence number.
func (s *Server) getNotifications(_ http.ResponseWriter, r *http.Request) (any, error) {
	since := 0
	if v := r.URL.Query().Get("since"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return nil, refuse("since %q: the seq of a notification is needed", v)
		}
		since = n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	who := r.URL.Query().Get("user")
	if who != "" && s.ws.user(who) == nil {
		return nil, refuse("user %q: nobody in this workspace has that id", who)
	}
	list := slices.Clone(s.notifications.list)
	list = slices.DeleteFunc(list, func(n notification) bool { return n.Seq <= since || who != "" && n.User != who })
	return object{"notifications": list, "seq": s.notifications.seq}, nil
}
