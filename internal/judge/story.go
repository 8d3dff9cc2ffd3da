package judge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Story is a thread's full chronology: its messages in their final state, what the model was asked, what ran, what
// was decided, and the accidents in between. Without a thread it has only the accidents.
func (e Evidence) Story(thread string) string {
	told := slices.Clone(e.Accidents)
	line := func(at time.Time, format string, args ...any) {
		told = append(told, Line{At: at, Text: fmt.Sprintf(format, args...)})
	}
	mine := map[string]bool{}
	for _, t := range e.Threads {
		if t.root() != thread {
			continue
		}
		for _, m := range t.Messages {
			who, to := m.User, ""
			if m.User == e.Bot {
				who = "the bot"
			}
			if m.EphemeralTo != "" {
				to = " to " + m.EphemeralTo + " alone"
			}
			var marks []string
			for _, r := range m.Reactions {
				marks = append(marks, r.Name)
			}
			for _, row := range e.Rows.Posts {
				if row.TS == m.TS {
					line(row.At, "%s was received; it is %s %s", m.TS, row.State, row.Outcome)
				}
			}
			line(at(m.TS), "%s%s posted %s, which now reads %.300q, edits %d, marks %v", who, to, m.TS, oneLine(m.Text), m.Edits, marks)
		}
		for _, p := range t.posts(e.Bot) {
			mine[p.answer] = true
			for _, w := range p.tools {
				mine[w.id] = true
			}
		}
		e.storyOfRows(t, line)
	}
	for _, c := range e.Calls {
		if mine[c.asked()] {
			line(c.At, "the model is asked in session %.8s about %v, status %d, tools %v", c.Session, c.Seen, c.Status, c.Uses)
		}
	}
	for _, r := range e.Runs {
		if mine[r.ID] {
			line(r.At, "%s of %s %s %v", r.What, r.Verb, r.ID, r.Found)
		}
	}
	slices.SortStableFunc(told, func(a, b Line) int { return a.At.Compare(b.At) })
	var b strings.Builder
	for _, l := range told {
		fmt.Fprintf(&b, "  %s %s\n", clock(l.At), l.Text)
	}
	return b.String()
}

func (e Evidence) storyOfRows(t Thread, line func(time.Time, string, ...any)) {
	for _, row := range e.Rows.Threads {
		if row.Channel != t.Channel || row.TS != t.root() {
			continue
		}
		for _, turn := range e.Rows.Turns {
			if turn.ThreadID != row.ID {
				continue
			}
			line(turn.Started, "turn %d begins, attempt %d", turn.ID, turn.Attempt)
			if turn.Ended != nil {
				line(*turn.Ended, "turn %d ends: %s %s", turn.ID, turn.State, turn.Problem)
			}
		}
		for _, a := range e.Rows.Approvals {
			if a.ThreadID != row.ID {
				continue
			}
			line(a.CreatedAt, "asked: %.160s", a.Input)
			if a.DecidedAt != nil {
				line(*a.DecidedAt, "%s by %s: %.160s", a.Status, a.DecidedBy, a.Input)
			}
		}
	}
}

// at is the time in a message's ts.
func at(ts string) time.Time {
	seconds, err := strconv.ParseFloat(ts, 64)
	if err != nil {
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}
