package render_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

func spendOf(period string, n int) view.Spend {
	lines := []ledger.CostLine{
		{Key: "claude-sonnet-4-5-20250929", Turns: 12, Input: 1234, Output: 45_678, CacheRead: 12_345_678, CacheWrite5m: 999_960, MicroUSD: 1_234_567},
		{Key: "claude-haiku-4-5-20251001", Turns: 3, Input: 10, Output: 20, MicroUSD: 42, EstimatedMicroUSD: 42},
	}
	for i := len(lines); i < n; i++ {
		lines = append(lines, ledger.CostLine{Key: fmt.Sprint("model-", i), Turns: 1, MicroUSD: 100})
	}
	s := view.Spend{Period: period, Models: lines[:n]}
	for _, l := range s.Models {
		s.Total.MicroUSD += l.MicroUSD
		s.Total.EstimatedMicroUSD += l.EstimatedMicroUSD
	}
	return s
}

func TestHome(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	spends := func(today, month, last int) []view.Spend {
		return []view.Spend{spendOf("today", today), spendOf("this month", month), spendOf("last month", last)}
	}
	projects := costAnswer(t, "this month by project", ledger.ByProject, numbered("project-", 30)...)
	full := view.Home{
		BotUser: bot,
		Mine:    spends(1, 2, 1), MyBudgets: []string{"Your budget for today: $1.10 of $2.00"}, Team: spends(2, 30, 2), Projects: &projects,
	}
	at := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	states := []threads.State{
		threads.ThreadWaits, threads.ThreadWorks, threads.ThreadQueued, threads.ThreadBudget, threads.ThreadSpent, threads.ThreadDone, threads.ThreadStopped, threads.ThreadFailed, threads.ThreadNew,
	}
	for i := range 40 {
		th := view.HomeThread{
			Title: "fix <!channel> & *the* test", Project: "app <x|y>", Channel: "C0DEV", Permalink: "https://example.slack.com/archives/C1/p1?a=1&b=2",
			State: states[i%len(states)], Since: at, Active: at.Add(time.Duration(i) * time.Hour), MicroUSD: int64(i) * 1000,
		}
		if i%3 == 1 {
			th.StartedBy, th.MicroUSD, th.Title = asker, -1, ""
		}
		if i%9 == 0 {
			th.Yours, th.Whom = i == 0, []string{approver}
		}
		full.Threads = append(full.Threads, th)
		full.Named = append(full.Named, fmt.Sprint("project-", i))
		w := view.HomeApproval{Approval: ask("Bash", `{"command":"go test ./..."}`), Permalink: "https://example.slack.com/x", Title: "fix the test"}
		w.Approval.ID += strconv.Itoa(i)
		full.Waiting = append(full.Waiting, w)
	}
	full.More, full.Choice = true, view.HomeChoice{All: true, State: "waits", Project: "project-3", Page: 2}
	full.Admin = &view.HomeAdmin{
		Health: []string{"degraded, version 1.0, 3 sessions here", "jobs: this replica reminds nobody. What helps: see the <log>."},
		Budgets: []view.HomeBudget{
			homeBudget(ledger.BudgetWorkspace, "", ledger.BudgetMonthly, 12_340_000, 100_000_000), homeBudget(ledger.BudgetChannel, "C0DEV", ledger.BudgetDaily, 7, 0),
			homeBudget(ledger.BudgetPerson, "U0ASKER", ledger.BudgetDaily, 1_000_000, 2_000_000), homeBudget(ledger.BudgetThread, "7", ledger.BudgetWeekly, 1_000_000, 4_000_000),
			homeBudget(ledger.BudgetProject, "app", ledger.BudgetDaily, 299_900, 300_000), homeBudget(ledger.BudgetProject, "web", ledger.BudgetDaily, 2_710_000, 25_000_000),
		},
		Pending: 41, Oldest: at, Days: 7,
		Deciders: []approvals.Stats{{Name: approver, Asked: 12, Allowed: 10, Denied: 2, Quick: 1, Median: 40 * time.Second}},
	}
	long := ask("Bash", `{"command":"echo `+strings.Repeat("long ", 2000)+`","run_in_background":true}`)
	long.ID += "L"
	asked := question(`{"questions":[{"question":"Which one?","header":"One","options":[{"label":"A","description":"the first"},{"label":"B","description":"the second"}]}]}`)
	dangerous := ask("Bash", `{"command":"rm -rf build"}`)
	asked.ID, dangerous.ID, dangerous.Terms.Dangerous = asked.ID+"Q", dangerous.ID+"D", true
	for name, h := range map[string]view.Home{
		"home few":     {BotUser: bot, Waiting: []view.HomeApproval{{Approval: long}, {Approval: asked}, {Approval: plan("1. look\n2. mend")}, {Approval: dangerous}}, Grants: append(grantLines(2), hostileGrant()), Threads: full.Threads[:1]},
		"home":         full,
		"home empty":   {BotUser: bot, Newcomer: &view.HomeNewcomer{Channels: []string{"C0DEV", "C0WEB"}, Direct: true}, Mine: spends(0, 0, 0), Team: spends(0, 0, 0), TeamNotes: []string{"These are the projects that you may use."}},
		"home refused": {Refused: "You have no role here. Ask an admin."},
	} {
		v := render.Home(h)
		golden(t, "view/"+strings.ReplaceAll(name, " ", "_"), v)
		for _, problem := range checkView(v.Blocks.BlockSet) {
			t.Errorf("%s: %s", name, problem)
		}
		j.home(t, v)
	}
}

// TestHomeOfAChangedTool: on the tab, which has no room for both texts, nobody agrees to a tool that
// is told of otherwise; the window shows both in full.
func TestHomeOfAChangedTool(t *testing.T) {
	t.Parallel()
	a := ask("mcp__shelf__look", `{"at":"top"}`)
	endless := strings.Repeat("so ", 3000)
	a.ToolSHA256 = approvals.Sum{1}
	a.ToolChange = &approvals.ToolChange{
		Before: approvals.ToolText{Description: endless + "it looks.", Schema: `{"before":1}`},
		Now:    approvals.ToolText{Description: endless + "it reads secrets.", Schema: `{"now":1}`},
	}
	tab := string(asJSON(t, render.Home(view.Home{BotUser: bot, Waiting: []view.HomeApproval{{Approval: a, Permalink: "https://example.slack.com/x"}}})))
	for part, want := range map[string]bool{
		`"` + view.ActionApprove + `"`: false, view.ActionAlways: false, `"` + view.ActionViewInput + `"`: true,
		"is not what was allowed": true, "https://example.slack.com/x": true,
	} {
		if strings.Contains(tab, part) != want {
			t.Errorf("that the tab has %s is %t: %s", part, !want, tab)
		}
	}
	v := render.ApprovalInput(a, 0, render.Options{})
	whole := fmt.Sprint(texts(v.Blocks.BlockSet))
	for _, part := range []string{"was told", "it looks.", `{"before":1}`, "is told of this tool now", "it reads secrets.", `{"now":1}`, "top"} {
		if !strings.Contains(whole, part) {
			t.Errorf("the window lacks %s", part)
		}
	}
	for _, problem := range checkModal(v) {
		t.Error(problem)
	}
	if card := string(asJSON(t, render.Card([]approvals.Approval{a}, render.Options{}))); strings.Contains(card, "asked each time") || !strings.Contains(card, `"`+view.ActionApprove+`"`) {
		t.Errorf("the card: %s", card)
	}
	a.ToolSHA256 = approvals.Sum{}
	if card := string(asJSON(t, render.Card([]approvals.Approval{a}, render.Options{}))); !strings.Contains(card, "asked each time") {
		t.Errorf("the card of what is not known: %s", card)
	}
}

func TestSentencesAndHelp(t *testing.T) {
	t.Parallel()
	help := []view.HelpLine{
		{Say: []string{"stop"}, Means: "interrupt what runs"},
		{Say: []string{"costs", "costs last month by project", "costs today with csv"}, Means: "what was spent"},
	}
	j := newJudge(t)
	for name, p := range map[string]render.Page{
		"help":             render.Help(view.Help{BotUser: bot, Complaint: "“<!here> costs” is nothing that I know.", Lines: help}),
		"help nobody":      render.Help(view.Help{Lines: help}),
		"sentence":         render.Sentence("You may not approve here, <@U123>. Ask <!channel> & @here *now*."),
		"sentence empty":   render.Sentence("  "),
		"sentence endless": render.Sentence(strings.Repeat("<&>", 3000)),
	} {
		golden(t, "view/"+strings.ReplaceAll(name, " ", "_"), p)
		for _, problem := range checkPage(p) {
			t.Errorf("%s: %s", name, problem)
		}
		j.page(t, p)
	}
}

func TestModelName(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"claude-sonnet-4-5-20250929":     "sonnet 4.5",
		"claude-opus-4-1":                "opus 4.1",
		"claude-3-5-haiku-20241022":      "haiku 3.5",
		"claude-sonnet-4-5-20250929[1m]": "sonnet 4.5 [1m]",
		"scripted-1":                     "scripted-1",
		"":                               "",
		"claude-":                        "claude-",
	} {
		if got := render.ModelName(id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 40 * time.Millisecond: "0 s", 420 * time.Millisecond: "0.4 s", 12_700 * time.Millisecond: "12 s",
		185 * time.Second: "3 min 5 s", time.Hour: "1 h", 62 * time.Minute: "1 h 2 min", 9960 * time.Millisecond: "10 s",
	} {
		if got := render.Span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}

// Who is mentioned in a message that is asked about has a name; nothing else in it is live.
func TestAMessageThatIsAskedAboutNamesPeople(t *testing.T) {
	t.Parallel()
	m := render.Ask(view.Ask{
		Place:  view.AskPlace{Channel: "C0ENG", Thread: "1.2", TS: "1.2"},
		Author: "U0LINUS", Text: "<@U0GRACE> and <@W0ADA|ada>: see <!channel>, <@x>", Project: "app",
	})
	if said := texts(m.Blocks.BlockSet); !strings.Contains(said, "<@U0GRACE> and <@W0ADA>: see") || strings.Contains(said, "<!") || strings.Contains(said, "<@x") {
		t.Error(said)
	}
}

func homeBudget(scope ledger.BudgetScope, key string, period ledger.BudgetPeriod, spent, limit int64) view.HomeBudget {
	b := view.HomeBudget{Thread: "https://team.slack.com/archives/C0DEV/p1"}
	b.Scope, b.Key, b.Period, b.SpentMicroUSD, b.LimitMicroUSD = scope, key, period, spent, limit
	return b
}
