package store

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Passes reports whether an error may be over when the same is tried again, however long
// that takes: the database cannot be reached, has ended the connection or the transaction,
// has no time or room, or lacks what an admin can give it. Any other error is one of what
// was asked, as far as is known: whoever must lose nothing tries a few times all the same,
// and then tells people.
func Passes(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true // whatever it says, nothing was asked yet
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return passingState(refused.Code)
	}
	_, unreachable := errors.AsType[*UnreachableError](err)
	_, network := errors.AsType[net.Error](err)
	if unreachable || network || pgconn.SafeToRetry(err) {
		return true
	}
	for _, passing := range []error{
		context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, puddle.ErrClosedPool,
		pgx.ErrTxClosed, pgx.ErrTxCommitRollback, ErrNotYet,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// passingState is [Passes] of a SQLSTATE. Its first two characters are the class.
func passingState(code string) bool {
	switch code[:min(2, len(code))] {
	case "08", // the connection; of PgBouncer all that it says itself
		"25",       // the transaction was ended, as when the bot was frozen in it, or the server is a standby
		"26", "34", // what was prepared on the connection is not there, as behind a pooler
		"28", "3D", // the role or the database is not let in or not there
		"40",       // it lost a race
		"53",       // no memory, disk or connections
		"55",       // something is in use, or a lock was not had in time
		"57", "58", // the server stops or starts, or its machine has trouble
		"F0", "XX": // the server's configuration or files
		return true
	}
	switch code {
	case "0A000", // a plan is not that of the tables any more: the schema was changed
		"42P05",                            // a statement is prepared already, as behind a pooler
		"42501",                            // a right is missing
		"3F000", "42P01", "42703", "42883": // a schema, table, column or function is not there yet, or no more
		return true
	}
	return false
}
