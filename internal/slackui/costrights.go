package slackui

import (
	"context"
	"slices"
	"strings"

	"deckhand/internal/report"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/store"
)

// ActCosts is seeing costs that are not the person's own. Who may do it depends on
// what is asked, see costRights.narrow.
const ActCosts Act = "costs"

// costRights is what a person may see of costs: the roles they hold, and where they
// ask. It is a plain value, so that the rules can be tested without Slack.
type costRights struct {
	user     string
	projects []string // all there are
	channels []string // those that have a project
	here     costPlace
	// holds reports whether the person has the role for an act in a project, in a
	// channel, or, with both empty, everywhere.
	holds func(act Act, project, channel string) bool
}

// sight is what an answer may show to whom it is for.
type sight struct {
	people bool // all there is, other people by name
	// shows says which channels may have a line of their own; nil: all.
	shows func(channel string) bool
	notes []string
}

// narrow is the rule of who may see what:
//
//   - everybody who may use Deckhand sees their own spend;
//   - admins see everything, and those of a project or a channel everything there;
//   - others see sums of the projects and channels that they may use, without names
//     of people. Direct messages are one person's, and never stand alone.
//
// It returns the question cut down to what the person may see, or why they may not.
func (r costRights) narrow(q report.Question) (report.Question, sight, *refusal) {
	switch {
	case r.holds(ActAdminister, "", "") || r.covers(ActAdminister, q):
		return q, sight{people: true}, nil
	case len(q.Users) == 1 && q.Users[0] == r.user:
		return q, sight{}, nil
	case len(q.Users) > 0:
		return q, sight{}, &refusal{
			sentence: "What other people spent is for admins to see. Ask for your own, “costs for me”, or for sums: “costs by project”, “by channel”, “by model”, “by day”.",
			reason:   "others' costs",
		}
	case q.By == store.ByUser:
		return q, sight{}, &refusal{
			sentence: "Costs by user are for admins to see. Ask for your own, “costs for me”, or for sums: “costs by project”, “by channel”, “by model”, “by day”.",
			reason:   "costs by user",
		}
	}
	s := sight{shows: r.shows, notes: []string{"Direct messages of others, and channels that you may not use, are summed up as others."}}
	if q.By != store.ByChannel && q.By != store.ByThread {
		s.notes = nil
	}
	named := len(q.Projects) > 0 || len(q.Channels) > 0 || q.ThreadID != 0
	switch usable := r.usable(); {
	case r.covers(ActSee, q):
		return q, s, nil
	case named:
		return q, sight{}, &refusal{
			sentence: "You may see the costs of projects and channels that you may use. " + youMayUse(usable) + " Your own are always yours to see: “costs for me”.",
			reason:   "costs of a place that the person may not use",
		}
	case len(usable) == len(r.projects) && r.usesAllChannels():
		return q, s, nil
	case q.Everyone:
		return q, sight{}, &refusal{
			sentence: "The whole team's costs are for admins to see. " + youMayUse(usable),
			reason:   "the whole team's costs",
		}
	case len(usable) > 0:
		q.Projects = usable
		s.notes = append(s.notes, "These are the projects that you may use.")
		return q, s, nil
	}
	q.Channels = r.usableChannels()
	if len(q.Channels) == 0 {
		return q, sight{}, &refusal{sentence: "You may see your own costs only: “costs for me”.", reason: "no place that the person may use"}
	}
	s.notes = append(s.notes, "These are the channels that you may use.")
	return q, s, nil
}

// covers reports whether a role that the person holds covers all that is asked
// about: the thread, each channel or, where none is named, each project. A question
// that names none of them is about all.
func (r costRights) covers(act Act, q report.Question) bool {
	switch {
	case q.ThreadID != 0:
		return q.ThreadID == r.here.thread.ID && r.holds(act, r.here.thread.Project, r.here.channel)
	case len(q.Channels) > 0:
		return !slices.ContainsFunc(q.Channels, func(c string) bool { return !r.mayIn(act, c) })
	}
	return len(q.Projects) > 0 && !slices.ContainsFunc(q.Projects, func(p string) bool { return !r.holds(act, p, "") })
}

// mayIn reports whether the person holds the role for an act in a channel. Nobody
// but the two in it is in a direct message.
func (r costRights) mayIn(act Act, channel string) bool {
	if directory.IsDirect(channel) {
		return channel == r.here.channel && act == ActSee
	}
	return r.holds(act, "", channel)
}

func (r costRights) shows(channel string) bool { return r.mayIn(ActSee, channel) }

// usable are the projects that the person may use.
func (r costRights) usable() []string {
	out := []string{}
	for _, p := range r.projects {
		if r.holds(ActSee, p, "") {
			out = append(out, p)
		}
	}
	return out
}

func (r costRights) usableChannels() []string {
	var out []string
	for _, c := range r.channels {
		if r.holds(ActSee, "", c) {
			out = append(out, c)
		}
	}
	return out
}

func (r costRights) usesAllChannels() bool { return len(r.usableChannels()) == len(r.channels) }

func youMayUse(projects []string) string {
	switch {
	case len(projects) == 0:
		return "You may use no project as a whole."
	case len(projects) > 8:
		return "You may use " + strings.Join(projects[:8], ", ") + " and more."
	}
	return "You may use " + strings.Join(projects, ", ") + "."
}

// costRights establishes a person's roles. They have passed authorise where they
// ask. failed is why a role could not be established; it counts as not held.
func (a *App) costRights(ctx context.Context, who person, at costPlace) (rights costRights, failed func() error) {
	var why error
	channels := make([]string, 0, len(a.c.Channels))
	for id := range a.c.Channels {
		channels = append(channels, id)
	}
	slices.Sort(channels)
	rights = costRights{user: who.UserID, projects: a.projects(), channels: channels, here: at}
	rights.holds = func(act Act, project, channel string) bool {
		if project == "" && channel != "" {
			project = a.projectOf(channel)
		}
		_, members := a.c.Access.in(project, channel).members(act)
		ok, err := a.isMember(ctx, who.UserID, members)
		if err != nil {
			why = err
		}
		return ok
	}
	return rights, func() error { return why }
}

// mask takes lines of places that may not have one of their own out of an answer;
// they count among its others.
func (s sight) mask(a *report.Answer) {
	if s.shows == nil {
		return
	}
	place := func(l report.Line) string {
		if a.By == store.ByChannel {
			return l.Key
		}
		return l.ThreadKey.ChannelID
	}
	if a.By == store.ByChannel || a.By == store.ByThread {
		var kept []report.Line
		for _, l := range a.Lines {
			if s.shows(place(l)) {
				kept = append(kept, l)
				continue
			}
			a.Rest = added(a.Rest, l, a.More == 0)
			a.More++
		}
		a.Lines = kept
	}
	var threads []report.Line
	for _, l := range a.Threads {
		if s.shows(l.ThreadKey.ChannelID) {
			threads = append(threads, l)
		}
	}
	a.Threads = threads
}

// added is the sum of two lines, which is compared as long as both are.
func added(sum, l report.Line, first bool) report.Line {
	sum.Share += l.Share
	sum.Before += l.Before
	sum.Compared = l.Compared && (first || sum.Compared)
	for _, n := range []struct {
		to   *int64
		from int64
	}{
		{&sum.Turns, l.Turns},
		{&sum.Approved, l.Approved},
		{&sum.Entries, l.Entries},
		{&sum.Input, l.Input},
		{&sum.Output, l.Output},
		{&sum.CacheRead, l.CacheRead},
		{&sum.CacheWrite5m, l.CacheWrite5m},
		{&sum.CacheWrite1h, l.CacheWrite1h},
		{&sum.WebSearches, l.WebSearches},
		{&sum.MicroUSD, l.MicroUSD},
		{&sum.EstimatedMicroUSD, l.EstimatedMicroUSD},
		{&sum.ContractMicroUSD, l.ContractMicroUSD},
	} {
		*n.to += n.from
	}
	return sum
}
