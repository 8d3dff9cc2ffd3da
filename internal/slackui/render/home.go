package render

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// text says in three steps how to begin.
func newcomerText(n view.HomeNewcomer, botUser string) string {
	me := "@Deckhand"
	if mrkdwn.IsID(botUser) {
		me = mrkdwn.Mention(botUser)
	}
	var places []string
	for _, c := range n.Channels {
		if mrkdwn.IsID(c) {
			places = append(places, "<#"+c+">")
		}
	}
	where := "a channel that Deckhand works in"
	if len(places) > 0 {
		where = strings.Join(places, " or ")
	}
	if n.Direct {
		where += ", or to *Messages* above"
	}
	return strings.Join([]string{
		"1. Go to " + where + ".",
		"2. Write what you want done, for example: " + me + " find out why the tests fail, and fix them.",
		"3. Deckhand answers in a thread. Reply there to go on; write " + mrkdwn.Code("stop") + " to stop.",
		"Deckhand asks before it does what your team's policy does not allow. Write " + mrkdwn.Code("help") + " for more.",
	}, "\n")
}

// homeMax is how many projects and grants are listed.
const homeMax = 15

// Home renders the Home tab.
func Home(h view.Home) slack.HomeTabViewRequest {
	v := slack.HomeTabViewRequest{Type: slack.VTHomeTab, CallbackID: "home"}
	add := func(b slack.Block) { v.Blocks.BlockSet = append(v.Blocks.BlockSet, b) }
	header := func(text string) { add(slack.NewHeaderBlock(plain(text, headerMax))) }

	if h.Refused != "" {
		header("Deckhand")
		add(section("", mrkdwn.Escape(plaintext.Clip(h.Refused, 2000))))
		return v
	}
	v.PrivateMetadata = h.Choice.String()
	if h.Newcomer != nil {
		header("How to begin")
		add(section("", newcomerText(*h.Newcomer, h.BotUser)))
	}
	header("Waiting for you")
	addWaiting(h, add)
	header("Threads")
	addThreads(h, add)
	header("What you spent")
	addSpends(add, h.Mine)
	if len(h.MyBudgets) > 0 {
		add(section("", mrkdwn.Escape(strings.Join(h.MyBudgets, "\n"))))
	}
	if len(h.Team) > 0 {
		header("What the team spent")
		addSpends(add, h.Team)
		if h.Projects != nil && len(h.Projects.Lines) > 0 {
			add(section("", "*Projects, this month against "+mrkdwn.Escape(h.Projects.Previous.Name)+"*\n"+projectsText(*h.Projects)))
		}
	}
	add(contextBlock("", joinNonEmpty(" ", mrkdwn.Escape(strings.Join(h.TeamNotes, " ")), listPriceNote, "Write "+mrkdwn.Code("costs")+" for more.")))

	header("Runs without asking")
	if len(h.Grants) == 0 && h.GrantsMore <= 0 {
		add(section("", noGrants("")))
	}
	for i, g := range h.Grants[:min(len(h.Grants), homeMax)] {
		add(grantBlock("grant:"+strconv.Itoa(i)+":"+strconv.FormatInt(g.Grant.ID, 10), g, h.Redact))
	}
	if more := max(0, len(h.Grants)-homeMax) + max(0, h.GrantsMore); more > 0 {
		add(contextBlock("", "… and "+plural(more, "more rule", "more rules")+". Write "+mrkdwn.Code("grants")+" in a thread for those that hold there."))
	}
	if len(h.Accounts) > 0 {
		header("Your accounts")
		for _, a := range h.Accounts[:min(len(h.Accounts), accountsMost)] {
			for _, b := range accountBlocks(a) {
				add(b)
			}
		}
	}
	if len(h.Sandboxes) > 0 {
		header("Sandbox")
		add(section("", sandboxesText(h.Sandboxes)))
	}
	if h.Admin != nil {
		header("For admins")
		addAdmin(h.Admin, add)
	}
	return v
}

// sandboxesText has a line for each project.
func sandboxesText(all []view.HomeSandbox) string {
	lines := []string{}
	for _, s := range all {
		lines = append(lines, "*"+mrkdwn.Escape(plaintext.Clip(s.Project, 100))+"* "+mrkdwn.Escape(plaintext.Clip(s.InForce, 100)))
	}
	return strings.Join(firstOf(lines, homeMax, "… and "), "\n")
}

// addSpends shows periods, and the models of the longest one that is running.
func addSpends(add func(slack.Block), spends []view.Spend) {
	if len(spends) == 0 {
		return
	}
	add(spendSection(spends))
	add(modelsContext(spends[min(1, len(spends)-1)]))
}

// linkTo links a label to one of Slack's own permalinks.
func linkTo(permalink, label string) string {
	return mrkdwn.Link(permalink, plaintext.Clip(cmp.Or(label, "a thread"), 100))
}
