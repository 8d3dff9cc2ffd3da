package claude

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
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

// Start starts the CLI and returns once the program runs, or could not be
// started; nothing of it has been awaited or sent by then. ctx bounds only the
// start. The caller must see to it that the process ends, by [Process.Stop] or
// [Process.Kill], and may fetch what it says with [Process.Next].
func Start(ctx context.Context, o Options) (*Process, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	program, err := reaperProgram()
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
		Env:        append(o.Env[:len(o.Env):len(o.Env)], reaperVariable+"=1"),
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
		tail: newTail(o.StderrTail), version: o.Version, session: o.SessionID,
		out: newQueue(), in: newWriter(stdin, o.WriteTimeout), calls: newCalls(), life: newLiveness(time.Now()),
		stopping: make(chan struct{}), killed: make(chan struct{}), done: make(chan struct{}),
		readerDone: make(chan struct{}), stderrDone: make(chan struct{}),
	}
	p.mcp = newMCPServers(p)

	unwatch := context.AfterFunc(ctx, p.dropOrders)
	p.pid, err = readStart(p.report)
	if !unwatch() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.dropOrders()
		_ = cmd.Wait() // it exits, having nothing to run; err says more than its status
		files.closeOwnEnds()
		if why := ctx.Err(); why == nil && errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("%w: %s", err, o.Command[0])
		}
		return nil, fmt.Errorf("start claude: %w", err)
	}

	go p.read()
	go func() {
		defer close(p.stderrDone)
		p.tail.drain(stderr)
	}()
	go p.in.run()
	go p.finish(report)
	return p, nil
}

// PID returns the process id of the CLI itself, or of the first program of its
// launcher.
func (p *Process) PID() int { return p.pid }

// ReaperPID returns the process id of the reaper above the CLI.
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

// Corrupt returns how many lines were skipped because they were not valid
// JSON, and how many did not even begin like it.
func (p *Process) Corrupt() (corrupt, noise int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.corrupt, p.noise
}

// read is the reader: it never waits for anything but the CLI.
func (p *Process) read() {
	defer close(p.readerDone)
	lines := newLineReader(p.stdout, p.o.MaxLine)
	var d Decoder
	for {
		line, owned, err := lines.next()
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
		m, err := d.decode(line, owned)
		if err != nil {
			p.skipped(&p.corrupt, "skipped a line of corrupt JSON", line)
			p.out.put(&CorruptLine{Bytes: len(line)})
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
	case *MCPRequest:
		if p.mcp.serve(m) {
			return
		}
		p.calls.open(m.RequestID, "mcp_message")
	case *CanUseTool:
		p.calls.open(m.RequestID, "can_use_tool")
	case *HookCallback:
		p.calls.open(m.RequestID, m.Event)
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
		if m.Init != nil && isUUID(m.SessionID) {
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

// giveUp ends the process because what it prints cannot be read.
func (p *Process) giveUp(err error) {
	p.mu.Lock()
	p.fatal = err
	p.mu.Unlock()
	p.log.Error("giving the session's process up", zap.Error(err))
	p.Kill()
	// Let it write on until it is gone.
	_, _ = io.Copy(io.Discard, p.stdout)
}

// dropOrders closes the order pipe, which has the reaper remove the tree.
func (p *Process) dropOrders() {
	p.ordersOnce.Do(func() { _ = p.orders.Close() })
}

// Kill removes the process and everything below it at once. It does not wait;
// see [Process.Done].
func (p *Process) Kill() {
	p.killOnce.Do(func() {
		close(p.killed)
		p.dropOrders()
	})
}

// finish waits for the end and closes up behind it. It is the owner of all the
// other goroutines.
func (p *Process) finish(report io.Closer) {
	said := make(chan reaperReport, 1)
	go func() {
		rep := readExit(p.report)
		_ = p.reaper.Wait() // its status repeats what it reported
		said <- rep
	}()
	watch := time.NewTicker(watchInterval(p.o.SilenceAfter))
	defer watch.Stop()
	var rep reaperReport
	killed := p.killed
	var overdue <-chan time.Time
	for waiting := true; waiting; {
		select {
		case rep = <-said:
			waiting = false
		case <-killed:
			killed = nil
			overdue = time.After(p.o.StopGrace.Kill)
		case <-overdue:
			// The reaper itself hangs: do its work.
			p.log.Error("the reaper does not answer, killing its tree")
			for _, pid := range descendants(p.reaper.Process.Pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			_ = p.reaper.Process.Kill()
			overdue = time.After(time.Second)
		case now := <-watch.C:
			if s := p.life.silence(now, p.o.SilenceAfter); s != nil {
				p.out.put(s)
			}
		}
	}
	if !rep.exited {
		// The reaper was killed and could not clean up.
		ReapOrphans()
	}
	// Nothing holds the other ends any more; the bound is for systems where
	// something may.
	deadline := time.Now().Add(2 * time.Second)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
	<-p.readerDone
	<-p.stderrDone
	_ = p.stdout.Close()
	_ = p.stderr.Close()
	_ = report.Close()
	p.dropOrders()
	p.in.shut()
	p.exit = p.explain(rep)
	p.life.exited(time.Now())
	p.mcp.stop()
	p.calls.fail(p.exit)
	close(p.done)
	p.out.end()
}

// Stop ends the process in good order: no more input, then SIGTERM, then
// removal, each after the time that [StopGrace] gives, and returns when it and
// everything below it are gone. If ctx ends first the tree is removed at once
// and Stop still waits for that, which is bounded. It may be called any number
// of times and at once; the error is only ever ctx's.
func (p *Process) Stop(ctx context.Context) error {
	p.stopOnce.Do(func() {
		close(p.stopping)
		go p.stop()
	})
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		<-p.done
		return fmt.Errorf("stop claude: killed: %w", context.Cause(ctx))
	}
}

func (p *Process) stop() {
	wait := func(d time.Duration) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-p.done:
			return true
		case <-t.C:
			return false
		}
	}
	busy := p.life.busy()
	p.in.close()
	if !busy && wait(p.o.StopGrace.Close) {
		return
	}
	p.order(orderTerm)
	if wait(p.o.StopGrace.Term) {
		return
	}
	p.Kill()
}

// order sends one order to the reaper.
func (p *Process) order(b byte) {
	_, _ = p.orders.Write([]byte{b}) // fails only when there is nobody to order
}

// InterruptSignal sends SIGINT, which ends the turn of a CLI that does not
// answer [Process.Interrupt].
func (p *Process) InterruptSignal() { p.order(orderInterrupt) }

// Prompt sends one message of the user. uuid names it in the CLI's answers and
// must be new; content is text, images and documents. It returns when the CLI's
// input has taken it: while a turn runs, the CLI queues it.
func (p *Process) Prompt(uuid string, content ...Block) error {
	if !isUUID(uuid) {
		return fmt.Errorf("send prompt: %q is no UUID", uuid)
	}
	if len(content) == 0 {
		return errors.New("send prompt: no content")
	}
	blocks := make([]any, len(content))
	for i, b := range content {
		block, err := b.outgoing()
		if err != nil {
			return fmt.Errorf("send prompt: %w", err)
		}
		blocks[i] = block
	}
	type message struct {
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}
	line, err := json.Marshal(struct {
		Type            string  `json:"type"`
		Message         message `json:"message"`
		ParentToolUseID *string `json:"parent_tool_use_id"`
		SessionID       string  `json:"session_id"`
		UUID            string  `json:"uuid"`
	}{"user", message{"user", blocks}, nil, p.SessionID(), uuid})
	if err != nil {
		return fmt.Errorf("send prompt: %w", err)
	}
	p.life.prompted(time.Now())
	if err := p.send(line); err != nil {
		return fmt.Errorf("send prompt: %w", err)
	}
	return nil
}

// send writes a line and waits until it is written.
func (p *Process) send(line []byte) error {
	err := p.in.write(line)
	if err == nil {
		return nil
	}
	select {
	case <-p.done:
		return p.exit
	default:
		return err
	}
}

// outgoing returns the block as the Messages API takes it.
func (b Block) outgoing() (any, error) {
	switch b.Type {
	case "text":
		return struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", b.Text}, nil
	case "image", "document":
		type source struct {
			Type      string `json:"type"`
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
		}
		if b.MediaType == "" || b.Data == "" {
			return nil, fmt.Errorf("%s block without data", b.Type)
		}
		return struct {
			Type   string `json:"type"`
			Source source `json:"source"`
		}{b.Type, source{"base64", b.MediaType, b.Data}}, nil
	}
	if json.Valid(b.Raw) {
		return b.Raw, nil
	}
	return nil, fmt.Errorf("block of type %q cannot be sent", b.Type)
}

// pipes are the five pipes between a host and its reaper: the ends of the
// child in the order of its file descriptors, and the host's own.
type pipes struct {
	child, own []*os.File
}

func (f *pipes) open() (stdin, stdout, stderr, orders, report *os.File, err error) {
	pipe := func(childReads bool) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		child, own := w, r
		if childReads {
			child, own = r, w
		}
		f.child = append(f.child, child)
		f.own = append(f.own, own)
		return own, nil
	}
	for _, end := range []struct {
		file       **os.File
		childReads bool
	}{{&stdin, true}, {&stdout, false}, {&stderr, false}, {&orders, true}, {&report, false}} {
		if *end.file, err = pipe(end.childReads); err != nil {
			return
		}
	}
	return
}

func (f *pipes) closeChildEnds() {
	for _, file := range f.child {
		_ = file.Close()
	}
	f.child = nil
}

func (f *pipes) closeOwnEnds() {
	for _, file := range f.own {
		_ = file.Close()
	}
}
