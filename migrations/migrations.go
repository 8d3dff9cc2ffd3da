// Package migrations holds the database's schema as goose migrations, embedded
// so that the one binary carries them. Nothing here runs them: package store
// does, under goose's session lock.
//
// A migration that has landed never changes, as databases have it as it was: what is
// to be different is a new one with the next number.
package migrations

import "embed"

// FS holds the numbered SQL files; [River] is the one that is not SQL.
//
//go:embed *.sql
var FS embed.FS
