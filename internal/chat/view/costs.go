package view

import (
	"deckhand/internal/report"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

// CostReport is an answer about costs, with what is needed to show it.
type CostReport struct {
	Answer report.Answer
	Names  report.Names
	// Link is the address of a thread, or empty; nil links nothing.
	Link func(threads.ThreadKey) string
	// Beside are sums that stand by the answer and are no part of it.
	Beside []CostBeside
	// Titles are those of threads that all who see the report may read, without secrets.
	Titles map[threads.ThreadKey]string
	// Notes are sentences that explain the answer, besides the answer's own.
	Notes []string
}

// CostBeside is one sum with what it is of.
type CostBeside struct {
	Name string // "This thread"
	Sum  report.Line
	Says string // what follows the amount: "since it began"
}

// CostRows is how many lines of a grouping a page shows; the others are summed up.
func CostRows(by ledger.CostGroup) int {
	if by == ledger.ByDay || by == ledger.ByMonth {
		return 62
	}
	return 25
}

// CostTitle names what an answer is about, as plain foreign text.
func CostTitle(a report.Answer, names report.Names) string {
	title := a.Title(names)
	if q := a.Question; len(q.Users)+len(q.Channels)+len(q.Projects)+len(q.Models) == 0 && q.ThreadID == 0 {
		title += ", the whole team"
	}
	return title
}

// CostDelivery is an answer about costs on its way to people: a message, and the files
// that belong to it.
type CostDelivery struct {
	Report  CostReport
	Channel string // or a person, for a direct message
	Thread  string
	// To is the only person who may see it; then the files go to their direct
	// messages, since files cannot be shown to one person in a channel. Empty: all.
	To  string
	CSV bool // a file has all of it
	// Mark names the message, which can be found again by it; or is empty.
	Mark string
	// Stale is why it need not be sent any more; or nil.
	Stale func() error
}
