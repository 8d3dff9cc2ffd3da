package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/ledger"
)

// homeAdminMost is how many budgets, and how many deciders, are listed.
const homeAdminMost = 8

func addAdmin(a *view.HomeAdmin, add func(slack.Block)) {
	if len(a.Health) > 0 {
		add(section("", joinNonEmpty("\n", "*Health*: "+mrkdwn.EscapeWithin(a.Health[0], 200), bullets(escapeAll(a.Health[1:])))))
	}
	if n := len(a.Unwritten); n > 0 {
		lines := a.Unwritten[:min(n, homeAdminMost)]
		if n > homeAdminMost {
			lines = append(slices.Clone(lines), "… and "+count(n-homeAdminMost)+" more, which bot doctor lists")
		}
		add(section("", joinNonEmpty("\n", "*Channels that deckhand.yaml does not have as they are*", bullets(lines))))
	}
	load := "*Requests*: none waits."
	if a.Pending > 0 {
		load = "*Requests*: " + plural(a.Pending, "waits", "wait")
		if !a.Oldest.IsZero() {
			load += ", the oldest since " + dateTime(a.Oldest)
		}
		load += "."
	}
	var lines []string
	for _, d := range a.Deciders[:min(len(a.Deciders), homeAdminMost)] {
		lines = append(lines, mentionAny(d.Name)+" decided "+count(int(d.Allowed+d.Denied))+", half of them within "+span(d.Median)+"; "+quick(d)+" within two seconds")
	}
	if len(lines) > 0 {
		load += " In the last " + strconv.Itoa(a.Days) + " days:"
	}
	add(section("", joinNonEmpty("\n", load, bullets(lines))))
	lines = nil
	for _, b := range a.Budgets {
		name := budgetName(b.Status)
		if b.Scope == ledger.BudgetThread {
			name = strings.TrimSuffix(name, "this thread") + linkTo(b.Thread, "a thread")
		}
		lines = append(lines, name+": "+money.Spent(b.SpentMicroUSD, b.LimitMicroUSD)+" of "+money.USD(b.LimitMicroUSD)+" ("+strconv.FormatInt(b.Share(), 10)+" %)")
	}
	if len(lines) > 0 {
		add(section("", joinNonEmpty("\n", "*Budgets*", bullets(firstOf(lines, homeAdminMost, "… and ")))))
	}
}

func bullets(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "• " + strings.Join(lines, "\n• ")
}
