package pg_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/waittest"
)

// ears is a store that listens until the test ends.
type ears struct {
	*store.Store
	ready chan struct{}  // it listens anew
	heard chan pg.Notice // and hears
	told  chan string    // what it writes to the log
}

func listen(t *testing.T, url string, before ...func()) *ears {
	t.Helper()
	e := &ears{ready: make(chan struct{}, 100), heard: make(chan pg.Notice, 100), told: make(chan string, 100)}
	log := zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Discard), zapcore.InfoLevel),
		zap.Hooks(func(l zapcore.Entry) error {
			e.told <- l.Message
			return nil
		}))
	e.Store = storetest.Open(t, url, store.Options{Log: log})
	for _, f := range before {
		f()
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var listening sync.WaitGroup
	listening.Go(func() {
		e.Listen(ctx, func() { e.ready <- struct{}{} }, func(n pg.Notice) { e.heard <- n })
	})
	t.Cleanup(func() {
		stop()
		listening.Wait()
	})
	return e
}

// await waits for an event.
func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(waittest.Limit):
		t.Fatalf("%s: nothing in %s", what, waittest.Limit)
		panic("unreachable")
	}
}

const (
	deaf    = "listening for notices of other replicas does not work; it is tried again and again"
	hearing = "listening for notices of other replicas works again"
)

// hears reports a notice that does not arrive.
func (e *ears) hears(t *testing.T, by *store.Store) {
	t.Helper()
	want := pg.Notice{Kind: pg.NoticeStop, ThreadID: 7, By: "U1"}
	if err := by.Notify(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "a notice", e.heard); got != want {
		t.Errorf("heard %+v", got)
	}
}

func TestANoticeWakesAListener(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	e := listen(t, url)
	await(t, "the listener", e.ready)
	e.hears(t, storetest.Open(t, url, store.Options{}))
}

// TestAListenerThatIsCutOffComesBack, and has the caller look at what it missed.
func TestAListenerThatIsCutOffComesBack(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	e := listen(t, url)
	await(t, "the listener", e.ready)
	e.hears(t, e.Store)
	storetest.Exec(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN deckhand'`)
	await(t, "the listener, again", e.ready)
	e.hears(t, e.Store)
}

// TestAListenerThatIsRefused: the pool has the role's last connection.
func TestAListenerThatIsRefused(t *testing.T) {
	t.Parallel()
	owner := storetest.URL(t)
	role, url := storetest.Role(t, owner, "")
	e := listen(t, url, func() { storetest.Exec(t, owner, "ALTER ROLE "+role+" CONNECTION LIMIT 0") })
	if line := await(t, "the trouble", e.told); line != deaf {
		t.Fatalf("the log says %q", line)
	}
	if s := e.Listening(); s.Up || !strings.Contains(s.Cure, "CONNECTION LIMIT") {
		t.Errorf("state %+v", s)
	}
	storetest.Exec(t, owner, "ALTER ROLE "+role+" CONNECTION LIMIT 10")
	await(t, "the listener", e.ready)
	if line := await(t, "the end of the trouble", e.told); line != hearing {
		t.Fatalf("the log says %q", line)
	}
	if s := e.Listening(); !s.Up {
		t.Errorf("state %+v", s)
	}
	e.hears(t, e.Store)
}

// TestAPoolerThatLosesNotices accepts LISTEN, as PgBouncer does in transaction mode.
func TestAPoolerThatLosesNotices(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	p := startPooler(t, url)
	p.loses.Store(true)
	e := listen(t, p.url)
	await(t, "the listener", e.ready) // so that the caller polls, at least
	if line := await(t, "the trouble", e.told); line != deaf {
		t.Fatalf("the log says %q", line)
	}
	if s := e.Listening(); s.Up || !strings.Contains(s.Cure, "DATABASE_DIRECT_URL") {
		t.Errorf("state %+v", s)
	}
	p.loses.Store(false)
	if line := await(t, "the end of the trouble", e.told); line != hearing {
		t.Fatalf("the log says %q", line)
	}
	e.hears(t, e.Store)
	// A connection that falls silent later is found out too, and renewed.
	for len(e.ready) > 0 {
		<-e.ready
	}
	p.loses.Store(true)
	await(t, "the listener, again", e.ready)
	if s := e.Listening(); s.Up {
		t.Errorf("state %+v", s)
	}
}

// pooler passes everything on but the notices that PostgreSQL sends.
type pooler struct {
	url   string
	loses atomic.Bool
}

func startPooler(t *testing.T, dsn string) *pooler {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := "tcp", net.JoinHostPort(config.Host, "5432")
	if strings.HasPrefix(config.Host, "/") {
		network, address = "unix", filepath.Join(config.Host, ".s.PGSQL.5432")
	}
	front, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the test server's address is no URL: ", err)
	}
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = front.Addr().String(), q.Encode()
	p := &pooler{url: u.String()}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = front.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			client, err := front.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), network, address)
			if err != nil {
				t.Error(err)
				_ = client.Close()
				return
			}
			serving.Go(func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			})
			serving.Go(func() {
				p.answers(client, server)
				_ = client.Close()
			})
		}
	})
	return p
}

// answers copies messages: a type, a length that counts itself, and a body.
func (p *pooler) answers(client io.Writer, server io.Reader) {
	from := bufio.NewReader(server)
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		message := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
		copy(message, head)
		if _, err := io.ReadFull(from, message[5:]); err != nil {
			return
		}
		if head[0] == 'A' && p.loses.Load() { // NotificationResponse
			continue
		}
		if _, err := client.Write(message); err != nil {
			return
		}
	}
}
