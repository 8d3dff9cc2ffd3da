// Package forward is a session's forwarder: it listens on the session's loopback, where programs expect a proxy,
// and carries bytes to the socket of the session's way to the web. See package sandbox.
//
// Both of its stages begin in the package's init; see package stage.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"deckhand/internal/sandbox/stage"
)

// The stages: the first starts the forwarder and becomes the session's program, the second is the forwarder.
const (
	forwarded = "forwarded"
	forwarder = "forwarder"
)

func init() {
	stage.Run(map[string]stage.Stage{forwarded: stage.For(becomeForwarded), forwarder: stage.For(becomeForwarder)})
}

// Variable holds the forwarder's address inside: host:port.
const Variable = "DECKHAND_WEB"

// Plan is the stages' plan.
type Plan struct {
	// Self is this program's path inside.
	Self string `json:"self"`
	// Web is the socket to which the forwarder carries bytes.
	Web string `json:"web"`
	// Proxy says that programs use the forwarder as their proxy.
	Proxy bool `json:"proxy,omitempty"`
}

// Words are the command line that starts a forwarder beside the program that follows.
func Words(p Plan) ([]string, error) { return stage.Words(p.Self, forwarded, p) }

// becomeForwarded starts the forwarder, and becomes the session's program with variables that point to it. It
// returns only on failure.
func becomeForwarded(p Plan, command []string) error {
	if len(command) == 0 {
		return errors.New("the forwarder has no program to start")
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	address := l.Addr().String()
	listener, err := l.(*net.TCPListener).File() //nolint:forcetypeassert // a TCP listener
	if err != nil {
		return fmt.Errorf("hand the listener on: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("start the forwarder: %w", err)
	}
	words, err := stage.Words(p.Self, forwarder, p)
	if err != nil {
		return err
	}
	// It inherits none of the program's files, gets none of its signals, and ends with this thread, which becomes
	// the program.
	runtime.LockOSThread()
	child, err := os.StartProcess(p.Self, words, &os.ProcAttr{
		Dir: "/", Env: append(os.Environ(), "GOMAXPROCS=2", "GOMEMLIMIT=16MiB"), Files: []*os.File{null, null, null, listener}, Sys: attributes(),
	})
	if err != nil {
		return fmt.Errorf("start the forwarder: %w", err)
	}
	_ = child.Release() // the kernel ends it
	path, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("find the session's program: %w", err)
	}
	env := append(os.Environ(), environ(address, p.Proxy)...)
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, command, last(env)))
}

// environ points programs to the forwarder: curl, git, pip, cargo, npm and Go read either spelling; Node's fetch
// needs a switch.
func environ(address string, proxy bool) []string {
	out := []string{Variable + "=" + address}
	if !proxy {
		return out
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		out = append(out, name+"=http://"+address, strings.ToLower(name)+"=http://"+address)
	}
	const here = "localhost,127.0.0.1,::1"
	return append(out, "NO_PROXY="+here, "no_proxy="+here, "NODE_USE_ENV_PROXY=1")
}

// last keeps the last entry of each name.
func last(env []string) []string {
	at := map[string]int{}
	var out []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if i, ok := at[name]; ok {
			out[i] = entry
			continue
		}
		at[name] = len(out)
		out = append(out, entry)
	}
	return slices.Clip(out)
}

// becomeForwarder carries bytes between the given listener's connections and the session's socket, until it is
// killed.
func becomeForwarder(p Plan, _ []string) error {
	const listenerFD = 3
	l, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return fmt.Errorf("take the listener: %w", err)
	}
	for {
		in, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go forward(in.(*net.TCPConn), p.Web) //nolint:forcetypeassert // of a TCP listener
	}
}

// forward carries one connection.
func forward(in *net.TCPConn, socket string) {
	defer in.Close() //nolint:errcheck // nothing is left to write
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return
	}
	defer conn.Close()          //nolint:errcheck // nothing is left to write
	out := conn.(*net.UnixConn) //nolint:forcetypeassert // a unix socket
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := io.Copy(out, in); err != nil || out.CloseWrite() != nil {
			_ = in.Close()
			_ = out.Close()
		}
	})
	both.Go(func() {
		if _, err := io.Copy(in, out); err != nil || in.CloseWrite() != nil {
			_ = in.Close()
			_ = out.Close()
		}
	})
	both.Wait()
}
