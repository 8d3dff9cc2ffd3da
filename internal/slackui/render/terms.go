package render

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/agent/policy"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// provenance says why it is asked, and how it is decided.
func (c *card) provenance() {
	c.context(c.grounds(200), joinNonEmpty(" · ", c.deciders(), c.deadline(), c.secondWay()))
}

// origin says who asked, and where it happens. Each part has about most units.
func (c *asking) origin(most int) string {
	var parts []string
	if c.a.RequestedBy != "" {
		parts = append(parts, "asked by "+c.person(c.a.RequestedBy))
	}
	if c.a.Project != "" {
		parts = append(parts, "project "+mrkdwn.CodeWithin(c.o.redact(c.a.Project), min(most, 100)))
	}
	if c.a.Project == "" && c.a.Workspace != "" { // people know a project by its name
		parts = append(parts, "in "+mrkdwn.CodeWithin(c.o.redact(c.a.Workspace), most))
	}
	return strings.Join(parts, " · ")
}

// person names somebody, without a mention if the card does not call them.
func (c *drawing) person(id string) string {
	if c.o.mentions(c.a, id) {
		return mentionAny(id)
	}
	return mrkdwn.EscapeWithin(c.o.Calling.Name(id), 80)
}

// grounds say which rule asks, or which default that is not everybody's, and why, and what
// the CLI's own reason is. A decided call's rule may stand in how it ended instead. Which
// rule would allow it is said where all of a request is shown.
func (c *asking) grounds(most int) string {
	t := c.a.Terms
	if _, isRule := policy.Told(t.Rule); !isRule && (policy.ForRules(t.Because) || c.a.Edited.Times > 0) { // it is of what was asked
		t.Because = ""
	} else if !isRule && strings.HasSuffix(t.Because, " is outside the workspace") && view.Tools[c.a.ToolName].Verb != "" {
		t.Because = "" // the card warns of it, and names the file
	}
	return c.allGrounds(t, most)
}

func (c *asking) allGrounds(t approvals.Terms, most int) string {
	var parts []string
	because := mrkdwn.EscapeWithin(c.o.redact(plaintext.OneLine(t.Because)), most)
	rule, isRule := policy.Told(t.Rule)
	if isRule {
		rule = "rule " + mrkdwn.CodeWithin(c.o.redact(rule), most)
	} else {
		rule = capital(mrkdwn.EscapeWithin(c.o.redact(rule), most))
		if rule != "" && because == "" {
			rule += "."
		}
	}
	if said := joinNonEmpty(": ", rule, because); said != "" {
		parts = append(parts, said)
	}
	if c.a.DecisionReason != "" && !isHost(c.a) {
		parts = append(parts, "Claude Code says: "+mrkdwn.EscapeWithin(c.o.redact(plaintext.OneLine(c.a.DecisionReason)), most))
	}
	return strings.Join(parts, " · ")
}

// deciders say how many have to approve, who has, and who may.
func (c *asking) deciders() string {
	if c.a.Kind == approvals.Question {
		return ""
	}
	t := c.a.Terms
	parts := []string{c.votes()}
	whom := t.Approvers
	if call := c.o.Calling; call != nil {
		whom = slices.DeleteFunc(slices.Clone(call.Mention(c.a)), func(id string) bool { return id == c.a.RequestedBy })
		switch sent := c.sent(); {
		case sent != "":
			parts = append(parts, "Sent to "+sent)
		case call.Direct > 0:
			parts = append(parts, "Sent to "+plural(call.Direct, "person", "people"))
		}
	}
	switch who := mentions(whom, ", "); {
	case who != "" && t.RequesterMay:
		parts = append(parts, "to be decided by "+who)
	case who != "":
		parts = append(parts, "to be decided by "+who+", not by the person who asked")
	case !t.RequesterMay:
		parts = append(parts, "not to be decided by the person who asked")
	}
	return joinNonEmpty(" · ", parts...)
}

// sent are the names of those who have the card as a direct message; empty where they are too
// many to be named, or not known.
func (c *asking) sent() string {
	if c.o.Calling.Sent == nil || c.o.Calling.Direct == 0 {
		return ""
	}
	var names []string
	for _, id := range c.o.Calling.Sent(c.a) {
		name := c.person(id)
		if len(names) == namedMost || strings.HasPrefix(id, "S") || name == id {
			return ""
		}
		names = append(names, name)
	}
	return strings.Join(names, " and ")
}

// whoMay begins a sentence about who decides where names would be too many, or wrong.
const whoMay = "Whoever may approve"

// whoDecides begins a sentence about a pending request that everybody in the thread reads:
// with those who are called, if they are one or two, and one of them is enough.
func (c *asking) whoDecides() string {
	call := c.o.Calling
	if call == nil && c.a.Kind == approvals.Question {
		return "The person who asked"
	}
	if call == nil || c.a.Kind != approvals.Question && c.a.Terms.Quorum > 1 {
		return whoMay
	}
	whom := slices.Clone(call.Mention(c.a))
	if call.Sent != nil {
		whom = append(whom, call.Sent(c.a)...)
	}
	if len(whom) == 0 || len(whom) > namedMost {
		return whoMay
	}
	names := make([]string, len(whom))
	for i, id := range whom {
		if names[i] = c.person(id); names[i] == id { // Slack has not said what they are called
			return whoMay
		}
	}
	return strings.Join(names, " or ")
}

// namedMost is how many people who may decide a notification names.
const namedMost = 2

// allDecide is whoDecides for requests that stand on one card, of which there is one at least.
func (c *card) allDecide(list []*row) string {
	said := ""
	for i, r := range list {
		one := cardOf(r.a, c.o)
		if who := one.whoDecides(); i == 0 {
			said = who
		} else if who != said {
			return whoMay
		}
	}
	return said
}

// votes say how many people have to approve where one is not enough, and who has.
func (c *asking) votes() string {
	voted, quorum := allowers(c.a), c.a.Terms.Quorum
	switch {
	case quorum <= 1:
		return ""
	case len(voted) == 0:
		return "*" + count(quorum) + " people have to approve*"
	}
	return "*" + count(len(voted)) + " of " + count(quorum) + " approved*: " + mentions(voted, ", ")
}

// deadline says until when it can be decided, and what happens then.
func (c *asking) deadline() string {
	if c.a.ExpiresAt.IsZero() {
		return ""
	}
	then := "then work pauses"
	if c.a.Terms.OnTimeout == approvals.TimeoutDeny {
		then = "then it counts as denied"
	}
	return "Expires " + dateTime(c.a.ExpiresAt) + "; " + then
}

// secondWay says how to decide where buttons do not work.
func (c *asking) secondWay() string {
	if c.isCopy() {
		return "" // a reply is heard in the thread alone
	}
	if c.a.Kind == approvals.Question {
		return "or reply " + mrkdwn.Code("deny "+view.Code(c.a)) + " to skip"
	}
	return "or reply " + mrkdwn.Code(approveWords(c.a))
}

// allowers are the people who have approved, in the order in which they did.
func allowers(a approvals.Approval) []string {
	var out []string
	for _, v := range a.Votes {
		if v.Allow {
			out = append(out, v.UserID)
		}
	}
	return out
}

// mentionsMax is how many people a list of them names.
const mentionsMax = 8

// mentions are live mentions of users and user groups, whose ids come from Slack
// or from the configuration.
func mentions(ids []string, sep string) string {
	var out []string
	for i, id := range ids {
		if i == mentionsMax {
			return strings.Join(out, sep) + " and " + count(len(ids)-i) + " more"
		}
		out = append(out, mentionAny(id))
	}
	return strings.Join(out, sep)
}

// mentionAny is mention for users and user groups.
func mentionAny(id string) string {
	if strings.HasPrefix(id, "S") && mrkdwn.IsID(id) {
		return "<!subteam^" + id + ">"
	}
	if !mrkdwn.IsID(id) {
		return mrkdwn.EscapeWithin(id, 40)
	}
	return mrkdwn.Mention(id)
}

// joinAnd joins people as in a sentence.
func joinAnd(ids []string) string {
	if n := len(ids); n > 1 && n <= mentionsMax {
		return mentions(ids[:n-1], ", ") + " and " + mentionAny(ids[n-1])
	}
	return mentions(ids, ", ")
}

// dateTime is a moment with its day in the reader's own time zone, as Slack
// renders it.
func dateTime(t time.Time) string {
	return slackDate(t, "{date_short_pretty} {time}", "2 Jan 2006 15:04 UTC")
}

func slackDate(t time.Time, format, fallback string) string {
	return "<!date^" + strconv.FormatInt(t.Unix(), 10) + "^" + format + "|" + t.UTC().Format(fallback) + ">"
}
