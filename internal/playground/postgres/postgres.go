// Package postgres runs a private PostgreSQL server: the database of
// `bot demo` and of every test that needs one. It finds the binaries, makes
// the data folder, starts the server on a unix socket inside that folder (mode
// 0700, no TCP port, so no other user of the machine can reach it) and sees to
// it that the server ends with this process, however this process ends.
//
// It is not for production: `bot run` is given a DATABASE_URL. It knows
// nothing of the schema either; migrations are the caller's.
//
// A server that dies with its parent needs a parent that stays: on Linux the
// server is forked from an OS thread that one goroutine keeps to itself until
// the server has exited, because the kernel sends the parent-death signal when
// that thread ends, not when the process does. Elsewhere a shell that reads
// from a pipe does the same when the pipe closes. That goroutine (Server.own)
// is the only one of this package; it ends when the server has exited, and
// Stop waits for it.
//
// The states of a Server:
//
//	Start ── initdb when the folder is empty ── fork ── ready ──► running
//	running ── Stop: SIGINT, later SIGQUIT, later SIGKILL ──► stopped
//	running ── the server exits by itself ──► Done is closed, Err says why
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	// user and database are the names of the superuser and of the database
	// that URL leads to.
	user     = "deckhand"
	database = "deckhand"

	// readyTimeout is for a start after a crash too, which replays the log.
	readyTimeout = 60 * time.Second

	// fastTimeout, quitTimeout and killTimeout bound the three steps of Stop.
	fastTimeout = 10 * time.Second
	quitTimeout = 5 * time.Second
	killTimeout = 5 * time.Second
)

// Options says where and how to run a server.
type Options struct {
	// Dir is the folder that the server keeps everything in: the database, its
	// log, its socket and a lock. It is made if it does not exist, and what it
	// holds is used again. Empty means a temporary folder, which Stop removes.
	Dir string

	// Log gets the steps of the start at debug level and a server that ends
	// unasked at error level. Nil means no logging. The server's own log goes
	// to postgres.log in Dir.
	Log *zap.Logger

	// Fresh forgets the database that Dir holds.
	Fresh bool

	// Durable makes commits survive a crash of the machine. Without it they
	// survive a crash of the server only, and everything is faster: right for
	// tests.
	Durable bool
}

// Server is a running PostgreSQL. Its methods are safe for concurrent use.
type Server struct {
	log     *zap.Logger
	cluster *cluster
	proc    *os.Process
	done    chan struct{}
	err     error // set before done is closed

	stopOnce sync.Once
	stopErr  error
}

// Start starts a server in o.Dir and returns when it accepts connections. It
// makes the database on the first start, and as root it runs PostgreSQL (which
// refuses to run as root) as another user: the owner of the data, else
// postgres, else nobody.
//
// ctx bounds the start only; the server runs until Stop, or until this process
// ends. An error names what is missing and what to do about it; a folder that
// another process uses is ErrInUse.
func Start(ctx context.Context, o Options) (*Server, error) {
	log := o.Log
	if log == nil {
		log = zap.NewNop()
	}
	began := time.Now()
	c, err := openCluster(ctx, o, log)
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, c, log)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	log.Debug("postgres is ready",
		zap.Int("pid", s.PID()), zap.String("dir", c.dir), zap.Duration("after", time.Since(began)))
	return s, nil
}

func start(ctx context.Context, c *cluster, log *zap.Logger) (*Server, error) {
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	s := &Server{log: log, cluster: c, done: make(chan struct{})}
	forked := make(chan error)
	go s.own(forked)
	if err := <-forked; err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.shutdown())
	}
	return s, nil
}

// URL is the address of the database, for pgx and for psql alike. It is usable
// only by this user (and root), because the folder of its socket is private.
func (s *Server) URL() string { return s.cluster.url(database) }

// PID is the process id of the server's main process.
func (s *Server) PID() int { return s.proc.Pid }

// Done is closed when the server has exited, whether Stop asked it to or not.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why the server exited: nil while it runs and after a clean exit.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop shuts the server down and waits until it is gone, 20 s at most: clients
// are disconnected, transactions rolled back and the data written. A server
// that does not end in time is killed, which the error says; its data stays
// good. Further calls return the result of the first.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		s.stopErr = errors.Join(s.shutdown(), s.cluster.close())
	})
	return s.stopErr
}

// shutdown asks three times, each time less politely.
func (s *Server) shutdown() error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{
		{syscall.SIGINT, fastTimeout},
		{syscall.SIGQUIT, quitTimeout},
		{syscall.SIGKILL, killTimeout},
	} {
		if err := s.proc.Signal(step.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop postgres: %w", err)
		}
		timer := time.NewTimer(step.wait)
		select {
		case <-s.done:
			timer.Stop()
			if step.signal != syscall.SIGINT {
				return fmt.Errorf("stop postgres: it did not end in %v and was ended by %v", fastTimeout, step.signal)
			}
			return s.err
		case <-timer.C:
			s.log.Warn("postgres does not stop", zap.Stringer("signal", step.signal), zap.Duration("after", step.wait))
		}
	}
	return fmt.Errorf("stop postgres: process %d survives SIGKILL", s.proc.Pid)
}

// url is the address of a database of the cluster. Port, user and sslmode are
// given so that PGPORT, PGUSER and PGSSLMODE of the environment do not matter.
func (c *cluster) url(name string) string {
	q := url.Values{"host": {c.socketDir}, "port": {"5432"}, "sslmode": {"disable"}}
	return "postgres://" + user + "@/" + name + "?" + q.Encode()
}

func (c *cluster) logFile() string { return filepath.Join(c.dir, "postgres.log") }
