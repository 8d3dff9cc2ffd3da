package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/store/turns"
)

// Feedback is what people think of the answers, and why. It is also its JSON: fields are
// added, never renamed.
type Feedback struct {
	Since    time.Time        `json:"since"`
	Until    time.Time        `json:"until"`
	Team     string           `json:"team"`
	Projects []FeedbackLine   `json:"projects"`
	Reasons  []FeedbackReason `json:"reasons"` // the latest first
}

// FeedbackReason is what somebody wrote about an answer.
type FeedbackReason struct {
	At        time.Time `json:"at"`
	Project   string    `json:"project"`
	Channel   string    `json:"channel"`
	ThreadTS  string    `json:"thread_ts"`
	MessageTS string    `json:"message_ts"`
	User      string    `json:"user"`
	UserName  string    `json:"user_name"`
	Good      bool      `json:"good"`
	Reason    string    `json:"reason"`
	// Permalink is the answer's; empty where the workspace's address is not known.
	Permalink string `json:"permalink"`
}

// NewFeedback is what people said from since until until. names may be nil, and workspace,
// the workspace's address, empty.
func NewFeedback(team string, since, until time.Time, found turns.FeedbackReport, names Names, workspace string) Feedback {
	out := Feedback{Since: since.UTC().Truncate(time.Second), Until: until.UTC().Truncate(time.Second), Team: team, Projects: []FeedbackLine{}, Reasons: []FeedbackReason{}}
	for _, p := range found.Projects {
		out.Projects = append(out.Projects, FeedbackLine(p))
	}
	for _, r := range found.Reasons {
		line := FeedbackReason{
			At: r.At.UTC().Truncate(time.Second), Project: r.Project, Channel: r.ChannelID, ThreadTS: r.ThreadTS, MessageTS: r.MessageTS,
			User: r.UserID, Good: r.Good, Reason: r.Reason,
		}
		if names != nil {
			line.UserName, _ = names.UserName(r.UserID)
		}
		if workspace != "" {
			line.Permalink = strings.TrimSuffix(workspace, "/") + "/archives/" + r.ChannelID + "/p" + strings.ReplaceAll(cmp.Or(r.MessageTS, r.ThreadTS), ".", "")
		}
		out.Reasons = append(out.Reasons, line)
	}
	return out
}

// CSV writes a row for each reason. New columns go to the end.
func (f Feedback) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	// An error stays with the writer until Flush.
	_ = out.Write([]string{"at", "project", "channel", "thread_ts", "message_ts", "user", "user_name", "good", "reason", "permalink"})
	for _, r := range f.Reasons {
		_ = out.Write([]string{
			r.At.Format(time.RFC3339), Inert(r.Project), Inert(r.Channel), r.ThreadTS, r.MessageTS, Inert(r.User), Inert(r.UserName),
			strconv.FormatBool(r.Good), Inert(r.Reason), r.Permalink,
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

// Table writes it for a terminal.
func (f Feedback) Table(w io.Writer) error {
	out := "Feedback since " + f.Since.Format(time.DateOnly+" 15:04 MST") + "\n"
	if len(f.Projects) == 0 {
		return write(w, out+"No answer has a rating yet.\n")
	}
	t := newTable(1, "Project", "Good", "Bad")
	for _, p := range f.Projects {
		t.AppendRow([]any{fit(printable(p.Project), 48), p.Good, p.Bad})
	}
	out += "\n" + t.Render() + "\n"
	for _, r := range f.Reasons {
		kind := "bad"
		if r.Good {
			kind = "good"
		}
		out += fmt.Sprintf("\n%s  %s  %s, by %s\n  %s\n", r.At.Format(time.DateOnly+" 15:04 MST"), kind, printable(r.Project), printable(cmp.Or(r.UserName, r.User)), printable(r.Reason))
		out += "  " + cmp.Or(printable(r.Permalink), printable(r.Channel)+" "+cmp.Or(r.MessageTS, r.ThreadTS)) + "\n"
	}
	return write(w, out)
}
