package report

import (
	"slices"
	"strings"
	"time"

	"deckhand/internal/store/ledger"
)

// Question is what somebody wants to know about costs. [Parse] makes it; its fields
// may be narrowed afterwards, for instance to the spend that the asker may see.
// Filters of one kind widen each other, filters of several kinds narrow each other.
type Question struct {
	// Period is the time that is asked about.
	Period Period
	// By is what the costs are broken down by. Empty leaves the choice to [Ask].
	By ledger.CostGroup
	// Users, Channels, Projects and Models name what is asked about; an empty list
	// means all. Users and channels are Slack's ids, models are the CLI's ids. They
	// are sorted and hold nothing twice.
	Users, Channels, Projects, Models []string
	// ThreadID is the one thread that is asked about, or 0.
	ThreadID int64
	// Everyone is true when the whole team's costs were asked for in words, so that
	// nobody who may see only their own gets them silently instead.
	Everyone bool
	// CSV is true when the figures are wanted as a file.
	CSV bool

	teams map[string]string // of projects, for ByTeam
}

// Context is what the words of a question are understood by.
type Context struct {
	// Now is the moment of the question.
	Now time.Time
	// Location is the time zone that days begin in; nil is UTC.
	Location *time.Location
	// Asker is the id of the person who asks, whom "me" means. Empty where nobody is
	// known, as in a terminal.
	Asker string
	// ThreadID is the thread in which was asked, which "this thread" means, or 0.
	ThreadID int64
	// Project and Channel are where was asked, which "this project" and "this channel"
	// mean, or empty.
	Project, Channel string
	// Projects are the names there are. If it is nil, any name is believed.
	Projects []string
	// Teams are the teams that projects belong to, by project. If it is nil, they are not known.
	Teams map[string]string
	// Models are the ids there are, by which "opus" finds its models. If it is nil,
	// a model is taken for the id that it is written as.
	Models []string
}

func (o Context) location() *time.Location {
	if o.Location == nil {
		return time.UTC
	}
	return o.Location
}

// String is the question in the words of the grammar. [Parse] reads it back as the
// same question, in the same [Context].
func (q Question) String() string {
	var parts []string
	if q.Period.text != "" {
		parts = append(parts, q.Period.text)
	}
	if q.By != ledger.ByNothing {
		parts = append(parts, "by "+string(q.By))
	}
	return strings.Join(append(parts, q.filters()...), " ")
}

// filters are the parts of the question that follow its period and grouping.
func (q Question) filters() []string {
	var parts []string
	for _, u := range q.Users {
		parts = append(parts, "for <@"+u+">")
	}
	for _, c := range q.Channels {
		parts = append(parts, "for <#"+c+">")
	}
	for _, p := range q.Projects {
		parts = append(parts, "for project "+quote(p))
	}
	for _, m := range q.Models {
		parts = append(parts, "for model "+quote(m))
	}
	if q.ThreadID != 0 {
		parts = append(parts, "for this thread")
	}
	if q.Everyone {
		parts = append(parts, "for everyone")
	}
	if q.CSV {
		parts = append(parts, "with csv")
	}
	return parts
}

// query is the question to the ledger, over a period and by a grouping of choice.
func (q Question) query(team string, p Period, by ledger.CostGroup, limit int) ledger.CostQuery {
	return ledger.CostQuery{
		TeamID: team, From: p.From, To: p.To,
		Users: q.Users, Channels: q.Channels, Projects: q.Projects, Models: q.Models, ThreadID: q.ThreadID,
		By: by, Limit: limit,
	}
}

// normal sorts the filters and drops what stands there twice.
func (q *Question) normal() {
	for _, list := range []*[]string{&q.Users, &q.Channels, &q.Projects, &q.Models} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}
