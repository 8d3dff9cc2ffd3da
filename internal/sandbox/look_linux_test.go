package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func init() { insideProgram = inside }

// look is what the program inside is asked, and what it answers.
type look struct {
	Read  []string // files
	Write []string // files, which are made or appended to
	Dial  []string // tcp and unix addresses: "tcp 127.0.0.1:80"

	Said   map[string]string // by path or address: what it read, "written", "connected", or why not
	Env    []string
	UID    int
	Dir    string
	Host   string
	Status map[string]string // of /proc/self/status
	Files  uint64            // RLIMIT_NOFILE
	Core   uint64
	Loop   string // whether something can listen on loopback and be reached there
}

// inside plays the program: "look" JSON; "privileged" asks for privileged files; "forward" speaks to the forwarder; "hold" SOCKET connects, and starts a process in a
// session of its own that does, too; "talk" answers lines until the end, and to SIGTERM
// with 143.
func inside(args []string) int {
	var err error
	switch ctx := context.Background(); args[0] {
	case "look":
		err = lookAround(ctx, args[1])
	case "hold":
		err = hold(ctx, args[1], len(args) > 2)
	case "privileged":
		err = makePrivileged()
	case "forward":
		err = askForwarder(ctx)
	case "talk":
		return talk()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// askForwarder says something to the forwarder, ends it, and prints what comes back: as
// many lines as there are rounds, each by a connection of its own.
func askForwarder(ctx context.Context) error {
	for round := range 3 {
		conn, err := dialer.DialContext(ctx, "tcp", os.Getenv(WebVariable))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(conn, "round %d", round); err != nil {
			return err
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return err
		}
		said, err := io.ReadAll(conn)
		if err != nil {
			return err
		}
		fmt.Println(string(said))
	}
	fmt.Println(os.Getenv("HTTP_PROXY"), os.Getenv("https_proxy"))
	os.Exit(7) // which whoever started it hears of
	return nil
}

// dialer gives up: where there is no network nobody may answer.
var dialer = net.Dialer{Timeout: time.Minute}

func lookAround(ctx context.Context, request string) error {
	var l look
	if err := json.Unmarshal([]byte(request), &l); err != nil {
		return err
	}
	l.Said = map[string]string{}
	say := func(what, done string, err error) {
		if err != nil {
			done = "error: " + err.Error()
		}
		l.Said[what] = done
	}
	for _, p := range l.Read {
		content, err := os.ReadFile(p)
		say(p, string(content), err)
	}
	for _, p := range l.Write {
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err == nil {
			_, err = f.WriteString("from inside\n")
			_ = f.Close()
		}
		say(p, "written", err)
	}
	for _, a := range l.Dial {
		network, address, _ := strings.Cut(a, " ")
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			_ = conn.Close()
		}
		say(a, "connected", err)
	}
	l.Env, l.UID = os.Environ(), os.Getuid()
	l.Dir, _ = os.Getwd()
	l.Host, _ = os.Hostname()
	l.Status = map[string]string{}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		l.Status[name] = strings.TrimSpace(value)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	l.Files = limit.Max
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return err
	}
	l.Core = limit.Max
	l.Loop = loopback(ctx)
	return json.NewEncoder(os.Stdout).Encode(l)
}

func loopback(ctx context.Context) string {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	conn, err := dialer.DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return err.Error()
	}
	_ = conn.Close()
	return "works"
}

// hold keeps a connection for as long as it lives.
func hold(ctx context.Context, socket string, last bool) error {
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	if !last {
		child := exec.CommandContext(ctx, os.Args[0], insideRole, "hold", socket, "last")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

func talk() int {
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for {
		select {
		case <-terms:
			return 143
		case line, ok := <-lines:
			if !ok {
				return 7
			}
			fmt.Println("heard " + filepath.Base(line))
		}
	}
}
