package pg

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/upkeep"
)

// Channel is where notices are sent.
const Channel = "deckhand"

// NoticeKind says what a notice is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticePrompt   NoticeKind = "prompt"   // a thread has a prompt
	NoticeApproval NoticeKind = "approval" // an approval has ended
	NoticeVote     NoticeKind = "vote"     // one on a card, which is ID, has a vote or another input, and waits
	NoticeStop     NoticeKind = "stop"     // somebody stops a thread's turn
	NoticeFreed    NoticeKind = "freed"    // a replica's leases were handed back, all at once, or one has registered
	NoticeServers  NoticeKind = "servers"  // a thread's MCP servers are to be looked at, and to be as people want them
	NoticeShown    NoticeKind = "shown"    // what overviews show may have changed
)

// Notice wakes the replica that a change concerns. It is only a hint: polling finds what a lost notice was about.
type Notice struct {
	Kind     NoticeKind `json:"kind"`
	ThreadID int64      `json:"thread_id,omitempty"`
	ID       string     `json:"id,omitempty"` // the approval's, or the card's
	By       string     `json:"by,omitempty"` // who stopped; the replica that shows
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// SendNotice sends the second parameter, a notice, to the first, [Channel]; for a batch.
const SendNotice = `SELECT pg_notify($1, $2)`

// Body is the notice as it is sent.
func (n Notice) Body() string {
	body, err := json.Marshal(n)
	if err != nil { // texts and numbers
		panic(err)
	}
	return string(body)
}

// Notify sends a notice to every replica, this one included; in a transaction, with its commit.
func Notify(ctx context.Context, db execer, n Notice) error {
	_, err := db.Exec(ctx, SendNotice, Channel, n.Body())
	return err
}

// Notify sends a notice to every replica, this one included.
func (s *Store) Notify(ctx context.Context, n Notice) error {
	err := Notify(ctx, s.db, n)
	return Wrap(err, "notify %s", n.Kind)
}

// Listen calls fn for every notice until ctx ends, on a connection of its own that it renews as needed; see
// [Store.Listening] for its state. ready is called whenever it starts to listen: notices may have been missed, so
// the caller should poll then.
func (s *Store) Listen(ctx context.Context, ready func(), fn func(Notice)) {
	s.db.listening.Keep(ctx, func(ctx context.Context, tell func(error)) error {
		return s.listen(ctx, ready, fn, tell)
	})
}

// Listening says whether this replica receives notices, and if not why. Without notices it relies on polling.
func (s *Store) Listening() upkeep.State { return s.db.listening.State() }

// noticeHello is what a listener sends to itself on another connection, to prove that it receives notices.
const noticeHello NoticeKind = "hello"

const (
	// helloEvery is the interval of hellos: a connection that was cut silently looks like an idle one.
	helloEvery = 15 * time.Second
	helloWait  = 5 * time.Second
	// listenTimeout bounds connecting.
	listenTimeout = 10 * time.Second
)

func (s *Store) listen(ctx context.Context, ready func(), fn func(Notice), tell func(error)) error {
	conn, err := s.connectListener(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only listened
	ready()
	for {
		if err := s.sayHello(ctx, conn, fn); err != nil {
			return err
		}
		tell(nil)
		if err := listenOn(ctx, conn, helloEvery, fn, nil); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// sayHello verifies that conn receives other connections' notices.
func (s *Store) sayHello(ctx context.Context, conn *pgx.Conn, fn func(Notice)) error {
	hello := Notice{Kind: noticeHello, ID: rand.Text()}
	saying, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	if err := s.Notify(saying, hello); err != nil {
		return err
	}
	err := listenOn(ctx, conn, helloWait, fn, &hello)
	if errors.Is(err, context.DeadlineExceeded) {
		return deafError{}
	}
	return err
}

func (s *Store) connectListener(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listenTimeout, fmt.Errorf("no answer in %s", listenTimeout))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.db.direct.Copy())
	if err != nil {
		return nil, fmt.Errorf("connect to listen: %w", err)
	}
	if _, err := conn.Exec(ctx, "LISTEN "+Channel); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx)) // it only listened
		return nil, fmt.Errorf("LISTEN: %w", err)
	}
	return conn, nil
}

// listenOn calls fn for notices for some time, whose end is [context.DeadlineExceeded], or until hello arrives.
func listenOn(ctx context.Context, conn *pgx.Conn, long time.Duration, fn func(Notice), hello *Notice) error {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for {
		got, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for a notice: %w", err)
		}
		var n Notice
		switch err := json.Unmarshal([]byte(got.Payload), &n); {
		case err != nil: // not ours
		case n.Kind != noticeHello:
			fn(n)
		case hello != nil && n == *hello:
			return nil
		}
	}
}

// deafError means that PostgreSQL accepted LISTEN but notices do not arrive.
type deafError struct{}

// Error implements error.
func (deafError) Error() string {
	return fmt.Sprintf("LISTEN was accepted, and a notice to ourselves did not arrive in %s", helloWait)
}

// Cure says what to do about it.
func (deafError) Cure() string {
	return "set DATABASE_DIRECT_URL to PostgreSQL itself, past the pooler: in transaction mode one loses notices"
}
