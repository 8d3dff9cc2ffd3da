package forges

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
)

// Connection is somebody's own account at a forge. Sealed is its token, which this package
// cannot read.
type Connection struct {
	TeamID, UserID, Host string
	Account              int64
	Login                string
	Key                  string // names the key that Sealed is encrypted with
	Sealed               []byte
	ExpiresAt            *time.Time
	DeadAt               *time.Time // when the forge took the token no more
}

// ErrTaken means that somebody else has connected that account.
var ErrTaken = errors.New("the account is connected by somebody else")

const connectionColumns = `team_id, user_id, host, account, login, key, sealed, expires_at, dead_at`

// Connect writes a connection down instead of the one that the person had at that host, or
// gives [ErrTaken].
func (s *Store) Connect(ctx context.Context, c Connection) error {
	err := s.db.InTx(ctx, func(tx pg.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO connections (team_id, user_id, host, account, login, key, sealed, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (team_id, user_id, host) DO UPDATE SET account = excluded.account, login = excluded.login, key = excluded.key,
				sealed = excluded.sealed, expires_at = excluded.expires_at, dead_at = NULL, created_at = now()`,
			c.TeamID, c.UserID, c.Host, c.Account, c.Login, c.Key, c.Sealed, c.ExpiresAt)
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "23505" {
			return ErrTaken
		}
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, c.told("connected"))
	})
	return pg.Wrap(err, "connect %s at %s", c.UserID, c.Host)
}

func (c Connection) told(act string) audit.Entry {
	return audit.Entry{Kind: audit.Account, TeamID: c.TeamID, Actor: c.UserID, Details: map[string]any{"act": act, "host": c.Host, "login": c.Login}}
}

// Connections are all of a person's, by host.
func (s *Store) Connections(ctx context.Context, team, user string) ([]Connection, error) {
	rows, err := s.db.Query(ctx, `SELECT `+connectionColumns+` FROM connections WHERE team_id = $1 AND user_id = $2 ORDER BY host`, team, user)
	if err != nil {
		return nil, pg.Wrap(err, "read connections")
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[Connection])
	return out, pg.Wrap(err, "read connections")
}

// Connection returns a person's at a host, or [pg.ErrNotFound].
func (s *Store) Connection(ctx context.Context, team, user, host string) (Connection, error) {
	c, err := pg.CollectOne[Connection](s.db.Query(ctx, `SELECT `+connectionColumns+` FROM connections WHERE team_id = $1 AND user_id = $2 AND host = $3`, team, user, host))
	return c, pg.Wrap(err, "read a connection")
}

// RefreshConnection has the token of a connection changed by one caller at a time, over all
// replicas: change gets it as it is by then, and what it makes of it is written.
func (s *Store) RefreshConnection(ctx context.Context, team, user, host string, change func(*Connection) error) error {
	err := s.db.InTx(ctx, func(tx pg.Tx) error {
		c, err := pg.CollectOne[Connection](tx.Query(ctx, `SELECT `+connectionColumns+` FROM connections WHERE team_id = $1 AND user_id = $2 AND host = $3 FOR UPDATE`, team, user, host))
		if err != nil {
			return err
		}
		was := c.DeadAt
		if err := change(&c); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE connections SET key = $4, sealed = $5, expires_at = $6, dead_at = $7 WHERE team_id = $1 AND user_id = $2 AND host = $3`,
			team, user, host, c.Key, c.Sealed, c.ExpiresAt, c.DeadAt); err != nil || was != nil || c.DeadAt == nil {
			return err
		}
		return audit.Append(ctx, tx, c.told("ended"))
	})
	return pg.Wrap(err, "refresh a connection")
}

// Disconnect deletes a person's connection and returns it, or gives [pg.ErrNotFound].
func (s *Store) Disconnect(ctx context.Context, team, user, host string) (c Connection, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		c, err = pg.CollectOne[Connection](tx.Query(ctx, `DELETE FROM connections WHERE team_id = $1 AND user_id = $2 AND host = $3 RETURNING `+connectionColumns, team, user, host))
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, c.told("disconnected"))
	})
	return c, pg.Wrap(err, "disconnect %s at %s", user, host)
}
