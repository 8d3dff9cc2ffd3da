package policy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/needtest"
)

// The programs of attack_test.go and truth_test.go run shut in: the test's own binary
// is started once under bwrap, and runs one command after another in a fresh copy of
// the fixture that lies at the same path as the one that the policy decides on.
// Inside there is no network but a loopback of its own, on which something listens.

func TestMain(m *testing.M) {
	if os.Getenv("DECKHAND_POLICY_SHUT_IN") != "" {
		if err := (&warden{top: os.Getenv("DECKHAND_POLICY_SHUT_IN")}).serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "shut in:", err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// listener is where the network is, inside.
const listener = "127.0.0.1:8099"

// shutIn is a process under bwrap that runs commands.
type shutIn struct {
	cmd   *exec.Cmd
	in    *json.Encoder
	out   *bufio.Scanner
	stdin io.Closer
}

// order is a command that is to be run.
type order struct {
	Command string
	Trace   bool // under strace
	Started bool // as the CLI does, with programs that only write down their words
	Keep    bool // in what the last one left
}

// outcome is what came of a command.
type outcome struct {
	Output  string   // the first 64 KiB
	Changed []string // what is not as it was, relative to the fixture: "ws/src/a.go"
	Leaked  []string // those of them that hold a secret now
	Fetched bool     // it reached the listener
	Facts   []fact   // of Trace
	Started [][]string
	Err     string
}

// startShutIn starts a process that works on a copy of a fixture.
func startShutIn(t testing.TB, top string) *shutIn {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const inside = "/tmp/shutin.test"
	beside := "--dir" // what lies beside the fixture can be written to
	if !strings.HasPrefix(top, "/tmp/") {
		beside = "--tmpfs"
	}
	c := exec.CommandContext(t.Context(), "bwrap", "--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
		"--size", "268435456", "--tmpfs", "/tmp", "--ro-bind", exe, inside, "--ro-bind", top, "/tmp/template", beside, filepath.Dir(top), "--chdir", "/tmp", inside)
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(top, "home"), "LC_ALL=C.UTF-8", "TOKEN=" + secretText, "TMPDIR=/tmp", "GOFLAGS=-mod=mod", "GOPROXY=http://" + listener,
		"GOTOOLCHAIN=local", "NO_UPDATE_NOTIFIER=1", "DECKHAND_POLICY_SHUT_IN=" + top,
	}
	c.Stderr = os.Stderr
	c.WaitDelay = time.Second
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &shutIn{cmd: c, in: json.NewEncoder(in), out: bufio.NewScanner(out), stdin: in}
	s.out.Buffer(nil, 64<<20)
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	return s
}

// run runs a command, and returns what came of it.
func (s *shutIn) run(o order) (outcome, error) {
	var got outcome
	if err := s.in.Encode(o); err != nil {
		return got, fmt.Errorf("%q: %w", o.Command, err)
	}
	if !s.out.Scan() {
		return got, fmt.Errorf("%q ended what runs commands: %w", o.Command, s.out.Err())
	}
	if err := json.Unmarshal(s.out.Bytes(), &got); err != nil {
		return got, fmt.Errorf("%q: %w: %s", o.Command, err, s.out.Bytes())
	}
	if got.Err != "" {
		return got, fmt.Errorf("%q: %s", o.Command, got.Err)
	}
	return got, nil
}

// needShutIn skips, or fails where everything must be there, without the tools.
func needShutIn(t testing.TB, tools ...string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("commands are shut in by bwrap")
	}
	needtest.Programs(t, append(tools, "bwrap", "bash", "git")...) // without which nothing harmful is run
}

// warden runs commands, inside.
type warden struct {
	top     string
	before  map[string]string
	dirty   bool
	reached atomic.Bool
}

func (w *warden) serve(in io.Reader, out io.Writer) error {
	if err := w.listen(); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll("/tmp/bin", 0o755), os.WriteFile("/tmp/bin/evil", []byte(recorder), 0o755)); err != nil { //nolint:gosec // a program
		return err
	}
	w.dirty = true
	orders := bufio.NewScanner(in)
	orders.Buffer(nil, 1<<20)
	answers := json.NewEncoder(out)
	for orders.Scan() {
		var o order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			return err
		}
		got, err := w.run(o)
		if err != nil {
			got.Err = err.Error()
		}
		if err := answers.Encode(got); err != nil {
			return err
		}
	}
	return orders.Err()
}

func (w *warden) listen() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", listener)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.reached.Store(true)
			_ = c.Close()
		}
	}()
	return nil
}

// fresh makes the copy anew, if the last command changed it.
func (w *warden) fresh() error {
	if !w.dirty {
		return nil
	}
	if err := clearFolder(w.top); err != nil {
		return err
	}
	if b, err := exec.Command("cp", "-a", "/tmp/template", w.top).CombinedOutput(); err != nil { //nolint:noctx // it ends by itself
		return fmt.Errorf("%w: %s", err, b)
	}
	var err error
	w.before, err = lookAt(w.top)
	w.dirty = false
	return err
}

// clearFolder removes a folder, whatever its modes.
func clearFolder(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = exec.Command("chmod", "-R", "u+rwx", dir).Run() //nolint:noctx // it ends by itself
	return os.RemoveAll(dir)
}

const (
	trace   = "/tmp/trace"
	started = "/tmp/started" // a folder in which programs write down their words
)

func (w *warden) run(o order) (outcome, error) {
	if !o.Keep {
		if err := w.fresh(); err != nil {
			return outcome{}, err
		}
	}
	w.reached.Store(false)
	out, err := os.CreateTemp("/tmp", "output")
	if err != nil {
		return outcome{}, err
	}
	defer os.Remove(out.Name()) //nolint:errcheck // it goes with the sandbox
	defer out.Close()           //nolint:errcheck // it is only read
	argv := []string{"bash", "--norc", "-c", o.Command}
	if o.Trace {
		argv = append([]string{"strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-e", "signal=none", "-e", "trace=" + traced, "-o", trace}, argv...)
	}
	argv = limited(argv)
	c := exec.Command(argv[0], argv[1:]...) //nolint:noctx // patience ends it
	if o.Started {
		if err := errors.Join(os.RemoveAll(started), os.Mkdir(started, 0o700)); err != nil {
			return outcome{}, err
		}
		var env []string
		argv, env = startedOrder(o.Command)
		argv = limited(argv)
		c = exec.Command(argv[0], argv[1:]...) //nolint:noctx // patience ends it
		c.Env = env
	} else {
		c.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "DECKHAND_") })
	}
	c.Dir, c.Stdout, c.Stderr = filepath.Join(w.top, "ws"), out, out
	c.Stdin = strings.NewReader("y\n")
	if err := c.Start(); err != nil {
		return outcome{}, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // how it ends is no matter
	}()
	for p := (patience{}); !p.over(ended); {
		p.look()
	}
	_ = syscall.Kill(-1, syscall.SIGKILL) // what it left running; this process and the first one stay
	<-ended
	return w.look(o, out)
}

// limited is a command that has a gigabyte of memory and a minute of CPU at most, where the
// machine can limit it: what is composed at random may take all, as mawk does for "$72173119".
func limited(argv []string) []string {
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		return argv
	}
	return append([]string{prlimit, "--data=1073741824", "--cpu=60"}, argv...)
}

// patience says when a command that does not end has done all that it will do: when its
// processes have used some seconds of CPU, or when none of them has run for a while,
// whatever the clock says, so that a busy machine sees what a quiet one sees.
type patience struct {
	used  int // by all of its processes, in hundredths of a second of CPU
	still int // how often in a row nothing had run, nor wanted to
}

const (
	mostCPU   = 600
	mostStill = 20 // looks, ten a second
)

// over waits for the command's end, or for the time of the next look; it reports whether
// there is nothing more to wait for.
func (p *patience) over(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-time.After(time.Second / 10):
		return p.used > mostCPU || p.still > mostStill
	}
}

// look looks at all processes inside but this one and the first.
func (p *patience) look() {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	used, running := 0, false
	for _, file := range files {
		b, err := os.ReadFile(file)
		if pid := filepath.Base(filepath.Dir(file)); err != nil || pid == "1" || pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		_, rest, _ := strings.Cut(string(b[bytes.LastIndexByte(b, ')')+1:]), " ")
		f := strings.Fields(rest)
		running = running || !strings.Contains("STZX", f[0])
		for _, ticks := range f[11:15] { // its own and its children's, of the user and of the system
			n, _ := strconv.Atoi(ticks)
			used += n
		}
	}
	if p.still++; running || used != p.used {
		p.still = 0
	}
	p.used = used
}

// look finds out what a command did.
func (w *warden) look(o order, out *os.File) (outcome, error) {
	got := outcome{Fetched: w.reached.Load()}
	text := make([]byte, 64<<10)
	n, _ := out.ReadAt(text, 0)
	got.Output = strings.ToValidUTF8(string(text[:n]), "?")
	after, err := lookAt(w.top)
	if err != nil {
		return got, err
	}
	for _, p := range changed(w.before, after) {
		got.Changed = append(got.Changed, strings.TrimPrefix(p, "/"))
		if b, err := os.ReadFile(w.top + p); err == nil && shows(string(b)) {
			got.Leaked = append(got.Leaked, strings.TrimPrefix(p, "/"))
		}
	}
	slices.Sort(got.Changed)
	w.dirty = w.dirty || len(got.Changed) > 0
	if o.Started {
		if got.Started, err = readStarted(); err != nil {
			return got, err
		}
	}
	if o.Trace {
		b, err := os.ReadFile(trace)
		if err != nil {
			return got, err
		}
		got.Facts = readTrace(b, filepath.Join(w.top, "ws"))
		_ = os.Remove(trace)
	}
	return got, nil
}

// lookAt is what lies in a folder: path to kind and content.
func lookAt(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		var info os.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if err != nil { // a command may have taken away the right to see it
			all[p[len(dir):]] = err.Error()
			return nil
		}
		v := info.Mode().String()
		switch {
		case d.Type()&os.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			v += to
		case d.Type().IsRegular():
			b, _ := os.ReadFile(p)
			v += fmt.Sprintf("%x", sha256.Sum256(b))
		}
		all[p[len(dir):]] = v
		return nil
	})
	return all, err
}

// disguises are a secret as programs print it that turn it round or encode it.
var disguises = func() [][]byte {
	reversed := []byte(secretText)
	slices.Reverse(reversed)
	var octal strings.Builder
	for _, c := range []byte(secretText) {
		fmt.Fprintf(&octal, "%03o", c)
	}
	return [][]byte{
		[]byte(secretText), reversed, fmt.Appendf(nil, "%x", secretText), []byte(octal.String()),
		[]byte(base64.StdEncoding.EncodeToString([]byte(secretText))[:14]), []byte(base32.StdEncoding.EncodeToString([]byte(secretText))[:17]),
	}
}()

// shows reports whether a text holds a secret, or the name of a file outside.
func shows(s string) bool {
	if strings.Contains(s, "secret2.json") {
		return true
	}
	tight := []byte(strings.Map(func(r rune) rune {
		if r <= ' ' {
			return -1
		}
		return r
	}, s))
	return slices.ContainsFunc(disguises, func(d []byte) bool {
		return bytes.Contains(tight, d) || bytes.Contains(bytes.ToUpper(tight), bytes.ToUpper(d))
	})
}
