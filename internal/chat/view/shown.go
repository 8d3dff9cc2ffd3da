package view

import (
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/turns"
)

// Page is what people are told in a message: one of the types with a method page.
type Page interface{ page() }

// Form is what a window has, to be read or filled in: one of the types with a method form.
type Form interface{ form() }

// Sentence is plain words, for example an error that somebody should read. Nothing in it is
// markup.
type Sentence string

// AskBack asks a person what they meant: a sentence, a button for each command that it may have
// been, and one that gives the message with that ts to the model, unless it is empty.
type AskBack struct {
	Sentence string
	Choices  []Choice
	TS       string
}

// PickProject asks a message's author which project it is for.
type PickProject struct {
	User, TS string
	Projects []string
}

// ApprovalsReport is how long people waited for decisions, and how they were made.
type ApprovalsReport struct {
	Period string
	Report approvals.Report
}

// Accounts is what a person is told, in private, of their accounts.
type Accounts []Account

// ThreadSessions are the sessions that a thread had, the newest first.
type ThreadSessions []turns.PastSession

// MCPServers is how a thread's MCP servers are, with buttons below.
type MCPServers struct {
	Names   []string
	Now     inbox.Steering
	Buttons []Choice
}

// Forked is the first message of a thread that has another one's conversation, which has a title
// and an address; either may be empty.
type Forked struct{ Name, Title, Address string }

// ForkedHere says in a thread where the one is that was forked from it.
type ForkedHere struct{ Name, Address string }

// Asked shows who has asked for what in a form.
type Asked struct{ User, Prompt string }

func (Sentence) page()        {}
func (Help) page()            {}
func (AskBack) page()         {}
func (PickProject) page()     {}
func (Grants) page()          {}
func (ApprovalsReport) page() {}
func (FeedbackReport) page()  {}
func (Accounts) page()        {}
func (ThreadSessions) page()  {}
func (MCPServers) page()      {}
func (Forked) page()          {}
func (ForkedHere) page()      {}
func (Asked) page()           {}
func (Reminder) page()        {}

// The forms about an approval.
type (
	// DenyReason takes the reason of a denial.
	DenyReason struct{ Approval approvals.Approval }
	// AnswerOther answers in words of their own.
	AnswerOther struct{ Approval approvals.Approval }
	// Confirm is the second step of what is dangerous, with what speaks against it now.
	Confirm struct {
		Approval approvals.Approval
		Facts    []string
	}
	// Edit changes what a call is about to do.
	Edit struct{ Approval approvals.Approval }
	// Always makes a rule of a decision; Below starts it with edits below the file's folder.
	Always struct {
		Approval approvals.Approval
		Offers   []GrantOffer
		Scopes   []approvals.GrantScope
		Below    bool
	}
	// WholeInput is a page of all that a call has as its input.
	WholeInput struct {
		Approval approvals.Approval
		Page     int
	}
)

// The other windows.
type (
	// Notice is a sentence, for where no message can be shown.
	Notice string
	// Raise asks by how much a budget is to be raised.
	Raise struct {
		Notice ledger.BudgetNotice
		About  BudgetForm
	}
	// ConnectByCode has the code that a person enters at a forge.
	ConnectByCode struct{ Host, Address, Code string }
	// ConnectByToken takes a token. Why is the sentence that says why there is no other way; it may be empty.
	ConnectByToken struct {
		Host, Address, Why string
		Server             bool // it is an MCP server
	}
	// ConnectByLink has the link by which a person agrees, and takes the address that their browser shows then.
	ConnectByLink struct{ Host, Link, Kept string }
	// WhyBad asks why an answer is a bad one; it is a turn's.
	WhyBad int64
	// TurnDiff is a page of the diff of a turn's commits.
	TurnDiff struct {
		Page DiffPage
		Push *forges.Push
	}
)

func (DenyReason) form()     {}
func (AnswerOther) form()    {}
func (Confirm) form()        {}
func (Edit) form()           {}
func (Always) form()         {}
func (WholeInput) form()     {}
func (Ask) form()            {}
func (Notice) form()         {}
func (Raise) form()          {}
func (ConnectByCode) form()  {}
func (ConnectByToken) form() {}
func (ConnectByLink) form()  {}
func (WhyBad) form()         {}
func (Steps) form()          {}
func (TurnDiff) form()       {}
