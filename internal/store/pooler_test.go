package store_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/freeport"
	"deckhand/internal/needtest"
	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
)

// pooled is the database behind PgBouncer in transaction mode, with fewer connections
// than there are people who want one.
func pooled(t *testing.T, dsn string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		const missing = "PgBouncer is not installed: apt-get install pgbouncer"
		needtest.Missing(t, missing)
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	address, err := freeport.Address(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, listens, _ := net.SplitHostPort(address)
	host, port, err := net.SplitHostPort(storetest.TCP(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgbouncer-") // not t.TempDir, which its own user cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{
		"users": fmt.Sprintf("%q %q\n", cfg.User, cfg.Password),
		"ini": fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%s\nunix_socket_dir=\nauth_type=trust\nauth_file=%s\npool_mode=transaction\ndefault_pool_size=3\n",
			host, port, listens, filepath.Join(dir, "users")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{filepath.Join(dir, "ini")}
	if os.Getuid() == 0 { // which it does not run as
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"-u", "nobody"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url := fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", cfg.User, address, cfg.Database)
	for deadline := time.Now().Add(waittest.Limit); ; time.Sleep(10 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), url+"&default_query_exec_mode=exec")
		if err == nil {
			_ = conn.Close(t.Context())
			return url
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Behind a pooler in transaction mode everything works, with a direct way for notices.
func TestBehindAPooler(t *testing.T) {
	t.Parallel()
	dsn := storetest.Bot(storetest.URL(t))
	s := storetest.Open(t, pooled(t, dsn), store.Options{Direct: dsn})
	heard := make(chan pg.Notice, 100)
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.Listen(ctx, sync.OnceFunc(func() { close(ready) }), func(n pg.Notice) { heard <- n })
	}()
	defer func() { stop(); <-ended }()
	select {
	case <-ready:
	case <-time.After(waittest.Limit):
		t.Fatalf("it does not listen: %+v", s.Listening())
	}

	if _, err := storetest.Live(ctx, s, "replica-1"); err != nil { // whose threads they are
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			storetest.Asked(t, s, time.Hour)
			l, err := s.Register(ctx, threads.Replica{ID: fmt.Sprint("r", i), Kernel: "k", Slots: 3, Lease: time.Minute})
			for range 10 {
				if err == nil {
					_, _, err = s.Heartbeat(ctx, l, threads.Load{Slots: 3, Busy: 1})
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	kinds, limit := map[pg.NoticeKind]bool{}, time.After(waittest.Limit)
	for !kinds[pg.NoticePrompt] {
		select {
		case n := <-heard:
			kinds[n.Kind] = true
		case <-limit:
			t.Fatal("no notice was heard")
		}
	}
}
