package render

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/report"
	"deckhand/internal/slackui/render/mrkdwn"
)

// HomeView is what the app's Home tab shows to one person.
type HomeView struct {
	// BotUser is our own user id.
	BotUser string
	// Refused, when it is not empty, is the sentence that says why this person
	// sees nothing else.
	Refused string
	// Choice is what the person chose to see; it is the tab's private metadata.
	Choice HomeChoice
	// Mine is what the person spent: today, this month, last month. Team is what was
	// spent on all that they may use, over the same periods, with notes on what that is;
	// it is empty for people who may see their own only.
	Mine, Team []Spend
	TeamNotes  []string
	// Projects is this month by project, for admins; else nil.
	Projects *report.Answer
	// Newcomer says how to begin; nil for people who have threads.
	Newcomer *HomeNewcomer
	// Threads are a page of the threads that the person chose, the most recent first, and
	// More whether others follow. Named are the projects that there are to choose from.
	Threads []HomeThread
	More    bool
	Named   []string
	// Waiting are approvals that this person could decide, the oldest first.
	Waiting []HomeApproval
	// Grants are the standing permissions that this person may see, the latest
	// first, and GrantsMore how many there are besides.
	Grants     []GrantLine
	GrantsMore int
	// Accounts are the forges at which the person can connect an account, or has.
	Accounts []Account
	// Sandboxes are the projects that the person may use, and what shuts their agents in.
	Sandboxes []HomeSandbox
	// Admin is for the team's admins; else nil.
	Admin *HomeAdmin
	// Redact takes secrets out of what is asked for and of patterns; nil shows all.
	Redact func(string) string
}

// HomeNewcomer is where somebody without threads can begin one: channels, by id, and the
// direct messages with the bot.
type HomeNewcomer struct {
	Channels []string
	Direct   bool
}

// text says in three steps how to begin.
func (n HomeNewcomer) text(botUser string) string {
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

// HomeSandbox is what a project's sessions are shut in: "bwrap, no network".
type HomeSandbox struct{ Project, InForce string }

// homeMax is how many projects and grants are listed.
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
	v.PrivateMetadata = h.Choice.String()
	if h.Newcomer != nil {
		header("How to begin")
		add(section("", h.Newcomer.text(h.BotUser)))
	}
	header("Waiting for you")
	h.addWaiting(add)
	header("Threads")
	h.addThreads(add)
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

	header("Runs without asking")
	if len(h.Grants) == 0 && h.GrantsMore <= 0 {
		add(section("", noGrants))
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
		h.Admin.add(add)
	}
	return v
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
