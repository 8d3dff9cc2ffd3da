// Package inbox is what people send: envelopes of Slack's, and the prompts that they become, until a turn has them; how
// people want a thread's work done; and where posts may have been missed.
package inbox

import "deckhand/internal/store/pg"

// Store has the inbox's methods, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the inbox's methods of a database.
func New(db *pg.DB) *Store { return &Store{db} }
