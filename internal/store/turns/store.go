// Package turns is what sessions do: turns, their attempts, parking, and what people think of their answers.
package turns

import "deckhand/internal/store/pg"

// Store has the methods about turns and sessions, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the methods about turns and sessions of a database.
func New(db *pg.DB) *Store { return &Store{db} }
