package access

import (
	"maps"
	"slices"
	"strings"
)

// Asker is who asks about costs, and where. They may see costs there at all: they have
// passed [Rules.Authorise] with [See].
type Asker struct {
	User    string
	Channel string
	// Thread is the thread that is asked in, by its number, and Project what it works
	// on; zero outside of threads.
	Thread  int64
	Project string
}

// CostScope is what a question about costs is about. Whatever is empty is not narrowed.
type CostScope struct {
	Users, Projects, Channels []string
	Thread                    int64
	Everyone                  bool // asks for the whole team in so many words
	ByUser                    bool // a line for each person
	ByPlace                   bool // a line for each channel or thread
}

// CostAnswer is what becomes of a question about costs.
type CostAnswer struct {
	Answer
	// Scope is the question's, cut down to what the asker may see.
	Scope CostScope
	// People is true if other people may be named in the answer.
	People bool
	// Narrow is true if only channels that the asker may use have a line of their own,
	// see [Rules.Shows].
	Narrow bool
	// Notes explain to the asker what was cut, a sentence each.
	Notes []string
}

// Costs is the rule of who may see what of costs:
//
//   - everybody who may use Deckhand sees their own spend;
//   - admins see everything, and those of a project or a channel everything there;
//   - others see sums of the projects and channels that they may use, without names
//     of people. Direct messages are one person's, and never stand alone.
//
// It looks at the facts' groups only.
func (r Rules) Costs(a Asker, s CostScope, f Facts) CostAnswer {
	h := holder{rules: r, asker: a, facts: f}
	answer := h.costs(s)
	switch {
	case h.need != Need{}:
		return CostAnswer{Answer: Answer{Need: h.need}}
	case !answer.Allowed && h.err != nil:
		return CostAnswer{Answer: unknownGroups(h.err)}
	}
	return answer
}

// Shows reports whether a channel may have a line of its own for the asker. A refusal
// says so to nobody: the line is summed up with others.
func (r Rules) Shows(a Asker, channel string, f Facts) Answer {
	h := holder{rules: r, asker: a, facts: f}
	shown := h.mayIn(See, channel)
	return Answer{Allowed: shown && h.need == Need{}, Need: h.need, Refusal: Refusal{Err: h.err}}
}

// Usable are the projects that the asker may use as a whole, once the answer is not a
// need any more.
func (r Rules) Usable(a Asker, f Facts) ([]string, Need) {
	h := holder{rules: r, asker: a, facts: f}
	return h.projects(), h.need
}

// holder finds out which roles a person holds. What cannot be told is not held.
type holder struct {
	rules Rules
	asker Asker
	facts Facts
	need  Need  // the first fact that was missing
	err   error // why some group could not be established
}

// holds reports whether the person has the role for an act in a project, in a channel,
// or, with both empty, everywhere. A channel with several projects takes the role in each.
func (h *holder) holds(act Act, project, channel string) bool {
	if all := h.rules.Places.Of(channel); project == "" && len(all) > 0 {
		return !slices.ContainsFunc(all, func(p string) bool { return !h.holds(act, p, channel) })
	}
	_, members := h.rules.In(project, channel).Members(act)
	in, group, err := h.facts.among(h.asker.User, members)
	if group != "" && h.need == (Need{}) {
		h.need.Group = group
	}
	if err != nil {
		h.err = err
	}
	return in
}

func (h *holder) costs(s CostScope) CostAnswer {
	allowed := Answer{Allowed: true}
	refused := func(sentence, reason string) CostAnswer { return CostAnswer{Answer: refuse(sentence, reason)} }
	switch {
	case h.holds(Administer, "", "") || h.covers(Administer, s):
		return CostAnswer{Answer: allowed, Scope: s, People: true}
	case len(s.Users) == 1 && s.Users[0] == h.asker.User:
		return CostAnswer{Answer: allowed, Scope: s}
	case len(s.Users) > 0:
		return refused("What other people spent is for admins to see. Ask for your own, “costs for me”, or for sums: “costs by project”, “by channel”, “by model”, “by day”.", "others' costs")
	case s.ByUser:
		return refused("Costs by user are for admins to see. Ask for your own, “costs for me”, or for sums: “costs by project”, “by channel”, “by model”, “by day”.", "costs by user")
	}
	out := CostAnswer{Answer: allowed, Scope: s, Narrow: true}
	if s.ByPlace {
		out.Notes = []string{"Direct messages of others, and channels that you may not use, are summed up as others."}
	}
	named := len(s.Projects) > 0 || len(s.Channels) > 0 || s.Thread != 0
	projects, channels := h.projects(), h.channels()
	switch {
	case h.covers(See, s):
		return out
	case named:
		return refused("You may see the costs of projects and channels that you may use. "+youMayUse(projects)+" Your own are always yours to see: “costs for me”.", "costs of a place that the person may not use")
	case len(projects) == len(h.rules.ProjectNames()) && len(channels) == len(h.rules.Places.All()):
		return out
	case s.Everyone:
		return refused("The whole team's costs are for admins to see. "+youMayUse(projects), "the whole team's costs")
	case len(projects) > 0:
		out.Scope.Projects = projects
		out.Notes = append(out.Notes, "These are the projects that you may use.")
	case len(channels) > 0:
		out.Scope.Channels = channels
		out.Notes = append(out.Notes, "These are the channels that you may use.")
	default:
		return refused("You may see your own costs only: “costs for me”.", "no place that the person may use")
	}
	return out
}

// covers reports whether a role that the person holds covers all that is asked about:
// the thread, each channel or, where none is named, each project. A question that names
// none of them is about all.
func (h *holder) covers(act Act, s CostScope) bool {
	switch {
	case s.Thread != 0:
		return s.Thread == h.asker.Thread && h.holds(act, h.asker.Project, h.asker.Channel)
	case len(s.Channels) > 0:
		return !slices.ContainsFunc(s.Channels, func(c string) bool { return !h.mayIn(act, c) })
	}
	return len(s.Projects) > 0 && !slices.ContainsFunc(s.Projects, func(p string) bool { return !h.holds(act, p, "") })
}

// mayIn reports whether the person holds the role for an act in a channel. Nobody but
// the two in it is in a direct message.
func (h *holder) mayIn(act Act, channel string) bool {
	if IsDirect(channel) {
		return channel == h.asker.Channel && act == See
	}
	return h.holds(act, "", channel)
}

// projects are those that the person may use as a whole.
func (h *holder) projects() []string {
	return slices.DeleteFunc(h.rules.ProjectNames(), func(p string) bool { return !h.holds(See, p, "") })
}

// channels are those with a project that the person may use.
func (h *holder) channels() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(h.rules.Places.All())), func(c string) bool { return !h.holds(See, "", c) })
}

func youMayUse(projects []string) string {
	switch {
	case len(projects) == 0:
		return "You may use no project as a whole."
	case len(projects) > 8:
		return "You may use " + strings.Join(projects[:8], ", ") + " and more."
	}
	return "You may use " + strings.Join(projects, ", ") + "."
}
