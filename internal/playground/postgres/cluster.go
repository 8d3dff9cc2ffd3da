package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"go.uber.org/zap"
)

// cluster is a data folder and what it takes to run programs on it.
//
//	dir/lock           held by the process that runs the server
//	dir/postgres.log   what the server says
//	dir/data/          PostgreSQL's own
type cluster struct {
	log       *zap.Logger
	dir       string
	data      string
	temporary bool
	durable   bool

	bin  string // folder of the binaries
	cred *credential
	lock *os.File

	// entry is the data folder, opened, when cred could not reach it by its
	// path. Then every program inherits it, and dataArg leads to it by way of
	// the descriptor (see enter).
	entry   *os.File
	dataArg string

	socketDir, socketArg string // as clients and as the server name it
	socketTemp           bool   // socketDir is outside of data
}

// openCluster finds the binaries, makes and locks the folder.
func openCluster(ctx context.Context, o Options, log *zap.Logger) (*cluster, error) {
	c := &cluster{log: log, dir: o.Dir, durable: o.Durable}
	if c.dir == "" {
		sweepTemporary(log)
		dir, err := os.MkdirTemp("", temporaryPrefix)
		if err != nil {
			return nil, fmt.Errorf("make a temporary data folder: %w", err)
		}
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, fmt.Errorf("make a temporary data folder: %w", err)
		}
		c.dir, c.temporary = dir, true
	}
	var err error
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, fmt.Errorf("locate data folder: %w", err)
	}
	c.data = filepath.Join(c.dir, "data")
	if err = os.MkdirAll(c.dir, 0o711); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	if c.lock, err = lockDir(c.dir); err != nil {
		return nil, err
	}
	if err = c.takeOver(ctx, o.Fresh); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// takeOver ends what a killed predecessor left, and settles on a user and on
// binaries that fit the data that is there.
func (c *cluster) takeOver(ctx context.Context, fresh bool) error {
	if err := c.endStale(ctx); err != nil {
		return err
	}
	if fresh {
		if err := os.RemoveAll(c.data); err != nil {
			return fmt.Errorf("forget the database: %w", err)
		}
		_ = os.Remove(c.logFile()) // it is opened anew in any case
	}
	var err error
	if c.cred, err = whoRuns(c.data); err != nil {
		return err
	}
	version, err := dataVersion(c.data)
	if err != nil {
		return err
	}
	if c.bin, err = findFor(c.cred, version); err != nil {
		return err
	}
	return nil
}

// prepare makes the database if there is none, and the way to its socket.
func (c *cluster) prepare(ctx context.Context) error {
	trimLog(c.logFile())
	if _, err := os.Stat(filepath.Join(c.data, versionFileName)); errors.Is(err, os.ErrNotExist) {
		if err := c.initialize(ctx); err != nil {
			return err
		}
	}
	if err := c.enter(c.data); err != nil {
		return err
	}
	return c.chooseSocketDir()
}

// initialize runs initdb beside the final place and renames the result, so
// that an interrupted one leaves nothing that looks like a database.
func (c *cluster) initialize(ctx context.Context) error {
	staging := c.data + ".new"
	if err := os.RemoveAll(staging); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	if err := os.MkdirAll(staging, 0o700); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	if err := c.cred.own(staging); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	if err := c.enter(staging); err != nil {
		return err
	}
	cmd := c.commandContext(ctx, "initdb", "-D", c.dataArg, "-U", user,
		"--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--no-locale",
		"--wal-segsize=1", "--no-sync", "--no-instructions")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("make database: %s: %w: %s", cmd.Path, err, strings.TrimSpace(out.String()))
	}
	if err := os.RemoveAll(c.data); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	if err := os.Rename(staging, c.data); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	c.log.Debug("made a database", zap.String("dir", c.data))
	return nil
}

// inherited is how a program names the first descriptor that it inherits.
const inherited = "/proc/self/fd/3"

// enter settles how programs name the folder data: by its path, or, if root's
// folders are in the way of the user that they run as, by a descriptor that
// root has opened for them. No parent folder is looked at on that way.
func (c *cluster) enter(data string) error {
	c.leave()
	c.dataArg = data
	if c.cred.reaches(data) {
		return nil
	}
	f, err := os.Open(data)
	if err != nil {
		return fmt.Errorf("open data folder: %w", err)
	}
	if !canEnterByFD {
		_ = f.Close()
		return fmt.Errorf("as root, PostgreSQL runs as user id %d, who may not enter %s: choose a data folder whose parents everybody may enter", c.cred.uid, filepath.Dir(data))
	}
	c.entry, c.dataArg = f, inherited
	return nil
}

func (c *cluster) leave() {
	if c.entry != nil {
		_ = c.entry.Close()
		c.entry = nil
	}
}

// command is a program of PostgreSQL's, to be run as the cluster's user in a
// process group of its own, so that a Ctrl-C in the terminal does not stop the
// database before the bot has written its last words.
func (c *cluster) command(program string, args ...string) *exec.Cmd {
	//nolint:noctx // the server outlives the context of its start; Stop ends it
	return c.dress(exec.Command(filepath.Join(c.bin, program), args...))
}

func (c *cluster) commandContext(ctx context.Context, program string, args ...string) *exec.Cmd {
	return c.dress(exec.CommandContext(ctx, filepath.Join(c.bin, program), args...))
}

// dress adds environment, user and what is inherited. Nothing of our own
// environment is passed on: it may hold tokens, and PG* variables that would
// bend the server's configuration.
func (c *cluster) dress(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = []string{"PATH=" + c.bin + ":/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	// Binaries that bring their libraries along (npm's) do not all find them.
	lib := filepath.Join(filepath.Dir(c.bin), "lib")
	if _, err := os.Stat(filepath.Join(lib, "libpq.so.5")); err == nil {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+lib)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.cred.syscall()}
	cmd.Dir = "/" // ours may be one that the user may not enter
	if c.entry != nil {
		cmd.ExtraFiles = []*os.File{c.entry}
	}
	return cmd
}

// maxSocketPath is the longest path that a socket can be bound to, and
// connected to, on every system that we run on.
const maxSocketPath = 103

// chooseSocketDir puts the socket into the data folder, which is private to
// the server's user, or, when that path is too long for a socket, into a
// private folder of a fixed name in the temporary one.
func (c *cluster) chooseSocketDir() error {
	c.socketDir, c.socketArg = c.data, c.dataArg
	if len(filepath.Join(c.socketDir, ".s.PGSQL.5432")) <= maxSocketPath {
		return nil
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.dir))
	dir := filepath.Join("/tmp", fmt.Sprintf("deckhand-%d-%x", os.Getuid(), h.Sum64()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make socket folder: %w", err)
	}
	if err := c.cred.claim(dir); err != nil {
		return fmt.Errorf("socket folder %s: %w", dir, err)
	}
	c.socketDir, c.socketArg, c.socketTemp = dir, dir, true
	return nil
}

// close gives the folder back, and removes what is temporary. It is called
// when no server runs in it (any more).
func (c *cluster) close() error {
	c.leave()
	var errs []error
	if c.socketTemp {
		errs = append(errs, os.RemoveAll(c.socketDir))
	}
	if c.temporary {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if c.lock != nil {
		errs = append(errs, unlock(c.lock))
		c.lock = nil
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("release data folder: %w", err)
	}
	return nil
}
