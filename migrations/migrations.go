// Package migrations holds the database's schema as goose migrations, embedded
// so that the one binary carries them. Nothing here runs them: package store
// does, under goose's session lock.
package migrations

import "embed"

// FS holds the numbered SQL files.
//
//go:embed *.sql
var FS embed.FS
