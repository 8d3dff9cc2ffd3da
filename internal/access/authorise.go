package access

import (
	"cmp"
	"slices"
	"strings"
)

// Request is what a person wants to do, and where.
type Request struct {
	// Act is what they want to do; Terms, if there are any, say it instead.
	Act     Act
	Team    string // the workspace that the request says it comes from
	User    string
	Channel string // empty for the home tab
	Project string // empty: the channel's
	Reach   Reach
	// Terms are those of the approval that is to be decided; nil for all other acts.
	Terms *Terms
}

// Terms are what an approval adds to the roles.
type Terms struct {
	// Question is an agent's question and no call: it is put to the person who asked
	// for the work, so any user may answer it, whatever the other terms are.
	Question bool
	// Approvers are the users and groups whom the policy names in place of the role.
	Approvers []string
	// Requester is who asked for the work, RequesterMay whether they may decide.
	Requester    string
	RequesterMay bool
	// Editor is who has changed what is to run, if anybody: no more may they decide about it
	// than the requester.
	Editor string
}

// What is the act that is wanted.
func (q Request) What() Act {
	switch {
	case q.Terms == nil:
		return q.Act
	case q.Terms.Question:
		return Prompt
	}
	return Approve
}

// Facts are what is known of the world when a request comes, as far as it was asked
// for. A fact that is missing is not known yet; one with an error could not be
// established.
type Facts struct {
	Team    string // the workspace that we work in
	Person  *Person
	Channel *Channel
	Groups  map[string]Group // by id, those that the person may be in
}

// Person is who somebody is now.
type Person struct {
	Err      error
	Team     string // empty where it is not told
	Stranger bool   // known from a shared channel only
	Deleted  bool
	Bot      bool
	Guest    bool // of several channels or of one
}

// Channel is what a channel is now.
type Channel struct {
	Err error
	// Shared is true for a channel that is, or is about to be, shared with another
	// company.
	Shared bool
}

// Group is whether the person is in a user group now.
type Group struct {
	Err    error
	Member bool
}

// Need is the fact that has to be established before there is an answer. The zero
// value needs nothing.
type Need struct {
	Person, Channel bool
	Group           string
}

// Answer is what becomes of a request. It is one only if it needs nothing any more.
type Answer struct {
	Allowed bool
	Need    Need
	Refusal Refusal // unless it is allowed
}

// Refusal is why somebody may not do something.
type Refusal struct {
	Sentence string // for that person
	Reason   string // for the log and the audit
	Err      error  // why a fact could not be established, or nil
}

func (r *Refusal) Error() string { return r.Reason }

// Unwrap is why a fact could not be established, or nil.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(sentence, reason string) Answer {
	return Answer{Refusal: Refusal{Sentence: sentence, Reason: reason}}
}

func unknown(what, reason string, err error) Answer {
	return Answer{Refusal: Refusal{Sentence: "Slack could not say " + what + ", so nothing was done. Try again in a minute.", Reason: reason, Err: err}}
}

func unknownGroups(err error) Answer {
	return unknown("which user groups you are in", "a user group could not be looked up", err)
}

// Authorise decides about a request.
func (r Rules) Authorise(q Request, f Facts) Answer {
	if f.Team == "" || q.Team != f.Team || q.User == "" {
		return refuse("Deckhand works for members of its own workspace only.", "another team")
	}
	if answer := f.admitPerson(); !answer.Allowed {
		return answer
	}
	if answer := f.admitChannel(q.Channel); !answer.Allowed {
		return answer
	}
	act := q.What()
	role, members := r.at(q).Members(act)
	sentence := cmp.Or(barred[act], noAccess)
	if act == Approve && q.Terms != nil && len(q.Terms.Approvers) > 0 {
		role, members = "among those whom the policy names for this", q.Terms.Approvers
		sentence = "The policy names who can decide about this, and you are not among them."
	}
	switch in, group, err := f.among(q.User, members); {
	case group != "":
		return Answer{Need: Need{Group: group}}
	case !in && err != nil:
		return unknownGroups(err)
	case !in:
		return refuse(sentence, "not "+role)
	}
	if act == Approve && q.Terms != nil && q.User == q.Terms.Requester && !q.Terms.RequesterMay {
		return refuse("You asked for this work, so somebody else must decide.", "the requester")
	}
	if act == Approve && q.Terms != nil && q.Terms.Editor != "" && q.User == q.Terms.Editor && !q.Terms.RequesterMay {
		return refuse("You changed what will run, so somebody else must decide.", "the editor")
	}
	return Answer{Allowed: true}
}

// Deciders are the users and groups whose members may decide under the terms: a
// question is for the person who asked.
func (r Rules) Deciders(t Terms, project, channel string) []string {
	switch {
	case t.Question:
		return []string{t.Requester}
	case len(t.Approvers) > 0:
		return t.Approvers
	}
	_, members := r.In(project, channel).Members(Approve)
	return members
}

// at are the roles that count for what the person does, where they are.
func (r Rules) at(q Request) Roles {
	project, channel := q.Project, q.Channel
	project = cmp.Or(project, r.Places.Project(channel))
	switch q.Reach {
	case ReachPlace:
		return r.In(project, channel)
	case ReachProject:
		return r.In(project, "")
	}
	return r.Roles
}

// Reader decides whether what is sent to the person, or to a channel if one is given,
// is read by full members of our workspace alone.
func (f Facts) Reader(channel string) Answer {
	if channel == "" {
		return f.admitPerson()
	}
	return f.admitChannel(channel)
}

// admitPerson turns away all but the full members of our workspace.
func (f Facts) admitPerson() Answer {
	switch p := f.Person; {
	case p == nil:
		return Answer{Need: Need{Person: true}}
	case p.Err != nil:
		return unknown("who you are", "the user could not be looked up", p.Err)
	case p.Team != "" && p.Team != f.Team, p.Stranger:
		return refuse("Deckhand works for members of its own workspace only.", "a member of another team")
	case p.Deleted:
		return refuse("This account is deactivated.", "a deleted user")
	case p.Bot:
		return refuse("Deckhand takes no orders from bots.", "a bot")
	case p.Guest:
		return refuse("Guests can't use Deckhand. Ask a full member.", "a guest")
	}
	return Answer{Allowed: true}
}

// admitChannel turns everybody away where people of another company listen.
func (f Facts) admitChannel(id string) Answer {
	if id == "" || IsDirect(id) {
		return Answer{Allowed: true}
	}
	switch c := f.Channel; {
	case c == nil:
		return Answer{Need: Need{Channel: true}}
	case c.Err != nil:
		return unknown("what channel this is", "the channel could not be looked up", c.Err)
	case c.Shared:
		return refuse("Deckhand does not work in channels that are shared with other companies.", "an externally shared channel")
	}
	return Answer{Allowed: true}
}

// among reports whether a person is on a list of users and groups. need is a group
// that has to be known first; err is why another could not be, unless they are in.
func (f Facts) among(user string, members []string) (in bool, need string, err error) {
	if slices.Contains(members, user) {
		return true, "", nil
	}
	for _, m := range members {
		if !strings.HasPrefix(m, "S") {
			continue
		}
		switch g, known := f.Groups[m]; {
		case !known:
			return false, m, nil
		case g.Err != nil:
			err = g.Err
		case g.Member:
			return true, "", nil
		}
	}
	return false, "", err
}
