package render

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/money"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// HomeThread is a thread on the tab.
type HomeThread struct {
	Title     string // plain, without secrets; empty: the project's name stands for it
	Project   string
	Channel   string // id
	Permalink string // may be empty
	State     store.ThreadState
	// Yours is true if it waits for this person's decision, else Whom are those whom it
	// waits for: users and user groups.
	Yours     bool
	Whom      []string
	StartedBy string    // user id; empty for the person's own
	Since     time.Time // when it was opened
	Active    time.Time // when somebody wrote last
	// MicroUSD is what it has cost; negative where the person may not see that.
	MicroUSD int64
}

// HomePage is how many threads are on a page of the tab.
const HomePage = 10

// homePages bounds the pages.
const homePages = 100

// HomeChoice is which threads a person chose to see. The zero value is all of their own.
type HomeChoice struct {
	All     bool   `json:"all,omitempty"`     // everybody's, as far as the person may see them
	State   string `json:"state,omitempty"`   // a key of homeStates; empty for all
	Project string `json:"project,omitempty"` // empty for all
	Page    int    `json:"page,omitempty"`    // from 0
}

func (c HomeChoice) String() string { return encodedJSON(c) }

// ParseHomeChoice reads a tab's private metadata. What it does not understand is the zero
// value.
func ParseHomeChoice(metadata string) HomeChoice {
	var c HomeChoice
	if json.Unmarshal([]byte(metadata), &c) != nil || c.Page < 0 || c.Page >= homePages || len(c.Project) > optionValueMax ||
		c.State != "" && c.States() == nil {
		return HomeChoice{}
	}
	return c
}

// States are those of the threads that are chosen; nil for all.
func (c HomeChoice) States() []store.ThreadState {
	for _, s := range homeStates {
		if s.key == c.State {
			return s.states
		}
	}
	return nil
}

// homeStates are what threads can be narrowed to.
var homeStates = []struct {
	key, label string
	states     []store.ThreadState
}{
	{"waits", "Waiting for people", []store.ThreadState{store.ThreadWaits, store.ThreadBudget, store.ThreadSpent}},
	{"works", "Working", []store.ThreadState{store.ThreadWorks, store.ThreadQueued}},
	{"over", "Answered or ended", []store.ThreadState{store.ThreadDone, store.ThreadStopped, store.ThreadFailed, store.ThreadNew}},
}

// The tab's menus and buttons.
const (
	ActionHomeWhose    = "home_whose"
	ActionHomeState    = "home_state"
	ActionHomeProject  = "home_project"
	ActionHomeEarlier  = "home_earlier"
	ActionHomeLater    = "home_later"
	homeAny            = "any" // the value of an option that narrows nothing
	homeWhoseAll       = "all"
	homeProjectsListed = 95
)

// Choose is the choice after a menu or a button of the tab was used; value is the chosen
// option's. false for what is none of them.
func (c HomeChoice) Choose(action, value string) (HomeChoice, bool) {
	if value == homeAny {
		value = ""
	}
	next := c
	next.Page = 0
	switch action {
	case ActionHomeWhose:
		next.All = value == homeWhoseAll
	case ActionHomeState:
		next.State = value
	case ActionHomeProject:
		next.Project = value
	case ActionHomeEarlier:
		next.Page = min(c.Page+1, homePages-1)
	case ActionHomeLater:
		next.Page = max(c.Page-1, 0)
	default:
		return c, false
	}
	return ParseHomeChoice(next.String()), true
}

func (h HomeView) addThreads(add func(slack.Block)) {
	add(slack.NewActionBlock("home:choice", h.menus()...))
	if len(h.Threads) == 0 {
		add(section("", h.noThreads()))
	}
	for _, t := range h.Threads[:min(len(h.Threads), HomePage)] {
		add(section("", t.text()))
	}
	var turn []slack.BlockElement
	if h.Choice.Page > 0 {
		turn = append(turn, button(ActionHomeLater, "later", "Later threads", ""))
	}
	if h.More && h.Choice.Page < homePages-1 {
		turn = append(turn, button(ActionHomeEarlier, "earlier", "Earlier threads", ""))
	}
	if len(turn) > 0 {
		add(contextBlock("", "Page "+count(h.Choice.Page+1)))
		add(slack.NewActionBlock("home:page", turn...))
	}
}

func (h HomeView) noThreads() string {
	switch {
	case h.Choice.Page > 0:
		return "There are no earlier threads."
	case h.Choice.State != "" || h.Choice.Project != "":
		return "No thread matches this choice."
	}
	return "No threads yet."
}

// menus narrow the list. What is chosen stands in them.
func (h HomeView) menus() []slack.BlockElement {
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
	whose := homeAny
	if h.Choice.All {
		whose = homeWhoseAll
	}
	states := []*slack.OptionBlockObject{option(homeAny, "In any state")}
	for _, s := range homeStates {
		states = append(states, option(s.key, s.label))
	}
	out := []slack.BlockElement{
		menu(ActionHomeWhose, "Whose threads", whose, option(homeAny, "Mine"), option(homeWhoseAll, "All that I may see")),
		menu(ActionHomeState, "State", h.Choice.State, states...),
	}
	named := slices.DeleteFunc(slices.Clone(h.Named), func(p string) bool { return p == homeAny || len(p) > optionValueMax })
	if named = named[:min(len(named), homeProjectsListed)]; h.Choice.Project != "" && !slices.Contains(named, h.Choice.Project) {
		named = append(named, h.Choice.Project)
	}
	if len(named) < 2 && h.Choice.Project == "" {
		return out
	}
	projects := []*slack.OptionBlockObject{option(homeAny, "In any project")}
	for _, p := range named {
		projects = append(projects, option(p, mrkdwn.Visible(p)))
	}
	return append(out, menu(ActionHomeProject, "Project", h.Choice.Project, projects...))
}

// text is the thread in two lines: what it is about, and whose turn it is, where, since
// when and at what cost.
func (t HomeThread) text() string {
	title := t.Title
	if title == "" {
		title = "A task in " + t.Project
	}
	parts := []string{t.turn()}
	if mrkdwn.IsID(t.Channel) {
		where := "<#" + t.Channel + ">"
		if strings.HasPrefix(t.Channel, "D") {
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
	return "*" + linkTo(t.Permalink, title) + "*\n" + strings.Join(parts, " · ")
}

// next says of the person's own thread that nothing goes on there without them.
func (t HomeThread) next() string {
	if t.StartedBy != "" {
		return ""
	}
	return " · reply to continue"
}

// turn says whose turn it is.
func (t HomeThread) turn() string {
	switch t.State {
	case store.ThreadWaits:
		switch who := mentions(t.Whom, ", "); {
		case t.Yours:
			return "✋ *waits for you*"
		case who != "":
			return "✋ waits for " + who
		}
		return "✋ waits for a decision"
	case store.ThreadBudget:
		return "💸 waits for a budget, which an admin can raise"
	case store.ThreadSpent:
		return "💸 stopped by a budget · press *Continue* in the thread"
	case store.ThreadWorks:
		return "⏳ Deckhand works"
	case store.ThreadQueued:
		return "🕒 waits for its turn"
	case store.ThreadDone:
		return "✅ answered" + t.next()
	case store.ThreadStopped:
		return "⏹️ stopped" + t.next()
	case store.ThreadFailed:
		return "⚠️ ended with an error · the thread shows it"
	case store.ThreadNew:
		return "🕒 not started"
	}
	return mrkdwn.EscapeWithin(string(t.State), 40)
}
