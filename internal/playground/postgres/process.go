package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
)

// settings make the server small, quiet and reachable by its socket alone.
// They are given on the command line, so an old data folder gets them too.
var settings = []string{
	"listen_addresses=",
	"port=5432", // only names the socket's file
	"unix_socket_permissions=0700",
	"max_connections=200",
	"shared_buffers=32MB",
	"max_wal_size=256MB",
	"min_wal_size=32MB",
	"wal_level=minimal",
	"max_wal_senders=0",
	"max_parallel_workers_per_gather=0",
	"jit=off",
	"TimeZone=UTC",
	"log_timezone=UTC",
	"logging_collector=off",
	"log_min_messages=warning",
	"log_checkpoints=off",
}

// volatile settings are added without Options.Durable. Autovacuum is off
// because it may be at work in a template database just when it is cloned.
var volatile = []string{
	"fsync=off",
	"synchronous_commit=off",
	"full_page_writes=off",
	"autovacuum=off",
}

func (c *cluster) serverArgs() []string {
	args := []string{"-D", c.dataArg, "-c", "unix_socket_directories=" + c.socketArg}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	if !c.durable {
		for _, s := range volatile {
			args = append(args, "-c", s)
		}
	}
	return args
}

// own forks the server and waits for it. It never gives its thread back: the
// thread is what the server's life hangs on (see endWithParent), and what has
// been done to it must not leak into other goroutines.
func (s *Server) own(forked chan<- error) {
	runtime.LockOSThread()
	logFile, err := os.OpenFile(s.cluster.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		forked <- err
		return
	}
	cmd := s.cluster.command("postgres", s.cluster.serverArgs()...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	guard, err := startWithParent(cmd)
	_ = logFile.Close() // the server holds its own copy
	if err != nil {
		forked <- err
		return
	}
	s.proc = cmd.Process
	forked <- nil

	err = cmd.Wait()
	guard.release()
	if err != nil {
		s.err = fmt.Errorf("postgres ended: %w%s", err, s.cluster.logTail())
		s.log.Error("postgres ended", zap.Error(s.err))
	}
	close(s.done)
}

// awaitReady returns when the database accepts connections, and makes the
// database on the first start.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout,
		fmt.Errorf("start postgres: not ready in %v", readyTimeout))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !s.saysReady() {
		select {
		case <-tick.C:
		case <-s.done:
			return fmt.Errorf("start postgres: it exited at once: %w", s.exitReason())
		case <-ctx.Done():
			return fmt.Errorf("%w%s", context.Cause(ctx), s.cluster.logTail())
		}
	}
	err := s.cluster.ping(ctx, database)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "3D000" { // invalid_catalog_name
		err = s.cluster.createDatabase(ctx)
	}
	if err != nil {
		return fmt.Errorf("start postgres: %w%s", err, s.cluster.logTail())
	}
	return nil
}

// saysReady reads the state that the server writes to the eighth line of its
// pid file: cheaper than trying to connect, and no refusals in its log.
func (s *Server) saysReady() bool {
	f, err := readPIDFile(filepath.Join(s.cluster.data, pidFileName))
	return err == nil && f.pid == s.proc.Pid && f.status == "ready"
}

func (s *Server) exitReason() error {
	if err := s.Err(); err != nil {
		return err
	}
	return errors.New("with status 0")
}

func (c *cluster) ping(ctx context.Context, name string) error {
	return c.withConn(ctx, name, func(conn *pgx.Conn) error { return conn.Ping(ctx) })
}

func (c *cluster) createDatabase(ctx context.Context) error {
	return c.withConn(ctx, "postgres", func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize()); err != nil {
			return fmt.Errorf("create database %s: %w", database, err)
		}
		return nil
	})
}

func (c *cluster) withConn(ctx context.Context, name string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, c.url(name))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return errors.Join(do(conn), conn.Close(ctx))
}

// logTail is the end of the server's log, to be appended to an error: the
// reason that a start fails for is there and nowhere else.
func (c *cluster) logTail() string {
	const keep = 5
	raw, err := os.ReadFile(c.logFile())
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) > keep {
		lines = lines[len(lines)-keep:]
	}
	return fmt.Sprintf(" (the end of %s: %s)", c.logFile(), strings.Join(lines, " | "))
}
