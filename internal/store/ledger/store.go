// Package ledger is what calls of the model cost: admitted by budgets, booked once, summed up for reports, and checked.
package ledger

import "deckhand/internal/store/pg"

// Store has the methods about costs and budgets, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the methods about costs and budgets of a database.
func New(db *pg.DB) *Store { return &Store{db} }
