// Package approvals is what people are asked about tool calls, what they decide, and what they grant for longer.
package approvals

import (
	"errors"

	"deckhand/internal/store/pg"
)

// Errors that callers branch on.
var (
	// ErrTooEarly: the approval's time has not run out.
	ErrTooEarly = errors.New("the approval still has time")
	// ErrVoted: the person has already given this vote.
	ErrVoted = errors.New("this person has voted already")
	// ErrChanged: the input of an allow was changed after it was shown.
	ErrChanged = errors.New("the input was changed meanwhile")
)

// Store has the methods about approvals and grants, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the methods about the approvals and grants of a database.
func New(db *pg.DB) *Store { return &Store{db} }
