package view

import (
	"math"
	"time"

	"deckhand/internal/agent/spend"
	"deckhand/internal/report"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/ledger"
)

// Home is what the app's Home tab shows to one person.
type Home struct {
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
	// MyBudgets are sentences on the person's own budgets.
	MyBudgets []string
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
	// Accounts are the forges and MCP servers at which the person can connect an account, or has.
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

// HomeSandbox is what a project's sessions are shut in: "bwrap, no network".
type HomeSandbox struct{ Project, InForce string }

// HomeAdmin is the part of the tab that admins see.
type HomeAdmin struct {
	// Health says in sentences how the bot is, the first in a word or two.
	Health []string
	// Unwritten say where channels that were set up in the chat differ from deckhand.yaml, mrkdwn.
	Unwritten []string
	// Budgets are those in their present period, the nearest to its limit first.
	Budgets []HomeBudget
	// Pending is how many requests wait in the whole team, and Oldest since when.
	Pending int
	Oldest  time.Time
	// Deciders are who decided how much in the last days, the busiest first.
	Deciders []approvals.Stats
	Days     int
}

// HomeBudget is a budget and what was spent of it.
type HomeBudget struct {
	spend.Status
	Thread string // the address of a thread whose budget it is
}

// Share is how much of it was spent, in percent; 100 only once all of it is.
func (b HomeBudget) Share() int64 {
	if b.LimitMicroUSD <= 0 {
		return 100
	}
	share := int64(math.Round(min(100*float64(b.SpentMicroUSD)/float64(b.LimitMicroUSD), 9999)))
	if b.SpentMicroUSD < b.LimitMicroUSD {
		share = min(share, 99)
	}
	return share
}

// Spend is what was spent within a scope and a period, as the ledger has it.
type Spend struct {
	// Period says from when on, for people: "today", "this month".
	Period string
	Total  report.Line
	// Models are the ledger's sums, dearest first.
	Models []ledger.CostLine
}

// HomeApproval is a pending approval.
type HomeApproval struct {
	Approval  approvals.Approval
	Title     string // of its thread; empty where the person may not read it
	Permalink string // of the card
}
