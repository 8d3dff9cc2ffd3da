package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Passes reports whether an error may disappear on a later retry, however long that takes: the database is
// unreachable, has ended the connection or the transaction, lacks time or room, or lacks what an admin can give it.
// Any other error is presumably caused by the request: a caller that must lose nothing tries a few times, and then
// reports it.
func Passes(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true // nothing was sent yet
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return passingState(refused.Code)
	}
	_, unreachable := errors.AsType[*UnreachableError](err)
	_, network := errors.AsType[net.Error](err)
	if unreachable || network || pgconn.SafeToRetry(err) {
		return true
	}
	return slices.ContainsFunc([]error{
		context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, puddle.ErrClosedPool,
		pgx.ErrTxClosed, pgx.ErrTxCommitRollback, ErrNotYet,
	}, func(passing error) bool { return errors.Is(err, passing) })
}

// passingState is [Passes] for a SQLSTATE, whose first two characters are the class.
func passingState(code string) bool {
	switch code[:min(2, len(code))] {
	case "08", // the connection; everything that PgBouncer itself reports
		"25",       // the transaction was ended, for example while the bot was frozen, or the server is a standby
		"26", "34", // a prepared statement is missing, for example behind a pooler
		"28", "3D", // the role or the database is rejected or missing
		"40",       // it lost a race
		"53",       // no memory, disk or connections
		"55",       // something is in use, or a lock timed out
		"57", "58", // the server stops or starts, or its machine fails
		"F0", "XX": // the server's configuration or files
		return true
	}
	switch code {
	case "0A000", // a cached plan is outdated: the schema was changed
		"42P05",                            // a statement is already prepared, for example behind a pooler
		"42501",                            // a right is missing
		"3F000", "42P01", "42703", "42883": // a schema, table, column or function is missing
		return true
	}
	return false
}
