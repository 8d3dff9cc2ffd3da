package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a child may take to stop before it is killed.
	stopGrace = 20 * time.Second
	// restartPause keeps a child that dies at once from looping.
	restartPause = 300 * time.Millisecond
)

type childOptions struct {
	args      []string
	env       map[string]string // besides the demo's own environment
	logFile   string
	restarted func() // called when a new process runs in place of one that died
}

// child is this program in a separate process, restarted when it dies. One goroutine owns it, on its own OS thread:
// the kernel kills a child with the thread that started it.
type child struct {
	o      childOptions
	failed chan struct{} // closed when it ended before it ever worked
	done   chan struct{} // closed when the goroutine has ended
	quit   chan struct{}
	once   sync.Once

	// works is set once the child has worked: only then is it restarted.
	works atomic.Bool

	mu  sync.Mutex
	cmd *exec.Cmd
}

func startChild(o childOptions) (*child, error) {
	c := &child{o: o, failed: make(chan struct{}), done: make(chan struct{}), quit: make(chan struct{})}
	started := make(chan error)
	go c.own(started)
	return c, <-started
}

func (c *child) own(started chan<- error) {
	runtime.LockOSThread()
	defer close(c.done)
	for first := true; ; first = false {
		exited, err := c.start()
		if first {
			started <- err
		} else if err == nil && c.o.restarted != nil {
			c.o.restarted()
		}
		if err != nil {
			return
		}
		select {
		case <-exited:
		case <-c.quit:
			c.end(exited)
			return
		}
		if !c.works.Load() {
			close(c.failed)
			return
		}
		select {
		case <-c.quit:
			return
		case <-time.After(restartPause):
		}
	}
}

func (c *child) start() (exited <-chan struct{}, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	log, err := os.OpenFile(c.o.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the bot's log: %w", err)
	}
	cmd := exec.Command(self, c.o.args...) //nolint:noctx // it is stopped by hand, first politely
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if _, ours := c.o.env[name]; !ours && !strings.HasPrefix(name, "DECKHAND_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	for name, value := range c.o.env {
		if value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	err = cmd.Start()
	_ = log.Close() // the child has its own
	if err != nil {
		return nil, fmt.Errorf("start the bot: %w", err)
	}
	c.mu.Lock()
	c.cmd = cmd
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(done)
	}()
	return done, nil
}

// end stops the running process and waits for it.
func (c *child) end(exited <-chan struct{}) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(stopGrace):
		_ = c.cmd.Process.Kill()
		<-exited
	}
}

func (c *child) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil || c.cmd.Process == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// stop ends the child permanently and waits for it. It may be called twice.
func (c *child) stop() {
	c.once.Do(func() { close(c.quit) })
	<-c.done
}

// lastWords is the end of the child's log, where it says why it ended.
func (c *child) lastWords() string {
	b, err := os.ReadFile(c.o.logFile)
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(string(b))
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if i := strings.LastIndex("\n"+text, "\nbot: "); i >= 0 { // one error may have several lines
		last = text[i:]
	}
	return strings.TrimPrefix(last, "bot: ") + " (more in " + c.o.logFile + ")"
}
