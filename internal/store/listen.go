package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const channel = "deckhand"

// NoticeKind says what a notice is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticePrompt   NoticeKind = "prompt"   // a thread has a prompt
	NoticeApproval NoticeKind = "approval" // an approval has ended
	NoticeStop     NoticeKind = "stop"     // somebody stops a thread's turn
)

// Notice wakes the replica that a change concerns. It is a hint and no more:
// polling finds what a lost notice was about.
type Notice struct {
	Kind     NoticeKind `json:"kind"`
	ThreadID int64      `json:"thread_id"`
	ID       string     `json:"id,omitempty"` // the approval's
	By       string     `json:"by,omitempty"` // who stopped
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func notify(ctx context.Context, db execer, n Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = db.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, string(body))
	return err
}

// Notify sends a notice to every replica, this one included.
func (s *Store) Notify(ctx context.Context, n Notice) error {
	if err := notify(ctx, s.pool, n); err != nil {
		return fmt.Errorf("notify %s: %w", n.Kind, err)
	}
	return nil
}

// Listen calls fn for every notice until ctx ends, on a connection of its own
// that it renews when it breaks. ready is called after every (re)connection:
// notices may have been missed before it, so the caller should poll then.
func (s *Store) Listen(ctx context.Context, ready func(), fn func(Notice)) error {
	for {
		err := s.listenOnce(ctx, ready, fn)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_ = err // a broken connection: the next ready() makes up for what was missed
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

func (s *Store) listenOnce(ctx context.Context, ready func(), fn func(Notice)) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only listened
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	ready()
	for {
		got, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		var n Notice
		if json.Unmarshal([]byte(got.Payload), &n) == nil {
			fn(n)
		}
	}
}
