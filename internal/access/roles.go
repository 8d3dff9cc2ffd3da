package access

import (
	"maps"
	"slices"
	"strings"
)

// Act is something a person wants to do.
type Act string

// The acts. Each needs the role that [Roles.Members] gives it.
const (
	Prompt     Act = "prompt"     // give the agent work
	Stop       Act = "stop"       // stop a running turn
	See        Act = "see"        // own costs, the whole input of a request, the home tab
	Costs      Act = "costs"      // costs that are not the person's own; see [Rules.Costs]
	Approve    Act = "approve"    // decide about a tool call or a plan
	Administer Act = "administer" // permissions beyond a thread, everybody's grants, reports on people
)

// barred is what a person is told who may not do an act.
var barred = map[Act]string{
	Prompt: noAccess, Stop: noAccess, See: noAccess, Costs: noAccess,
	Approve:    "Only approvers can decide about this. Ask an admin to make you one.",
	Administer: "Only admins can do this.",
}

const noAccess = "You don't have access to Deckhand here. Ask an admin to add you."

// Revoking is the act of ending a grant: its maker may as long as they are an approver
// where it holds; for all others it takes an admin.
func Revoking(own bool) Act {
	if own {
		return Approve
	}
	return Administer
}

// Roles says who may do what: Slack user ids (U…, W…) and user group ids (S…).
// An admin may do all that an approver may, an approver all that a user may.
// Nobody is listed: nobody may do anything.
type Roles struct {
	Admins    []string `yaml:"admins"`
	Approvers []string `yaml:"approvers"`
	Users     []string `yaml:"users"`
}

// Members lists who may do an act, and what they are called. An unknown act is
// nobody's.
func (r Roles) Members(act Act) (role string, members []string) {
	switch act {
	case Administer:
		return "an admin", r.Admins
	case Approve:
		return "an approver", slices.Concat(r.Approvers, r.Admins)
	case Prompt, Stop, See, Costs:
		return "a user", slices.Concat(r.Users, r.Approvers, r.Admins)
	}
	return "entitled to that", nil
}

// Rules are who may do what, where. Where a project or a channel names its own
// approvers or users, they take the place of the wider ones; a channel's go before
// its project's. Its own admins come in addition.
type Rules struct {
	Roles
	Projects map[string]Roles // by name
	Channels map[string]Roles // by id
	Places   Places
}

// In narrows the roles to a place. project and channel may be empty.
func (r Rules) In(project, channel string) Roles {
	roles := r.Roles
	for _, own := range []Roles{r.Projects[project], r.Channels[channel]} {
		if own.Users != nil {
			roles.Users = own.Users
		}
		if own.Approvers != nil {
			roles.Approvers = own.Approvers
		}
		roles.Admins = slices.Concat(roles.Admins, own.Admins)
	}
	return roles
}

// ProjectNames are the names of all projects, sorted.
func (r Rules) ProjectNames() []string {
	names := map[string]bool{}
	for name := range r.Projects {
		names[name] = true
	}
	for channel := range r.Places.Channels {
		for _, name := range r.Places.Of(channel) {
			names[name] = true
		}
	}
	if r.Places.DirectMessages != "" {
		names[r.Places.DirectMessages] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Places say where people work.
type Places struct {
	// Channels are the project of each channel's threads, by id: the usual one, or the first, where
	// there are several.
	Channels map[string]string
	// Several are all projects of a channel that has more than one, and Unsettled the channels among
	// them in which none is the usual one.
	Several   map[string][]string
	Unsettled map[string]bool
	// DirectMessages is the project of direct messages; empty for none.
	DirectMessages string
	// Bound are the projects of further channels, by id, which admins have set up in Slack; nil for none.
	// Channels come before it.
	Bound func() map[string]string `json:"-"`
	// Mention are the channels, by id, in whose threads a reply is for the bot only if it
	// mentions it.
	Mention map[string]bool
}

// Project is the project that a channel's threads work on, or empty.
func (p Places) Project(channel string) string {
	if IsDirect(channel) {
		return p.DirectMessages
	}
	return p.All()[channel]
}

// All are the projects of all channels, by id, as [Places.Channels] has them.
func (p Places) All() map[string]string {
	if p.Bound == nil {
		return p.Channels
	}
	all := maps.Clone(p.Bound())
	if all == nil {
		return p.Channels
	}
	maps.Copy(all, p.Channels)
	return all
}

// Of are all projects that a channel's threads may work on.
func (p Places) Of(channel string) []string {
	if all := p.Several[channel]; all != nil {
		return all
	}
	if one := p.Project(channel); one != "" {
		return []string{one}
	}
	return nil
}

// IsDirect reports whether a channel is a conversation between a person and the bot.
func IsDirect(channel string) bool { return strings.HasPrefix(channel, "D") }
