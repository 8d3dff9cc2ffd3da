package access

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var errAway = errors.New("slack is away")

// world is what look-ups would tell, and what was looked up.
type world struct {
	person  Person
	channel Channel
	groups  map[string]Group // a group that is not here could not be looked up
	asked   []Need
}

// decide establishes what an answer needs until it is one. Nothing may be asked twice.
func (w *world) decide(t rapid.TB, team string, ask func(Facts) Answer) Answer {
	t.Helper()
	f := Facts{Team: team, Groups: map[string]Group{}}
	for {
		answer := ask(f)
		need := answer.Need
		if need == (Need{}) {
			return answer
		}
		if answer.Allowed {
			t.Fatalf("allowed before %+v was known", need)
		}
		if slices.Contains(w.asked, need) {
			t.Fatalf("%+v is asked for again", need)
		}
		w.asked = append(w.asked, need)
		switch {
		case need.Person:
			f.Person = &w.person
		case need.Channel:
			f.Channel = &w.channel
		default:
			g, ok := w.groups[need.Group]
			if !ok {
				g.Err = errAway
			}
			f.Groups[need.Group] = g
		}
	}
}

const us = "T0US"

// Each role is held by a person and by a group in the team, by others in the project
// web and in the channel C0OPS.
var house = Rules{
	Roles: Roles{Admins: []string{"U0ADMIN", "S0ADMINS"}, Approvers: []string{"U0APPROVER", "S0APPROVERS"}, Users: []string{"U0USER", "S0USERS"}},
	Projects: map[string]Roles{
		"web": {Admins: []string{"U0WEBADMIN"}},
		"api": {Users: []string{"U0API"}, Approvers: []string{"U0APIAPPROVER"}},
	},
	Channels: map[string]Roles{"C0OPS": {Approvers: []string{"U0OPS"}, Admins: []string{"U0OPSADMIN"}}},
	Places:   Places{Channels: map[string]string{"C0WEB": "web", "C0OPS": "web", "C0API": "api"}, DirectMessages: "web"},
}

const everyUserAct = "prompt stop see costs"

// people are who is who, and what they may do: in the channel of web, where the team's
// own roles count, in a channel of web with approvers of its own, and in the channel of
// api, which has users and approvers of its own.
var people = []struct {
	who, user, group string
	web, ops, api    string
	team             string // where the team's own roles count
}{
	{"an admin", "U0ADMIN", "", "user approve administer", "user approve administer", "user approve administer", "user approve administer"},
	{"an admin by group", "U1", "S0ADMINS", "user approve administer", "user approve administer", "user approve administer", "user approve administer"},
	{"an approver", "U0APPROVER", "", "user approve", "", "", "user approve"},
	{"an approver by group", "U1", "S0APPROVERS", "user approve", "", "", "user approve"},
	{"a user", "U0USER", "", "user", "user", "", "user"},
	{"a user by group", "U1", "S0USERS", "user", "user", "", "user"},
	{"an admin of web", "U0WEBADMIN", "", "user approve administer", "user approve administer", "", ""},
	{"an approver of the channel", "U0OPS", "", "", "user approve", "", ""},
	{"an admin of the channel", "U0OPSADMIN", "", "", "user approve administer", "", ""},
	{"a user of api", "U0API", "", "", "", "user", ""},
	{"an approver of api", "U0APIAPPROVER", "", "", "", "user approve", ""},
	{"a member without a role", "U1", "", "", "", "", ""},
}

// conditions turn a person away whatever their role, but the first.
var conditions = []struct {
	what   string
	person Person
	reason string
}{
	{"a full member", Person{}, ""},
	{"a full member, with the team", Person{Team: us}, ""},
	{"a guest", Person{Guest: true}, "a guest"},
	{"a bot", Person{Bot: true}, "a bot"},
	{"a bot that is a guest", Person{Bot: true, Guest: true}, "a bot"},
	{"somebody who left", Person{Deleted: true}, "a deleted user"},
	{"a stranger", Person{Stranger: true}, "a member of another team"},
	{"somebody of another team", Person{Team: "T0THEM"}, "a member of another team"},
	{"somebody whom Slack does not know", Person{Err: errAway}, "the user could not be looked up"},
}

var places = []struct {
	kind, id string
	channel  Channel
	reason   string
}{
	{"the channel of web", "C0WEB", Channel{}, ""},
	{"the channel of operations", "C0OPS", Channel{}, ""},
	{"the channel of api", "C0API", Channel{}, ""},
	{"a direct message", "D0ME", Channel{Err: errAway}, ""}, // which is not looked up
	{"the home tab", "", Channel{Err: errAway}, ""},
	{"a shared channel", "C0WEB", Channel{Shared: true}, "an externally shared channel"},
	{"a channel that Slack does not know", "C0WEB", Channel{Err: errAway}, "the channel could not be looked up"},
}

var acts = []Act{Prompt, Stop, See, Costs, Approve, Administer, "", "dance"}

// terms are those of an approval, seen by the person who is to decide. may is what they
// do with the role of an approver: keep it, or decide by themselves.
var terms = []struct {
	what  string
	terms *Terms
	says  string // the reason, whoever decides; "role": their role decides, "": they may
	act   Act
}{
	{"no terms", nil, "role", ""},
	{"an approval", &Terms{Requester: "U9", RequesterMay: false}, "role", Approve},
	{"one's own, which one may", &Terms{Requester: "me", RequesterMay: true}, "role", Approve},
	{"one's own, which one may not", &Terms{Requester: "me"}, "role, then the requester", Approve},
	{"one for others", &Terms{Requester: "U9", Approvers: []string{"U8", "S8"}}, "not among those whom the policy names for this", Approve},
	{"one for the person", &Terms{Requester: "U9", Approvers: []string{"U8", "me"}}, "", Approve},
	{"one for the person's group", &Terms{Requester: "U9", Approvers: []string{"S8", "S0MINE"}}, "", Approve},
	{"one for the person who asked", &Terms{Requester: "me", Approvers: []string{"me"}}, "the requester", Approve},
	{"a question", &Terms{Question: true, Requester: "U9", Approvers: []string{"U8"}}, "role", Prompt},
	{"one's own question", &Terms{Question: true, Requester: "me"}, "role", Prompt},
}

// TestEverybodyEverywhere is the whole matrix of people, what they are, places, acts and
// terms. What should come of it stands in the tables above.
func TestEverybodyEverywhere(t *testing.T) {
	t.Parallel()
	cases := 0
	for _, who := range people {
		for _, is := range conditions {
			for _, at := range places {
				for _, under := range terms {
					for _, act := range acts {
						for _, reach := range []Reach{ReachPlace, ReachProject, ReachTeam} {
							cases++
							what := fmt.Sprintf("%s, %s, in %s, %q, %s, reaching the %s", who.who, is.what, at.kind, act, under.what, cmp.Or(reach, "place"))
							mine := func(ids []string) []string {
								out := slices.Clone(ids)
								for i, id := range out {
									out[i] = strings.ReplaceAll(id, "me", who.user)
								}
								return out
							}
							q := Request{Act: act, Team: us, User: who.user, Channel: at.id, Reach: reach}
							if under.terms != nil {
								own := *under.terms
								own.Requester, own.Approvers = mine([]string{own.Requester})[0], mine(own.Approvers)
								q.Terms = &own
							}
							w := &world{person: is.person, channel: at.channel, groups: map[string]Group{
								"S0ADMINS": {}, "S0APPROVERS": {}, "S0USERS": {}, "S8": {}, "S0MINE": {Member: true},
							}}
							if who.group != "" {
								w.groups[who.group] = Group{Member: true}
							}
							has := map[string]string{"C0WEB": who.web, "C0OPS": who.ops, "C0API": who.api, "D0ME": who.web, "": who.team}[at.id]
							switch {
							case reach == ReachTeam:
								has = who.team
							case reach == ReachProject && at.id == "C0OPS":
								has = who.web // the channel's own roles do not count
							}
							has = strings.ReplaceAll(has, "user", everyUserAct)
							if under.act != "" {
								act = under.act
							}
							entitled := act != "" && slices.Contains(strings.Fields(has), string(act))
							want := map[bool]string{true: "", false: "not "}[entitled]
							switch {
							case is.reason != "":
								want = is.reason
							case at.reason != "":
								want = at.reason
							case under.says == "role":
							case under.says == "role, then the requester":
								if entitled {
									want = "the requester"
								}
							default:
								want = under.says
							}
							answer := w.decide(t, us, func(f Facts) Answer { return house.Authorise(q, f) })
							r := answer.Refusal
							if answer.Allowed != (want == "") || (want == "" && r != Refusal{}) || !strings.HasPrefix(r.Reason, want) {
								t.Fatalf("%s: %v, %q; want %q", what, answer.Allowed, r.Reason, want)
							}
							if !answer.Allowed && (r.Sentence == "" || (r.Err != nil) != strings.Contains(r.Reason, "looked up")) {
								t.Fatalf("%s: refused with %+v", what, r)
							}
							if at.id == "" || at.id[0] == 'D' || is.reason != "" {
								if slices.Contains(w.asked, Need{Channel: true}) {
									t.Fatalf("%s: the channel was looked up in vain", what)
								}
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// TestWhatIsNotNeededIsNotLookedUp: each fact is a question to Slack.
func TestWhatIsNotNeededIsNotLookedUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what string
		q    Request
		want string
	}{
		{"a payload of another team", Request{Act: See, Team: "T0THEM", User: "U0ADMIN", Channel: "C0WEB"}, "[]"},
		{"nobody", Request{Act: See, Team: us, Channel: "C0WEB"}, "[]"},
		{"somebody who is listed", Request{Act: See, Team: us, User: "U0USER", Channel: "C0WEB"}, "[person channel]"},
		{"in a direct message", Request{Act: See, Team: us, User: "U0USER", Channel: "D0ME"}, "[person]"},
		{"a member of a group", Request{Act: See, Team: us, User: "U1", Channel: "C0WEB"}, "[person channel S0USERS S0APPROVERS]"},
		{"to approve", Request{Act: Approve, Team: us, User: "U1"}, "[person S0APPROVERS]"},
		{"an act of nobody's", Request{Act: "dance", Team: us, User: "U1"}, "[person]"},
	} {
		w := &world{groups: map[string]Group{"S0APPROVERS": {Member: true}, "S0USERS": {}}}
		w.decide(t, us, func(f Facts) Answer { return house.Authorise(tt.q, f) })
		asked := []string{}
		for _, n := range w.asked {
			switch {
			case n.Person:
				n.Group = "person"
			case n.Channel:
				n.Group = "channel"
			}
			asked = append(asked, n.Group)
		}
		if got := fmt.Sprint(asked); got != tt.want {
			t.Errorf("%s: looked up %s, want %s", tt.what, got, tt.want)
		}
	}
}

// TestTheZeroValuesLetNobodyIn: no rules, no facts, no team.
func TestTheZeroValuesLetNobodyIn(t *testing.T) {
	t.Parallel()
	for _, act := range acts {
		for _, r := range []Rules{{}, house} {
			for _, team := range []string{"", us} {
				if r.Authorise(Request{Act: act, Team: team, User: "U0ADMIN"}, Facts{Team: team}).Allowed {
					t.Errorf("%s: let in without facts", act)
				}
			}
		}
		w := &world{}
		if w.decide(t, us, func(f Facts) Answer {
			return Rules{}.Authorise(Request{Act: act, Team: us, User: "U0ADMIN", Channel: "C0WEB"}, f)
		}).Allowed {
			t.Errorf("%s: let in without rules", act)
		}
		if (Rules{}).Authorise(Request{Act: act, User: "U0ADMIN"}, Facts{Person: &Person{}}).Allowed {
			t.Errorf("%s: let in without a team", act)
		}
	}
	if (Answer{}).Allowed {
		t.Error("the zero answer lets in")
	}
}

// TestAGroupThatCannotBeLookedUpRefuses, but only whom no other list lets in.
func TestAGroupThatCannotBeLookedUpRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		user   string
		groups map[string]Group
		want   string
	}{
		{"U1", nil, "a user group could not be looked up"},
		{"U1", map[string]Group{"S0APPROVERS": {}, "S0ADMINS": {}}, "a user group could not be looked up"},
		{"U1", map[string]Group{"S0ADMINS": {Member: true}}, ""},
		{"U0USER", nil, ""},
		{"U1", map[string]Group{"S0USERS": {}, "S0APPROVERS": {}, "S0ADMINS": {}}, "not a user"},
	} {
		w := &world{groups: tt.groups}
		answer := w.decide(t, us, func(f Facts) Answer {
			return house.Authorise(Request{Act: Prompt, Team: us, User: tt.user, Channel: "C0WEB"}, f)
		})
		if answer.Allowed != (tt.want == "") || answer.Refusal.Reason != tt.want {
			t.Errorf("%s, %v: %+v, want %q", tt.user, tt.groups, answer, tt.want)
		}
		if r := answer.Refusal; strings.Contains(tt.want, "looked up") && (!errors.Is(&r, errAway) || r.Error() != tt.want) {
			t.Errorf("%s: the log is told %v", tt.user, &r)
		}
	}
}

// TestFailuresNeverHelp: whatever the roles are, somebody for whom a look-up fails may
// do no more than if it had succeeded.
func TestFailuresNeverHelp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"U1", "U2", "S1", "S2", "S3"}), 0, 4)
		roles := func(name string) Roles {
			return Roles{Admins: ids.Draw(t, name+" admins"), Approvers: ids.Draw(t, name+" approvers"), Users: ids.Draw(t, name+" users")}
		}
		rules := Rules{Roles: roles("team"), Projects: map[string]Roles{"web": roles("web")}, Places: Places{Channels: map[string]string{"C1": "web"}}}
		q := Request{Act: rapid.SampledFrom(acts).Draw(t, "act"), Team: us, User: "U1", Channel: "C1"}
		if rapid.Bool().Draw(t, "approval") {
			q.Terms = &Terms{Approvers: ids.Draw(t, "named"), Requester: rapid.SampledFrom([]string{"U1", "U2"}).Draw(t, "requester"), RequesterMay: rapid.Bool().Draw(t, "may")}
		}
		groups := map[string]Group{}
		for _, id := range []string{"S1", "S2", "S3"} {
			groups[id] = Group{Member: rapid.Bool().Draw(t, id)}
		}
		right := world{groups: groups}
		known := right.decide(t, us, func(f Facts) Answer { return rules.Authorise(q, f) })
		broken := world{groups: map[string]Group{}}
		for id, g := range groups {
			if rapid.Bool().Draw(t, id+" answers") {
				broken.groups[id] = g
			}
		}
		if failed := broken.decide(t, us, func(f Facts) Answer { return rules.Authorise(q, f) }); failed.Allowed && !known.Allowed {
			t.Fatalf("let in because a look-up failed: %+v", failed)
		}
		// Nobody gets in who is on no list at all.
		q.User = "U9"
		none := world{groups: map[string]Group{"S1": {}, "S2": {}, "S3": {}}}
		if none.decide(t, us, func(f Facts) Answer { return rules.Authorise(q, f) }).Allowed {
			t.Fatal("somebody without a role was let in")
		}
	})
}

// TestWhoReads: members of our workspace alone, in a channel that is nobody else's.
func TestWhoReads(t *testing.T) {
	t.Parallel()
	for _, is := range conditions {
		w := world{person: is.person}
		if r := w.decide(t, us, func(f Facts) Answer { return f.Reader("") }); r.Refusal.Reason != is.reason || r.Allowed != (is.reason == "") {
			t.Errorf("%s: %+v", is.what, r)
		}
	}
	for _, at := range places {
		if at.id == "" {
			continue
		}
		w := world{channel: at.channel}
		if r := w.decide(t, us, func(f Facts) Answer { return f.Reader(at.id) }); r.Refusal.Reason != at.reason || r.Allowed != (at.reason == "") {
			t.Errorf("%s: %+v", at.kind, r)
		}
	}
}

func TestWhoDecides(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		terms Terms
		want  string
	}{
		{Terms{Requester: "U9"}, "[U0OPS U0ADMIN S0ADMINS U0WEBADMIN U0OPSADMIN]"},
		{Terms{Requester: "U9", Approvers: []string{"U8"}}, "[U8]"},
		{Terms{Requester: "U9", Question: true, Approvers: []string{"U8"}}, "[U9]"},
	} {
		if got := fmt.Sprint(house.Deciders(tt.terms, "web", "C0OPS")); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.terms, got, tt.want)
		}
	}
	if Revoking(true) != Approve || Revoking(false) != Administer {
		t.Error("a grant is ended by its maker as an approver, by others as an admin")
	}
}
