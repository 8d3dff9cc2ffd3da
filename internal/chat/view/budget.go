package view

import (
	"strings"

	"deckhand/internal/agent/spend"
	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/store/ledger"
)

// BudgetAmount is the input of a new limit.
const BudgetAmount = "amount"

// Budget is a notice of a budget, and how somebody decided about it.
type Budget struct {
	Notice ledger.BudgetNotice
	Status spend.Status
	// Link leads to the thread, for channels that are told beside it; or empty.
	Link string
	// Admins are the users and groups to call, who may raise it.
	Admins []string
}

// Asks reports whether admins are asked what to do.
func (v Budget) Asks() bool {
	return v.Notice.Share == 100 && v.Status.Ask && v.Notice.DecidedBy == ""
}

// BudgetWait is a prompt that waits for a budget, or has.
type BudgetWait struct {
	Wait   ledger.BudgetWait
	Status spend.Status
	// Who are the names of those who may decide; Link leads to the card on which they do,
	// or is empty.
	Who  []string
	Link string
}

// BudgetForm is what BudgetModal is about and where its button was pressed.
type BudgetForm struct {
	NoticeID, ChannelID, ThreadTS string
}

// ParseBudgetForm reads a modal's private metadata.
func ParseBudgetForm(metadata string) (f BudgetForm, ok bool) {
	parts := strings.Split(metadata, " ")
	if len(parts) != 3 {
		return f, false
	}
	return BudgetForm{NoticeID: parts[0], ChannelID: parts[1], ThreadTS: parts[2]}, true
}

// raiseMost is more than anybody means to raise a budget by, in micro-dollars.
const raiseMost = 100_000_000_000

// ParseBudget reads BudgetModal's values. What is no sensible amount gives an
// [*AnswerError], whose sentence belongs below the input ([BudgetAmount]).
func ParseBudget(values Inputs) (microUSD int64, err error) {
	text := values[BudgetAmount][BudgetAmount].Value
	microUSD, err = money.Parse(text)
	switch {
	case err != nil:
		return 0, &AnswerError{"“" + plaintext.Clip(text, 40) + "” is not an amount. Write dollars, such as 50 or 12.50."}
	case microUSD < 10_000:
		return 0, &AnswerError{"Raise a budget by at least a cent. Write dollars, such as 50 or 12.50."}
	case microUSD > raiseMost:
		return 0, &AnswerError{"Raise a budget by " + money.USD(raiseMost) + " at most. For more, an admin changes its limit in deckhand.yaml."}
	}
	return microUSD, nil
}
