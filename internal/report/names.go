package report

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"deckhand/internal/store/ledger"
)

// Names knows what people call the ids of an [Answer], when it is written out. It is
// called from one goroutine, once or more for each id, and must not be slow: look up
// ahead what has to be looked up. A nil Names knows nothing.
type Names interface {
	// UserName is the person's name, or empty if it is not known. deleted is true for
	// people who have left.
	UserName(id string) (name string, deleted bool)
	// ChannelName is the channel's present name without #, or empty if it is not known.
	ChannelName(id string) string
}

// IDs are the people and channels that an answer names, the most important first: all
// of them, or those of a table of at most so many lines.
func (a Answer) IDs(lines int) (people, channels []string) {
	people, channels = slices.Clone(a.Question.Users), slices.Clone(a.Question.Channels)
	shown := a.Lines
	if lines > 0 {
		shown, _, _ = a.Top(lines)
	}
	for _, l := range shown {
		if a.By == ledger.ByUser {
			people = append(people, l.Key)
		}
		if a.By == ledger.ByChannel {
			channels = append(channels, l.Key)
		}
		channels = append(channels, l.ThreadKey.ChannelID)
	}
	for _, l := range a.Threads {
		channels = append(channels, l.ThreadKey.ChannelID)
	}
	return distinct(people), distinct(channels)
}

// distinct are the ids that are not empty, each once, in their order.
func distinct(ids []string) []string {
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(ids, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// Name is what the line of a grouping is called: a person's name, "#general", a
// project, a model, a day. It is safe to print and may not be unique.
func (a Answer) Name(by ledger.CostGroup, l Line, names Names) string {
	switch by {
	case ledger.ByUser:
		return userName(l.Key, names)
	case ledger.ByChannel:
		return channelName(l.Key, names)
	case ledger.ByThread:
		return a.threadName(l, names)
	case ledger.ByDay:
		if t, err := time.Parse(time.DateOnly, l.Key); err == nil {
			return t.Format("Mon 2 Jan 2006")
		}
	case ledger.ByMonth:
		if t, err := time.Parse("2006-01", l.Key); err == nil {
			return t.Format("January 2006")
		}
	case ledger.ByNothing, ledger.ByProject, ledger.ByModel:
	}
	return orNone(printable(l.Key))
}

func userName(id string, names Names) string {
	if names == nil || id == "" {
		return orNone(printable(id))
	}
	name, deleted := names.UserName(id)
	if name = printable(name); name == "" {
		name = printable(id)
	}
	if deleted {
		name += " (deleted)"
	}
	return name
}

func channelName(id string, names Names) string {
	if names != nil {
		if name := printable(names.ChannelName(id)); name != "" {
			if strings.HasPrefix(id, "D") {
				return name // a conversation between two
			}
			return "#" + name
		}
	}
	return orNone(printable(id))
}

// threadName says where a thread is and when it began: "#general, 3 Oct 14:05".
func (a Answer) threadName(l Line, names Names) string {
	if l.ThreadKey.ChannelID == "" {
		return "thread " + orNone(printable(l.Key))
	}
	name := channelName(l.ThreadKey.ChannelID, names)
	whole, _, _ := strings.Cut(l.ThreadKey.ThreadTS, ".")
	if seconds, err := strconv.ParseInt(whole, 10, 64); err == nil {
		at, p := time.Unix(seconds, 0).UTC(), a.Question.Period
		if p.loc != nil {
			at = at.In(p.loc)
		}
		layout := ", 2 Jan 15:04"
		if at.Year() != p.first.Year() {
			layout = ", 2 Jan 2006 15:04"
		}
		name += at.Format(layout)
	}
	if l.Project != "" {
		name += " (" + printable(l.Project) + ")"
	}
	return name
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// printable makes one clean line of foreign text: no escapes, nothing that turns
// the direction of writing.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\u200d' || r == '\u200c': // they join letters and emoji
			return r
		case r == unicode.ReplacementChar, unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// Labels are the names of lines as [Answer.Name] gives them, with the id where two are
// called the same.
func (a Answer) Labels(by ledger.CostGroup, lines []Line, names Names) []string {
	out := make([]string, len(lines))
	seen := map[string]int{}
	for i, l := range lines {
		out[i] = a.Name(by, l, names)
		seen[out[i]]++
	}
	for i, l := range lines {
		if seen[out[i]] > 1 && l.Key != "" && out[i] != l.Key {
			out[i] += " " + printable(l.Key)
		}
	}
	return out
}

// scope says in names what a question was narrowed to, or nothing.
func (q Question) scope(names Names) string {
	var parts []string
	for _, u := range q.Users {
		parts = append(parts, userName(u, names))
	}
	for _, c := range q.Channels {
		parts = append(parts, channelName(c, names))
	}
	for _, p := range q.Projects {
		parts = append(parts, "project "+printable(p))
	}
	for _, m := range q.Models {
		parts = append(parts, printable(m))
	}
	if q.ThreadID != 0 {
		parts = append(parts, "this thread")
	}
	if len(parts) > 4 {
		parts = append(parts[:3], strconv.Itoa(len(parts)-3)+" more")
	}
	return strings.Join(parts, ", ")
}
