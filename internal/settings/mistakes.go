package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/agent/policy"
)

// warn adds a doubt: something that has no effect, or may leave somebody waiting.
func (v *validation) warn(at, format string, args ...any) {
	v.doubts = append(v.doubts, v.where(at)+": "+keyOf(at)+fmt.Sprintf(format, args...))
}

// mistakes finds rules that do not do what they say. What allows more than it says is an error; the rest is a
// warning.
func (v *validation) mistakes(c document, p *policy.Policy) {
	servers := map[string][]string{}
	for name, project := range c.Projects {
		servers[name] = sorted(project.MCPServers)
	}
	for _, m := range p.Mistakes(servers) {
		at := fmt.Sprintf("$.policy.rules[%d].%s[%d]", m.Rule, p.Rules[m.Rule].Verdict, m.Pattern)
		if text := p.Rules[m.Rule].Patterns[m.Pattern].String() + ": " + m.Text; m.Opens {
			v.add(at, "%s", text)
		} else {
			v.warn(at, "%s", text)
		}
	}
	for i, r := range p.Rules {
		v.nowhere(fmt.Sprintf("$.policy.rules[%d]", i), c, r)
	}
	v.deciders(c, p, nil)
	longest := cmp.Or(p.Default.Timeout, policy.DefaultTimeout)
	for _, r := range p.Rules {
		longest = max(longest, r.Timeout)
	}
	for i, r := range c.Policy.Reminders {
		if time.Duration(r.After) >= longest {
			v.warn(fmt.Sprintf("$.policy.reminders[%d].after", i), "no question waits as long as %s; write less than approval_timeout (%s)", time.Duration(r.After), longest)
		}
	}
}

// nowhere warns that the bot works in none of a rule's channels.
func (v *validation) nowhere(at string, c document, r policy.Rule) {
	say := v.add
	if r.Verdict == policy.Allow { // it allows nothing by that
		say = v.warn
	}
	holds := len(r.Channels) == 0
	for i, id := range r.Channels {
		ch, ok := c.Channels[id]
		if !ok {
			say(fmt.Sprintf("%s.channels[%d]", at, i), "the bot does not work in %s, which is not under channels; correct the id, or leave it out", id)
		}
		holds = holds || !ok || len(r.Projects) == 0 || slices.ContainsFunc(ch.all(), func(p string) bool { return slices.Contains(r.Projects, p) })
	}
	if !holds {
		say(at+".channels", "none of these channels works on a project that the rule is for; leave out one of channels and projects")
	}
}

// question is the terms of asked calls, of a rule or by default.
type question struct {
	at, quorumAt, mayAt string // its place, and those of the decisive values
	projects, channels  []string
	terms               policy.Terms
}

// Undecided are the questions that can never be decided given the members of user groups, each with its place.
func (f File) Undecided(members func(group string) []string) []string {
	v := validation{file: f.Name, tree: f.tree}
	v.deciders(f.document, f.Policy, members)
	return slices.DeleteFunc(append(v.wrong, v.doubts...), func(d string) bool { return slices.Contains(f.Doubts, d) })
}

// deciders checks that enough people can decide every question. members is nil if the members of user groups are
// unknown.
func (v *validation) deciders(c document, p *policy.Policy, members func(group string) []string) {
	questions := []question{{at: "$.policy", quorumAt: "$.policy.quorum", mayAt: "$.policy.requester_may_approve", terms: p.Default}}
	for i, r := range p.Rules {
		if r.Verdict != policy.Ask {
			continue
		}
		q := question{at: fmt.Sprintf("$.policy.rules[%d]", i), projects: r.Projects, channels: r.Channels, terms: r.Terms(p.Default)}
		q.quorumAt, q.mayAt = q.at+".quorum", q.at+".requester_may_approve"
		if len(r.Approvers) > 0 || r.Quorum > 0 || r.RequesterMayApprove != nil || len(r.Projects)+len(r.Channels) > 0 {
			questions = append(questions, q) // otherwise it is as the default
		}
	}
	rules := c.access()
	for _, q := range questions {
		for _, place := range places(c, q) {
			if v.decidable(rules, q, place[0], place[1], members) {
				continue
			}
			break // one report is enough
		}
	}
}

// places are where a question may be asked: each channel with its project, and direct messages.
func places(c document, q question) (out [][2]string) {
	for _, id := range sorted(c.Channels) {
		for _, project := range c.Channels[id].all() {
			if (len(q.projects) == 0 || slices.Contains(q.projects, project)) && (len(q.channels) == 0 || slices.Contains(q.channels, id)) {
				out = append(out, [2]string{project, id})
			}
		}
	}
	if d := c.DirectMessages; d != "" && len(q.channels) == 0 && (len(q.projects) == 0 || slices.Contains(q.projects, d)) {
		out = append(out, [2]string{d, ""})
	}
	return out
}

func isGroup(id string) bool { return strings.HasPrefix(id, "S") }

// decidable reports whether a question has no problem in a place.
func (v *validation) decidable(rules access.Rules, q question, project, channel string, members func(group string) []string) bool {
	_, askers := rules.In(project, channel).Members(access.Prompt)
	may := unique(rules.Deciders(access.Terms{Approvers: q.terms.Approvers}, project, channel), members)
	askers = unique(askers, members)
	where := "in direct messages"
	if channel != "" {
		where = "in " + channel
	}
	quorum := max(q.terms.Quorum, 1)
	left := func(asker string) int {
		return len(slices.DeleteFunc(slices.Clone(may), func(m string) bool { return m == asker }))
	}
	switch {
	case slices.ContainsFunc(may, isGroup), len(askers) == 0:
		return true
	case len(may) == 0:
		v.warn(q.at, "nobody may decide about what is asked %s, so it waits until its time is over; name approvers or admins under roles", where)
		return false
	case quorum > len(may):
		v.add(q.quorumAt, "%d people must approve, but %s only %d may decide (%s)", quorum, where, len(may), strings.Join(may, ", "))
		return false
	case q.terms.RequesterMayApprove:
		return true
	}
	stuck := slices.DeleteFunc(slices.Clone(askers), func(a string) bool { return isGroup(a) || left(a) >= quorum })
	switch {
	case len(stuck) == 0:
		return true
	case len(stuck) == len(askers):
		v.add(q.mayAt, "whoever asks for work %s may not decide about it, and of the others not %d may: name more approvers, or let the person who asked decide", where, quorum)
	default:
		v.warn(q.mayAt, "when %s asks for work %s, nobody can approve what it takes: they may not decide about it themselves, and of the others not %d may", strings.Join(stuck, " or "), where, quorum)
	}
	return false
}

// unique are the distinct people of a list, and its groups with unknown members.
func unique(list []string, members func(group string) []string) []string {
	var out []string
	for _, id := range list {
		if isGroup(id) && members != nil {
			out = append(out, members(id)...)
		} else {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
