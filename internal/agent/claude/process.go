package claude

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude/reaper"
)

// Process is one running CLI with everything below it. All methods are safe for
// concurrent use; [Process.Next] is meant for one consumer.
type Process struct {
	o   Options
	log *zap.Logger
	pid int

	reaper *exec.Cmd
	orders *os.File // its end is the order to remove the tree
	report *bufio.Reader
	stdout *os.File
	stderr *os.File
	tail   *tail

	out   *queue
	in    *writer
	calls *calls
	life  *liveness
	mcp   *mcpServers

	stopOnce, killOnce, ordersOnce sync.Once
	// stopping is closed when Stop begins, and killed when the tree was
	// ordered to be removed.
	stopping, killed chan struct{}
	done             chan struct{}
	readerDone       chan struct{}
	stderrDone       chan struct{}

	mu sync.Mutex
	// fatal is why the reader gave the process up; lastResult the last result,
	// which explains some exits.
	fatal      error
	lastResult *Result
	version    string
	session    string
	corrupt    int
	noise      int
	exit       *ExitError
}

// stderrTail is how much of what the CLI writes to stderr is kept, in bytes.
const stderrTail = 16 << 10

// Start starts the CLI and returns once the program runs, or could not be
// started; nothing of it has been awaited or sent by then. ctx bounds only the
// start. The caller must see to it that the process ends, by [Process.Stop] or
// [Process.Kill], and may fetch what it says with [Process.Next].
func Start(ctx context.Context, o Options) (*Process, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	program, err := reaper.Program()
	if err != nil {
		return nil, fmt.Errorf("start claude: find this program: %w", err)
	}
	var files pipes
	defer files.closeChildEnds()
	stdin, stdout, stderr, orders, report, err := files.open()
	if err != nil {
		files.closeOwnEnds()
		return nil, fmt.Errorf("start claude: %w", err)
	}
	args := append([]string{"deckhand-reaper"}, o.Command...)
	cmd := &exec.Cmd{
		Path:       program,
		Args:       append(args, o.arguments()...),
		Env:        append(slices.Clip(o.Env), reaper.Variable+"="+o.Lifeline.atStart()),
		Dir:        o.Dir,
		Stdin:      files.child[0],
		Stdout:     files.child[1],
		Stderr:     files.child[2],
		ExtraFiles: files.child[3:],
		// No terminal of the bot's, neither for its signals nor for a program
		// that would ask for a password.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		files.closeOwnEnds()
		return nil, fmt.Errorf("start claude: %w", err)
	}
	files.closeChildEnds()

	p := &Process{
		o: o, log: o.Logger.With(zap.String("session", o.SessionID)),
		reaper: cmd, orders: orders, report: bufio.NewReader(report), stdout: stdout, stderr: stderr,
		tail: newTail(stderrTail), version: o.Version, session: o.SessionID,
		out: newQueue(), in: newWriter(stdin, o.WriteTimeout), calls: newCalls(), life: newLiveness(time.Now()),
		stopping: make(chan struct{}), killed: make(chan struct{}), done: make(chan struct{}),
		readerDone: make(chan struct{}), stderrDone: make(chan struct{}),
	}
	p.mcp = newMCPServers(p)

	release := o.Lifeline.hold(orders)
	unwatch := context.AfterFunc(ctx, p.dropOrders)
	p.pid, err = readStart(p.report)
	if !unwatch() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		release()
		p.dropOrders()
		_ = cmd.Wait() // it exits, having nothing to run; err says more than its status
		files.closeOwnEnds()
		return nil, fmt.Errorf("start claude: %w", err)
	}

	go p.read()
	go func() {
		defer close(p.stderrDone)
		p.tail.drain(stderr)
	}()
	go p.in.run()
	go func() {
		defer release()
		p.finish(report)
	}()
	return p, nil
}

// PID returns the process id of the CLI itself, or of the first program of its
// launcher.
func (p *Process) PID() int { return p.pid }

// Left lists the command lines of the programs that commands of the session have left running;
// see [reaper.Left].
func (p *Process) Left() [][]string { return reaper.Left(p.reaper.Process.Pid, p.pid) }

// ReaperPID returns the process id of the reaper. Everything that the CLI starts stays
// below it.
func (p *Process) ReaperPID() int { return p.reaper.Process.Pid }

// SessionID returns the id of the session that the process is in: the one it
// was started with, until a [ConversationReset] begins another. That is the one
// to resume.
func (p *Process) SessionID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// Done is closed when the process and everything below it are gone and all its
// output has been read; what of it was not fetched stays to be fetched.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the process ended; nil before Done is closed.
func (p *Process) Exit() *ExitError {
	select {
	case <-p.done:
		return p.exit
	default:
		return nil
	}
}

// Next returns the messages in order and waits for the next one. Messages that
// waited may have been merged, see [StreamEvent]. After the last message of an
// ended process it returns the *[ExitError], also for a clean exit.
func (p *Process) Next(ctx context.Context) (Message, error) {
	m, ended, err := p.out.next(ctx)
	if ended {
		<-p.done
		return nil, p.exit
	}
	return m, err
}

// read is the reader: it never waits for anything but the CLI.
func (p *Process) read() {
	defer close(p.readerDone)
	lines := newLineReader(p.stdout, p.o.MaxLine)
	for {
		line, err := lines.next()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
				p.giveUp(err)
			}
			return
		}
		if len(line) == 0 {
			continue
		}
		if line[0] != '{' {
			p.skipped(&p.noise, "skipped a line that is not JSON", line)
			continue
		}
		m, err := Decode(line)
		if err != nil {
			p.skipped(&p.corrupt, "skipped a line of corrupt JSON", line)
			continue
		}
		p.handle(m)
	}
}

// handle resolves what is not for the consumer and queues the rest.
func (p *Process) handle(m Message) {
	p.life.heard(m)
	switch m := m.(type) {
	case *controlResponse:
		if !p.calls.resolve(m) {
			p.log.Debug("answer to no request", zap.String("request_id", m.requestID))
		}
		return
	case *mcpRequest:
		p.mcp.serve(m)
		return
	case *CanUseTool:
		p.calls.open(m.RequestID)
	case *HookCallback:
		p.calls.open(m.RequestID)
	case *CancelRequest:
		p.calls.close(m.RequestID)
		p.mcp.cancelRequest(m.RequestID)
	case *RefusedRequest:
		p.refuse(m)
	case *Result:
		p.mu.Lock()
		p.lastResult = m
		if isUUID(m.SessionID) {
			p.session = m.SessionID
		}
		p.mu.Unlock()
	case *System:
		if m.Subtype == "init" && isUUID(m.SessionID) {
			p.mu.Lock()
			p.session = m.SessionID
			p.mu.Unlock()
		}
	}
	p.out.put(m)
}

// skipped counts a line that was dropped. The log gets its length only: it may
// hold anything.
func (p *Process) skipped(count *int, what string, line []byte) {
	p.mu.Lock()
	*count++
	n := *count
	p.mu.Unlock()
	p.log.Warn(what, zap.Int("bytes", len(line)), zap.Int("so_far", n))
}
