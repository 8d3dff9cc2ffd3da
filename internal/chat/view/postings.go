package view

import "deckhand/internal/store/approvals"

// Card is a card of requests, the first of which was asked first.
type Card struct {
	List    []approvals.Approval
	Calling *Calling
	// OneFile is the file that a pending request would write, if edits below its folder may
	// be allowed with it; else "".
	OneFile func(approvals.Approval) string
}

// Calling is how a pending card calls people. A mention calls, once, when the card is posted:
// whoever is not to be called is shown by name.
type Calling struct {
	// Mention are the users and user groups whom the card of an approval mentions.
	Mention func(approvals.Approval) []string
	// Sent are those who have the card as a direct message, or are about to; nil for nobody.
	Sent func(approvals.Approval) []string
	// Name is what a person is called, or their id.
	Name func(userID string) string
	// Direct is how many people have the card as a direct message.
	Direct int
	// Copy says that this is such a copy, and Thread is the permalink of its thread; it is
	// empty where nobody else can open it.
	Copy   bool
	Thread string
}

// InLine says how many threads are before one in the queue for a session, or that it waits no
// longer.
type InLine int

// Call is a sentence that calls users and user groups.
type Call struct {
	Sentence string
	Whom     []string
}

// OfferConnection tells a person a sentence, with the button by which they connect.
type OfferConnection struct{ Sentence, Site string }

func (Card) page()            {}
func (Queue) page()           {}
func (InLine) page()          {}
func (Budget) page()          {}
func (BudgetWait) page()      {}
func (Pull) page()            {}
func (Call) page()            {}
func (OfferConnection) page() {}
