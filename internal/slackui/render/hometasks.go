package render

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/threads"
)

func addThreads(h view.Home, add func(slack.Block)) {
	add(slack.NewActionBlock("home:choice", homeMenus(h)...))
	if len(h.Threads) == 0 {
		add(section("", noThreads(h)))
	}
	for _, t := range h.Threads[:min(len(h.Threads), view.HomePage)] {
		add(section("", homeThread(t).text()))
	}
	var turn []slack.BlockElement
	if h.Choice.Page > 0 {
		turn = append(turn, button(view.ActionHomeLater, "later", "Later threads", ""))
	}
	if h.More && h.Choice.Page < view.HomePages-1 {
		turn = append(turn, button(view.ActionHomeEarlier, "earlier", "Earlier threads", ""))
	}
	if len(turn) > 0 {
		add(contextBlock("", "Page "+count(h.Choice.Page+1)))
		add(slack.NewActionBlock("home:page", turn...))
	}
}

func noThreads(h view.Home) string {
	switch {
	case h.Choice.Page > 0:
		return "There are no earlier threads."
	case h.Choice.State != "" || h.Choice.Project != "":
		return "No thread matches this choice."
	}
	return "No threads yet."
}

// menus narrow the list. What is chosen stands in them.
func homeMenus(h view.Home) []slack.BlockElement {
	menu := func(action, label, chosen string, options ...*slack.OptionBlockObject) slack.BlockElement {
		m := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain(label, 150), action, options...)
		m.InitialOption = options[0]
		for _, o := range options {
			if o.Value == chosen {
				m.InitialOption = o
			}
		}
		return m
	}
	option := func(value, label string) *slack.OptionBlockObject {
		return slack.NewOptionBlockObject(value, plain(label, optionMax), nil)
	}
	whose := view.HomeAny
	if h.Choice.All {
		whose = view.HomeWhoseAll
	}
	states := []*slack.OptionBlockObject{option(view.HomeAny, "In any state")}
	for _, s := range view.HomeStates {
		states = append(states, option(s.Key, s.Label))
	}
	out := []slack.BlockElement{
		menu(view.ActionHomeWhose, "Whose threads", whose, option(view.HomeAny, "Mine"), option(view.HomeWhoseAll, "All that I may see")),
		menu(view.ActionHomeState, "State", h.Choice.State, states...),
	}
	named := slices.DeleteFunc(slices.Clone(h.Named), func(p string) bool { return p == view.HomeAny || len(p) > view.OptionValueMax })
	if named = named[:min(len(named), view.HomeProjectsListed)]; h.Choice.Project != "" && !slices.Contains(named, h.Choice.Project) {
		named = append(named, h.Choice.Project)
	}
	if len(named) < 2 && h.Choice.Project == "" {
		return out
	}
	projects := []*slack.OptionBlockObject{option(view.HomeAny, "In any project")}
	for _, p := range named {
		projects = append(projects, option(p, plaintext.Visible(p)))
	}
	return append(out, menu(view.ActionHomeProject, "Project", h.Choice.Project, projects...))
}

// homeThread is a thread as the tab says it.
type homeThread view.HomeThread

// text is the thread in two lines: what it is about, and whose turn it is, where, since
// when and at what cost.
func (t homeThread) text() string {
	parts := []string{t.turn()}
	if mrkdwn.IsID(t.Channel) {
		where := "<#" + t.Channel + ">"
		if access.IsDirect(t.Channel) {
			where = "a direct message"
		}
		parts = append(parts, "in "+where)
	}
	parts = append(parts, "project "+mrkdwn.CodeWithin(t.Project, 80))
	if t.StartedBy != "" {
		parts = append(parts, "by "+mrkdwn.Mention(t.StartedBy))
	}
	parts = append(parts, "opened "+dateTime(t.Since))
	if t.Active.Sub(t.Since) > time.Minute {
		parts = append(parts, "last message "+dateTime(t.Active))
	}
	if t.MicroUSD >= 0 {
		parts = append(parts, money.USD(t.MicroUSD))
	}
	return "*" + linkTo(t.Permalink, cmp.Or(t.Title, "A task in "+t.Project)) + "*\n" + strings.Join(parts, " · ")
}

// turn says whose turn it is. Nothing goes on in the person's own thread without them.
func (t homeThread) turn() string {
	switch who := mentions(t.Whom, ", "); {
	case t.State == threads.ThreadWaits && t.Yours:
		return "✋ *waits for you*"
	case t.State == threads.ThreadWaits && who != "":
		return "✋ waits for " + who
	case t.StartedBy == "" && (t.State == threads.ThreadDone || t.State == threads.ThreadStopped):
		return threadTurns[t.State] + " · reply to continue"
	}
	return cmp.Or(threadTurns[t.State], mrkdwn.EscapeWithin(string(t.State), 40))
}

var threadTurns = map[threads.State]string{
	threads.ThreadWaits:   "✋ waits for a decision",
	threads.ThreadBudget:  "💸 waits for a budget, which an admin can raise",
	threads.ThreadSpent:   "💸 stopped by a budget · press *Continue* in the thread",
	threads.ThreadWorks:   "⏳ Deckhand works",
	threads.ThreadQueued:  "🕒 waits for its turn",
	threads.ThreadDone:    "✅ answered",
	threads.ThreadStopped: "⏹️ stopped",
	threads.ThreadFailed:  "⚠️ ended with an error · the thread shows it",
	threads.ThreadNew:     "🕒 not started",
}
