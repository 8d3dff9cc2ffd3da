package render

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/money"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// HomeView is what the app's Home tab shows to one person.
type HomeView struct {
	// BotUser is our own user id.
	BotUser string
	// Refused, when it is not empty, is the sentence that says why this person
	// sees nothing else.
	Refused string
	// Mine is what the person spent: today, this month, last month. Team is what was
	// spent on all that they may use, over the same periods, with notes on what that is;
	// it is empty for people who may see their own only.
	Mine, Team []Spend
	TeamNotes  []string
	// Projects is this month by project, for admins; else nil.
	Projects *report.Answer
	// Threads are the live threads that the person may see, the most recent first.
	Threads []HomeThread
	// Waiting are approvals that this person could decide, the oldest first.
	Waiting []HomeApproval
	// Grants are the standing permissions that this person may see, the latest
	// first, and GrantsMore how many there are besides.
	Grants     []GrantLine
	GrantsMore int
	// Sandboxes are the projects that the person may use, and what shuts their agents in.
	Sandboxes []HomeSandbox
	// Redact takes secrets out of what is asked for and of patterns; nil shows all.
	Redact func(string) string
}

// HomeThread is a live thread.
type HomeThread struct {
	Project   string
	Channel   string // id
	Permalink string // may be empty
	State     string // for people: "working", "waiting for approval"
	StartedBy string // user id
	MicroUSD  int64
}

// HomeSandbox is what a project's sessions are shut in: "bwrap, no network".
type HomeSandbox struct{ Project, InForce string }

// HomeApproval is a pending approval.
type HomeApproval struct {
	Approval  store.Approval
	Permalink string // of the card
}

// homeMax is how many threads and approvals are listed.
const homeMax = 15

// Home renders the Home tab.
func Home(h HomeView) slack.HomeTabViewRequest {
	v := slack.HomeTabViewRequest{Type: slack.VTHomeTab, CallbackID: "home"}
	add := func(b slack.Block) { v.Blocks.BlockSet = append(v.Blocks.BlockSet, b) }
	header := func(text string) { add(slack.NewHeaderBlock(plain(text, headerMax))) }

	if h.Refused != "" {
		header("Deckhand")
		add(section("", mrkdwn.Escape(mrkdwn.Clip(h.Refused, 2000))))
		return v
	}
	if len(h.Waiting) > 0 {
		header("Waiting for a decision")
		for _, w := range h.Waiting[:min(len(h.Waiting), homeMax)] {
			add(section("", w.text(h.Redact)))
		}
		if more := len(h.Waiting) - homeMax; more > 0 {
			add(contextBlock("", "… and "+count(more)+" more"))
		}
	}
	header("What you spent")
	addSpends(add, h.Mine)
	if len(h.Team) > 0 {
		header("What the team spent")
		addSpends(add, h.Team)
		if h.Projects != nil && len(h.Projects.Lines) > 0 {
			add(section("", "*Projects, this month against "+mrkdwn.Escape(h.Projects.Previous.Name)+"*\n"+projectsText(*h.Projects)))
		}
	}
	add(contextBlock("", joinNonEmpty(" ", mrkdwn.Escape(strings.Join(h.TeamNotes, " ")), listPriceNote, "Write "+mrkdwn.Code("costs")+" for more.")))

	header("Live threads")
	if len(h.Threads) == 0 {
		hint := "None right now."
		if mrkdwn.IsID(h.BotUser) {
			hint += " Mention " + mrkdwn.Mention(h.BotUser) + " in a channel to begin one."
		}
		add(section("", hint))
	}
	for _, t := range h.Threads[:min(len(h.Threads), homeMax)] {
		text := "*" + linkTo(t.Permalink, t.Project) + "*"
		if mrkdwn.IsID(t.Channel) {
			text += " in <#" + t.Channel + ">"
		}
		parts := []string{text}
		if t.State != "" {
			parts = append(parts, mrkdwn.Escape(mrkdwn.Clip(t.State, 100)))
		}
		if t.StartedBy != "" {
			parts = append(parts, "by "+mrkdwn.Mention(t.StartedBy))
		}
		parts = append(parts, money.USD(t.MicroUSD))
		add(section("", strings.Join(parts, " · ")))
	}
	if more := len(h.Threads) - homeMax; more > 0 {
		add(contextBlock("", "… and "+count(more)+" more"))
	}
	if len(h.Sandboxes) > 0 {
		header("What shuts the agents in")
		add(section("", sandboxesText(h.Sandboxes)))
	}
	header("What may run without being asked about")
	if len(h.Grants) == 0 && h.GrantsMore <= 0 {
		add(section("", noGrants))
	}
	for i, g := range h.Grants[:min(len(h.Grants), homeMax)] {
		add(grantBlock("grant:"+strconv.Itoa(i)+":"+strconv.FormatInt(g.Grant.ID, 10), g, h.Redact))
	}
	if more := max(0, len(h.Grants)-homeMax) + max(0, h.GrantsMore); more > 0 {
		add(contextBlock("", "… and "+plural(more, "more rule", "more rules")))
	}
	return v
}

// text is what waits, in two lines.
func (w HomeApproval) text(redact func(string) string) string {
	a := w.Approval
	c := card{a: a, o: Options{Redact: redact}}
	where := "its thread"
	if mrkdwn.IsID(a.Thread.ChannelID) {
		where = "<#" + a.Thread.ChannelID + ">"
	}
	open := ""
	if w.Permalink != "" {
		open = " · *" + linkTo(w.Permalink, "Open") + "*"
	}
	since := ""
	if !a.CreatedAt.IsZero() {
		since = "since " + dateTime(a.CreatedAt)
	}
	return joinNonEmpty("\n",
		"✋ "+capital(c.brief(150))+" in "+where+open,
		c.risks(),
		joinNonEmpty(" · ", c.origin(80), since, c.deadline(), c.votes()))
}

// sandboxesText has a line for each project.
func sandboxesText(all []HomeSandbox) string {
	lines := []string{}
	for _, s := range all[:min(len(all), homeMax)] {
		lines = append(lines, "*"+mrkdwn.Escape(mrkdwn.Clip(s.Project, 100))+"* "+mrkdwn.Escape(mrkdwn.Clip(s.InForce, 100)))
	}
	if more := len(all) - homeMax; more > 0 {
		lines = append(lines, "… and "+count(more)+" more")
	}
	return strings.Join(lines, "\n")
}

// addSpends shows periods, and the models of the longest one that is running.
func addSpends(add func(slack.Block), spends []Spend) {
	if len(spends) == 0 {
		return
	}
	add(spendSection(spends))
	add(modelsContext(spends[min(1, len(spends)-1)]))
}

// linkTo links a label to one of Slack's own permalinks.
func linkTo(permalink, label string) string {
	if label == "" {
		label = "a thread"
	}
	return mrkdwn.Link(permalink, mrkdwn.Clip(label, 100))
}
