// Package work is what is kept of threads' folders, so that another machine can continue them.
package work

import "deckhand/internal/store/pg"

// Store has the methods about kept work, by its handle on the database.
type Store struct {
	db      *pg.DB
	packing chan struct{} // held while a piece of a pack is written
}

// New returns the methods about the kept work of a database.
func New(db *pg.DB) *Store { return &Store{db, make(chan struct{}, 1)} }
