// Package outbox is what people must see and Slack does not have yet, and our messages that may be edited.
package outbox

import "deckhand/internal/store/pg"

// Store has the outbox's methods, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the outbox's methods of a database.
func New(db *pg.DB) *Store { return &Store{db} }
