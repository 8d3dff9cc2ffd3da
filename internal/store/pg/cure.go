package pg

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// Cure says in a sentence what to do about a database error.
func Cure(err error) string {
	if told, ok := errors.AsType[interface {
		error
		Cure() string
	}](err); ok {
		return told.Cure()
	}
	if lost, ok := errors.AsType[*pgconn.ConnectError](err); ok && lost.Config != nil {
		return unreachable(lost.Config, err).cure
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return cureRefusal(refused)
	}
	_, network := errors.AsType[net.Error](err)
	if network || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "see whether PostgreSQL runs, and whether the network to DATABASE_URL holds"
	}
	return "run `bot doctor`, which checks the database"
}

// cureRefusal decides by SQLSTATE, whose first two characters are the class.
func cureRefusal(e *pgconn.PgError) string {
	switch e.Code {
	case "42P01", "42703", "42883", "3F000": // a table, column, function or schema is not there
		return "run `bot migrate up`: the database is not at this binary's schema"
	case "42501":
		return "as the owner of the tables, grant the bot's role what docs/security.md lists under The database"
	case "28P01":
		return "correct user and password in DATABASE_URL, where / is written %2F, @ %40 and % %25"
	case "28000":
		return "correct the user in DATABASE_URL, add sslmode=require, or let the bot in by pg_hba.conf"
	case "3D000":
		return "create the database, or correct its name in DATABASE_URL"
	case "53300":
		return "raise max_connections, or the CONNECTION LIMIT of the bot's role or database"
	case "25006":
		return "let DATABASE_URL lead to the primary: this is a standby, where nothing can be written or heard"
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "57": // 57P01 to 57P03: the server stops or starts
		return "wait until PostgreSQL is up again; if it does not come, its own log says why"
	case "53":
		return "give PostgreSQL what it lacks, disk space or memory; its own log says which"
	}
	return "run `bot doctor`, which checks the database"
}
