package postgres

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// victimEnv makes the test binary a process that starts a server in the folder
// it names, tells about it and waits to be killed.
const victimEnv = "DECKHAND_TEST_POSTGRES_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		os.Exit(beVictim(dir))
	}
	goleak.VerifyTestMain(unmaking{m})
}

// unmaking removes what [made] copies after the tests.
type unmaking struct{ *testing.M }

func (u unmaking) Run() int {
	code := u.M.Run()
	_ = os.RemoveAll(original.dir)
	return code
}

// original is a folder in which a server was started once and stopped.
var original struct {
	once sync.Once
	dir  string
	err  error
}

// made is a folder with a database in it, for tests that begin with one. It is a copy:
// initdb takes a second of the processor.
func made(t *testing.T) string {
	t.Helper()
	original.once.Do(func() {
		if original.dir, original.err = os.MkdirTemp("", "deckhand-made-"); original.err != nil {
			return
		}
		var s *Server
		if s, original.err = Start(timeoutContext(), Options{Dir: original.dir}); original.err == nil {
			original.err = s.Stop()
		}
	})
	if original.err != nil {
		t.Fatal(original.err)
	}
	dir := filepath.Join(t.TempDir(), "made")
	// With its owner: as root, PostgreSQL runs as another user.
	if out, err := exec.CommandContext(t.Context(), "cp", "-Rp", original.dir, dir).CombinedOutput(); err != nil {
		t.Fatalf("copy a database: %v: %s", err, out)
	}
	return dir
}

func beVictim(dir string) int {
	s, err := Start(timeoutContext(), Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.PID(), s.URL())
	<-s.Done()
	return 2
}

func TestServerKeepsWhatItHolds(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	for round := range 3 {
		s := startIn(t, Options{Dir: dir, Durable: round == 0})
		conn := connect(t, s)
		var n int
		_, err := conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS kept (n int)")
		if err == nil {
			_, err = conn.Exec(t.Context(), "INSERT INTO kept VALUES (1)")
		}
		if err == nil {
			err = conn.QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&n)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n != round+1 {
			t.Errorf("after start %d the table has %d rows", round+1, n)
		}
		stop(t, s)
	}
	s := startIn(t, Options{Dir: dir, Fresh: true})
	var exists bool
	if err := connect(t, s).QueryRow(t.Context(), "SELECT to_regclass('kept') IS NOT NULL").Scan(&exists); err != nil {
		t.Fatal(err)
	}
	if exists {
		t.Error("a fresh start has kept the table")
	}
}

func TestTemporaryServerLeavesNothing(t *testing.T) {
	t.Parallel()
	need(t)
	s := startIn(t, Options{})
	dir := s.cluster.dir
	connect(t, s)
	stop(t, s)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if alive(s.PID()) {
		t.Errorf("process %d is still there", s.PID())
	}
}

func TestServerIsPrivate(t *testing.T) {
	t.Parallel()
	need(t)
	s := startIn(t, Options{Dir: made(t)})
	info, err := os.Stat(s.cluster.socketDir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may enter the socket's folder: %v", info.Mode())
	}
	var addresses string
	if err := connect(t, s).QueryRow(t.Context(), "SHOW listen_addresses").Scan(&addresses); err != nil {
		t.Fatal(err)
	}
	if addresses != "" {
		t.Errorf("the server listens on %q", addresses)
	}
}

func TestFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	need(t)
	dir := made(t)
	startIn(t, Options{Dir: dir})
	_, err := Start(t.Context(), Options{Dir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("want ErrInUse with the owner's process id, got %v", err)
	}
}

func TestLongPathStillGetsASocket(t *testing.T) {
	t.Parallel()
	need(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-name/", 9))
	s := startIn(t, Options{Dir: dir})
	connect(t, s)
	stop(t, s)
	if _, err := os.Stat(s.cluster.socketDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", s.cluster.socketDir, err)
	}
}

// As root, PostgreSQL runs as a user who may not enter the folders of root.
func TestFolderThatOnlyItsOwnerMayEnter(t *testing.T) {
	t.Parallel()
	need(t)
	private := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := startIn(t, Options{Dir: filepath.Join(private, "postgres")})
		connect(t, s)
		stop(t, s)
	}
}

func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	need(t)
	dir := made(t)
	pid, kill := victim(t, dir)
	kill()
	eventually(t, "the server is gone", func() bool { return !servesFolder(pid, filepath.Join(dir, "data")) })

	// And another start finds the data in order, at once.
	connect(t, startIn(t, Options{Dir: dir}))
}

func TestStartAfterAKillWaitsForTheFormerServer(t *testing.T) {
	t.Parallel()
	need(t)
	dir := made(t)
	pid, kill := victim(t, dir)
	kill()
	s := startIn(t, Options{Dir: dir}) // while the old one is shutting down
	if servesFolder(pid, s.cluster.data) {
		t.Error("two servers on one folder")
	}
	connect(t, s)
}

// A pid file whose number has gone to another process of the same user keeps
// PostgreSQL from starting when it is left to itself.
func TestStalePIDFileOfAnInnocentProcess(t *testing.T) {
	t.Parallel()
	need(t)
	dir := made(t)
	s := startIn(t, Options{Dir: dir})
	stop(t, s)

	bystander := exec.CommandContext(t.Context(), "sleep", "60")
	bystander.SysProcAttr = &syscall.SysProcAttr{Credential: s.cluster.cred.syscall()}
	bystander.Dir = "/"
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	})
	stale := fmt.Sprintf("%d\n%s\n1\n5432\n\n\n  0 0\nready\n", bystander.Process.Pid, s.cluster.data)
	if err := os.WriteFile(filepath.Join(s.cluster.data, pidFileName), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}

	connect(t, startIn(t, Options{Dir: dir}))
	if !alive(bystander.Process.Pid) {
		t.Error("the bystander was killed")
	}
}

func TestServerThatEndsByItselfIsReported(t *testing.T) {
	t.Parallel()
	need(t)
	s := startIn(t, Options{Dir: made(t)})
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(waittest.Limit):
		t.Fatal("Done is not closed")
	}
	if s.Err() == nil {
		t.Error("no error for a killed server")
	}
	if err := s.Stop(); err == nil {
		t.Error("Stop hides that the server had ended")
	}
}

func TestInterruptedInitdbIsDoneAgain(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	half := filepath.Join(dir, "data.new")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, versionFileName), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	connect(t, startIn(t, Options{Dir: dir}))
}

func TestDataOfAnotherVersionIsNamed(t *testing.T) {
	t.Parallel()
	need(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", versionFileName), []byte("9.6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "PostgreSQL 9 (or start with --fresh") {
		t.Errorf("the error does not help: %v", err)
	}
}

// The watchdog is for systems without a parent-death signal, and works here too.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		let      func(*watchdog)
		survives bool
	}{
		{"a process whose parent is gone is ended", func(w *watchdog) { _ = w.pipe.Close(); _ = w.cmd.Wait() }, false},
		{"a release spares it", (*watchdog).release, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "sleep", "60")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w, err := watch(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			tc.let(w)
			if tc.survives {
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			_ = cmd.Wait()
			status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !ok || (status.Signal() == syscall.SIGINT) == tc.survives {
				t.Errorf("it ended by %v", status.Signal())
			}
		})
	}
}

// need skips a test on a machine without PostgreSQL.
func need(t *testing.T) {
	t.Helper()
	if _, err := Find(); err != nil {
		needtest.Missing(t, err.Error())
	}
}

func startIn(t *testing.T, o Options) *Server {
	t.Helper()
	if o.Dir != "" {
		o.Log = zaptest.NewLogger(t)
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(timeoutContext()) })
	return conn
}

// victim starts a process of its own that runs a server, and returns the
// server's process id and a way to kill the process without warning.
func victim(t *testing.T, dir string) (pid int, kill func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), victimEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("the victim did not start: %v", err)
	}
	number, _, _ := strings.Cut(line, " ")
	if pid, err = strconv.Atoi(number); err != nil {
		t.Fatal(err)
	}
	return pid, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("a minute later it is not true that %s", what)
}
