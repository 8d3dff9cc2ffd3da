// Package transcripts is the copies of sessions' transcripts, by which another machine resumes a session.
package transcripts

import "deckhand/internal/store/pg"

// Store has the methods about transcripts, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the methods about transcripts of a database.
func New(db *pg.DB) *Store { return &Store{db} }
