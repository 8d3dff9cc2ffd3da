// Package audit is the record of what was asked, decided and done: appended to in the transactions that do it, chained by
// checksums, exported and checked.
package audit

import "deckhand/internal/store/pg"

// Store has the audit's methods, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the audit's methods of a database.
func New(db *pg.DB) *Store { return &Store{db} }
