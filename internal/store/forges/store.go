// Package forges is what is known of forges: people's own accounts there, pull requests, and what a push would bring.
package forges

import "deckhand/internal/store/pg"

// Store has the methods about forges, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the methods about forges of a database.
func New(db *pg.DB) *Store { return &Store{db} }
