package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/needtest"
	"deckhand/internal/playground/model"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/waittest"
)

// What every sandbox of this machine promises is tried in each of them.
var kinds = []struct {
	name string
	spec Spec
}{
	{"bwrap", Spec{Kind: Bwrap}},
	{"gvisor", Spec{Kind: GVisor}},
	{"docker", Spec{Kind: Container, Engine: docker, Image: sandboxtest.Image}},
	{"podman", Spec{Kind: Container, Engine: podman, Image: sandboxtest.Image}},
}

// stopEngines has the engines end with the test's binary.
var stopEngines = sync.OnceFunc(func() { afterwards = append(afterwards, sandboxtest.Stop) })

func inEachKind(t *testing.T, test func(t *testing.T, spec Spec)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			switch k.spec.Kind {
			case Container:
				stopEngines()
				sandboxtest.Engine(t, k.spec.Engine)
			case GVisor:
				theProgram(t, "runsc")
			default:
				theProgram(t, "bwrap")
			}
			test(t, k.spec)
		})
	}
}

// theProgram skips the test where there is no such program, or fails it where everything
// is required.
func theProgram(t *testing.T, name string) {
	t.Helper()
	needtest.Program(t, name)
}

// aSession has a data folder with what is nobody's business, a workspace and a home in it,
// and a socket.
type aSession struct {
	Session
	data, secret string
	model        *net.UnixListener
}

func newSession(t *testing.T) *aSession {
	t.Helper()
	data, err := os.MkdirTemp("", "deckhand-test-") // short: a socket's path has 107 bytes
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(data)) })
	s := &aSession{data: data, secret: filepath.Join(data, "home", "2", "transcript")}
	for _, d := range []string{"workspaces/1", "home/1", "home/2", "caches", "sockets/1"} {
		must(t, os.MkdirAll(filepath.Join(data, d), 0o700))
	}
	must(t, os.WriteFile(s.secret, []byte("of another thread"), 0o600))
	self, err := os.Executable()
	must(t, err)
	s.Session = Session{
		Name: "deckhand-test-" + strings.ToLower(rand.Text()[:8]), Owner: "deckhand-test",
		Workspace: filepath.Join(data, "workspaces/1"), Home: filepath.Join(data, "home/1"), CacheDir: filepath.Join(data, "caches"),
		Hidden: []string{data}, Socket: filepath.Join(data, "sockets/1/model.sock"), Program: []string{self, insideRole},
		Env: []string{"HOME=" + filepath.Join(data, "home/1"), "PATH=/usr/bin:/bin", "TOKEN=it's a \"token\" $HOME"},
	}
	s.model, err = net.ListenUnix("unix", &net.UnixAddr{Name: s.Socket, Net: "unix"})
	must(t, err)
	t.Cleanup(func() { _ = s.model.Close() })
	return s
}

// prepare returns a command in the sandbox, which is closed after the test.
func (s *aSession) prepare(t *testing.T, spec Spec, args ...string) *exec.Cmd {
	t.Helper()
	sandbox, err := New(spec)
	must(t, err)
	box, err := sandbox.Prepare(t.Context(), s.Session)
	must(t, err)
	t.Cleanup(func() { must(t, box.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, box.Command[0], append(box.Command[1:], args...)...)
	cmd.Env, cmd.Dir = box.Env, s.Workspace
	return cmd
}

func (s *aSession) look(t *testing.T, spec Spec, l look) look {
	t.Helper()
	request, err := json.Marshal(l)
	must(t, err)
	cmd := s.prepare(t, spec, "look", string(request))
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errOut.Bytes())
	}
	must(t, json.Unmarshal(out, &l))
	return l
}

func TestCheck(t *testing.T) {
	inEachKind(t, func(t *testing.T, spec Spec) {
		for _, network := range []Network{Off, Open} {
			spec.Network = network
			sandbox, err := New(spec)
			must(t, err)
			if err := sandbox.Check(t.Context(), tryRun); err != nil {
				t.Errorf("network %s: %v", network, err)
			}
		}
		wall, err := spec.Wall(t.Context(), tryRun)
		must(t, err)
		wanted := []string{"kernel Linux " + kernelRelease() + " (this machine's), ", ", no capabilities and none to gain, no new privileges, system calls filtered (seccomp)", "limits kept by"}
		if spec.Kind == GVisor {
			wanted = []string{"(the sandbox's own), limits kept by"}
		}
		for _, want := range wanted {
			if !strings.Contains(wall, want) {
				t.Errorf("no %q in %q", want, wall)
			}
		}
	})
}

func TestSeesItsOwnAndNoMore(t *testing.T) {
	inEachKind(t, func(t *testing.T, spec Spec) {
		s := newSession(t)
		seen := t.TempDir()
		must(t, os.WriteFile(filepath.Join(seen, "tool"), []byte("a tool"), 0o600))
		must(t, os.WriteFile(filepath.Join(s.Workspace, "file"), []byte("work"), 0o600))
		out, err := exec.CommandContext(t.Context(), "git", "init", "-q", s.Workspace).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		spec.See, spec.Caches = []string{seen}, []string{"go/pkg/mod"}
		in := func(parts ...string) string { return filepath.Join(parts...) }
		l := s.look(t, spec, look{
			Read: []string{in(s.Workspace, "file"), in(seen, "tool"), s.secret, "/etc/shadow", "/proc/1/root" + s.secret},
			Write: []string{
				in(s.Workspace, "made"), in(s.Home, "made"), in(s.Home, "go/pkg/mod/made"), in("/tmp", "made"), in(s.Workspace, ".git/index"),
				in(seen, "made"), "/usr/made", "/made", in(s.data, "home/2/made"), in(s.Workspace, ".git/config"), in(s.Workspace, ".git/hooks/pre-commit"),
				s.Program[0],
			},
		})
		for path, want := range map[string]string{
			in(s.Workspace, "file"): "work", in(seen, "tool"): "a tool",
			in(s.Workspace, "made"): "written", in(s.Home, "made"): "written", in(s.Home, "go/pkg/mod/made"): "written",
			"/tmp/made": "written", in(s.Workspace, ".git/index"): "written",
		} {
			if l.Said[path] != want {
				t.Errorf("%s: %q, want %q", path, l.Said[path], want)
			}
		}
		for _, path := range []string{
			s.secret, "/etc/shadow", "/proc/1/root" + s.secret, in(seen, "made"), "/usr/made", "/made", in(s.data, "home/2/made"),
			in(s.Workspace, ".git/config"), in(s.Workspace, ".git/hooks/pre-commit"), s.Program[0],
		} {
			if !strings.HasPrefix(l.Said[path], "error: ") {
				t.Errorf("%s: %q, want an error", path, l.Said[path])
			}
		}
		for _, path := range []string{in(s.Workspace, "made"), in(s.Home, "made"), in(s.CacheDir, "go/pkg/mod/made")} {
			info, err := os.Stat(path)
			if err != nil {
				t.Errorf("what was written inside is not outside: %v", err)
			} else if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid != os.Getuid() {
				t.Errorf("%s belongs to %d", path, uid)
			}
		}
	})
}

func TestMayDoNoMore(t *testing.T) {
	inEachKind(t, func(t *testing.T, spec Spec) {
		s := newSession(t)
		spec.Limits.Files = 700
		s.Dir = filepath.Join(s.Workspace, "a folder of it")
		must(t, os.Mkdir(s.Dir, 0o755))
		l := s.look(t, spec, look{})
		for name, want := range map[string]string{"NoNewPrivs": "1", "CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapBnd": "0000000000000000"} {
			if l.Status[name] != want {
				t.Errorf("%s is %q, want %q", name, l.Status[name], want)
			}
		}
		if l.Core != 0 || l.Files != 700 {
			t.Errorf("core files of %d bytes, %d open files", l.Core, l.Files)
		}
		if l.Dir != s.Dir {
			t.Errorf("works in %s, want %s", l.Dir, s.Dir)
		}
		if l.Host == hostOf(t) {
			t.Errorf("knows that it is on %s", l.Host)
		}
		for _, want := range []string{"TOKEN=it's a \"token\" $HOME", "HOME=" + s.Home, "TMPDIR=/tmp"} {
			if !slices.Contains(l.Env, want) {
				t.Errorf("%s is not in its environment: %q", want, l.Env)
			}
		}
		for _, entry := range l.Env {
			switch name, _, _ := strings.Cut(entry, "="); name {
			case "TOKEN", "HOME", "TMPDIR", "PATH", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0":
			case "HOSTNAME", "TERM", "container", "PWD": // the engines' own
			default:
				t.Errorf("its environment has %s, which is not the session's", name)
			}
		}
	})
}

// TestForwarder: what listens on loopback inside carries bytes to the session's second
// socket and back, ends of both ways too; the program is told by its environment, and is
// what ends the sandbox, with its own status.
func TestForwarder(t *testing.T) {
	try := func(t *testing.T, spec Spec) {
		s := newSession(t)
		s.Web = filepath.Join(filepath.Dir(s.Socket), "web")
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", s.Web)
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				said, _ := io.ReadAll(conn) // what is missing is seen
				_, _ = io.WriteString(conn, "heard "+string(said))
				_ = conn.Close()
			}
		}()
		spec.Network, spec.Domains = Domains, []string{"example.com"}
		if spec.Kind != None {
			sandbox, err := New(spec)
			must(t, err)
			must(t, sandbox.Check(t.Context(), tryRun))
		}
		cmd := s.prepare(t, spec, "forward")
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		if cmd.ProcessState.ExitCode() != 7 {
			t.Fatalf("%v\n%s", err, errOut.Bytes())
		}
		want := regexp.MustCompile(`^heard round 0\nheard round 1\nheard round 2\n(http://127\.0\.0\.1:\d+) (http://127\.0\.0\.1:\d+)\n$`)
		if m := want.FindSubmatch(out); m == nil || !bytes.Equal(m[1], m[2]) {
			t.Errorf("%q", out)
		}
	}
	inEachKind(t, try)
	t.Run("none", func(t *testing.T) { try(t, Spec{Kind: None}) })
}

func hostOf(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	must(t, err)
	return name
}

func TestNetworkIsOffOrOpen(t *testing.T) {
	inEachKind(t, func(t *testing.T, spec Spec) {
		host := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(host.Close)
		tcp := "tcp " + host.Listener.Addr().String()
		for network, want := range map[Network]string{Off: "error: ", Open: "connected"} {
			spec.Network = network
			s := newSession(t)
			unix := "unix " + s.Socket
			l := s.look(t, spec, look{Dial: []string{tcp, unix}})
			if !strings.HasPrefix(l.Said[tcp], want) {
				t.Errorf("network %s, this machine's loopback: %q, want %q", network, l.Said[tcp], want)
			}
			if l.Said[unix] != "connected" {
				t.Errorf("network %s, the model's socket: %q", network, l.Said[unix])
			}
			if l.Loop != "works" {
				t.Errorf("network %s, its own loopback: %s", network, l.Loop)
			}
		}
	})
}

// TestTalks: what is written arrives at once, line by line, both ways, and so does how it
// ended. A request to end is passed on by engines of containers; bwrap and runsc end by
// it themselves, and what is in them with them.
func TestTalks(t *testing.T) {
	inEachKind(t, func(t *testing.T, spec Spec) {
		for _, end := range []struct {
			how    string
			end    func(*exec.Cmd, io.Closer) error
			status int
		}{
			{"the end of its input", func(_ *exec.Cmd, in io.Closer) error { return in.Close() }, 7},
			{"SIGTERM", func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) }, 143},
		} {
			cmd := newSession(t).prepare(t, spec, "talk")
			stdin, err := cmd.StdinPipe()
			must(t, err)
			stdout, err := cmd.StdoutPipe()
			must(t, err)
			cmd.Stderr = os.Stderr
			must(t, cmd.Start())
			lines := bufio.NewReader(stdout)
			for _, word := range []string{"one", "two"} {
				_, err := io.WriteString(stdin, word+"\n")
				must(t, err)
				if line, err := lines.ReadString('\n'); line != "heard "+word+"\n" {
					t.Fatalf("heard %q (%v)", line, err)
				}
			}
			must(t, end.end(cmd, stdin))
			err = cmd.Wait()
			if spec.Kind != Container && end.status == 143 {
				continue // that it ended is enough
			}
			if cmd.ProcessState.ExitCode() != end.status {
				t.Errorf("after %s: %v, want status %d", end.how, err, end.status)
			}
		}
	})
}

// TestEndsWithItsProcess: however the process that was started ends, nothing of the
// session is left once the box is closed, or what is left is swept, not even what has a
// session of its own.
func TestEndsWithItsProcess(t *testing.T) {
	inEachKind(t, func(t *testing.T, spec Spec) {
		sandbox, err := New(spec)
		must(t, err)
		t.Run("closed", func(t *testing.T) {
			s := newSession(t)
			ended, box := s.killed(t, sandbox)
			must(t, box.Close())
			ended()
		})
		t.Run("swept", func(t *testing.T) {
			sweeper, ok := sandbox.(Sweeper)
			if !ok {
				return // nothing of it runs on
			}
			s := newSession(t)
			s.Owner = s.Name
			ended, _ := s.killed(t, sandbox)
			must(t, sweeper.Sweep(t.Context(), "another bot"))
			must(t, sweeper.Sweep(t.Context(), s.Owner))
			ended()
		})
	})
}

// killed starts two processes in the sandbox, which hold a connection each, and kills what
// was started outside. What it returns waits for the end of the connections.
func (s *aSession) killed(t *testing.T, sandbox Sandbox) (ended func(), box *Box) {
	t.Helper()
	box, err := sandbox.Prepare(t.Context(), s.Session)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), box.Command[0], append(box.Command[1:], "hold", s.Socket)...)
	cmd.Env, cmd.Dir, cmd.Stderr = box.Env, s.Workspace, os.Stderr
	must(t, cmd.Start())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait()                      // it is killed
		_ = s.model.SetDeadline(time.Now()) // nobody connects any more
	}()
	must(t, s.model.SetDeadline(time.Now().Add(waittest.Limit)))
	var held []net.Conn
	for range 2 {
		conn, err := s.model.Accept()
		must(t, err)
		held = append(held, conn)
	}
	must(t, cmd.Process.Kill())
	<-gone
	return func() {
		for _, conn := range held {
			must(t, conn.SetDeadline(time.Now().Add(waittest.Limit)))
			if n, err := conn.Read(make([]byte, 1)); n != 0 || os.IsTimeout(err) {
				t.Error("a process of the session is left")
			}
			_ = conn.Close()
		}
	}, box
}

// TestClaudeTakesATurn: the real CLI, whose only way to the model is the socket, is asked
// to run a command.
func TestClaudeTakesATurn(t *testing.T) {
	cli := needtest.Claude(t)
	inEachKind(t, func(t *testing.T, spec Spec) {
		s := newSession(t)
		server, err := model.New(model.Options{})
		must(t, err)
		web := &http.Server{Handler: server, ReadHeaderTimeout: waittest.Limit}
		go func() { _ = web.Serve(s.model) }()
		t.Cleanup(func() { _ = web.Close() })
		s.Program = []string{cli}
		s.Env = claude.Environ(nil, map[string]string{
			"HOME": s.Home, "CLAUDE_CONFIG_DIR": filepath.Join(s.Home, ".claude"), "SHELL": "/bin/bash",
			"ANTHROPIC_BASE_URL": "http://model", "ANTHROPIC_UNIX_SOCKET": s.Socket, "ANTHROPIC_API_KEY": "worthless",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
		})
		sandbox, err := New(spec)
		must(t, err)
		box, err := sandbox.Prepare(t.Context(), s.Session)
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
		t.Cleanup(cancel)
		p, err := claude.Start(ctx, claude.Options{
			Command: box.Command, Env: box.Env, Dir: s.Workspace, SessionID: uuid.NewString(),
			InitializeTimeout: waittest.Limit, RequestTimeout: waittest.Limit,
		})
		must(t, err)
		t.Cleanup(func() {
			p.Kill()
			<-p.Done()
			must(t, box.Close())
		})
		_, err = p.Initialize(ctx, claude.InitializeRequest{})
		must(t, err)
		must(t, p.Prompt(uuid.NewString(), claude.Text("tool: Bash {\"command\":\"pwd > where && ls -l where && git init -q .\"}\nsay: done")))
		for {
			m, err := p.Next(ctx)
			must(t, err)
			switch m := m.(type) {
			case *claude.CanUseTool:
				must(t, p.Allow(m.RequestID, m.Input))
			case *claude.Result:
				if m.IsError || m.Text != "done" {
					t.Errorf("the turn ended with %q, error %v", m.Text, m.IsError)
				}
				where, err := os.ReadFile(filepath.Join(s.Workspace, "where"))
				if err != nil || string(where) != s.Workspace+"\n" {
					t.Errorf("the command was not run: %q, %v", where, err)
				}
				if _, err := os.Stat(filepath.Join(s.Workspace, ".git/HEAD")); err != nil {
					t.Errorf("git was not run: %v", err)
				}
				return
			}
		}
	})
}
