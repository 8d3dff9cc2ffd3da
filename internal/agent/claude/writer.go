package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// errInputClosed is returned when the process is being stopped or has ended.
var errInputClosed = errors.New("the CLI's input is closed")

// writer is the only one who writes to the CLI: whole lines, valid JSON. A
// malformed line would end the CLI. Its queue lets the reader answer without
// ever waiting for a CLI that does not read.
type writer struct {
	file    *os.File
	timeout time.Duration
	done    chan struct{}

	mu      sync.Mutex
	lines   []outgoingLine
	closing bool
	err     error
	wake    chan struct{}
}

type outgoingLine struct {
	bytes []byte
	// written gets the outcome; nil when nobody waits.
	written chan error
}

func newWriter(file *os.File, timeout time.Duration) *writer {
	return &writer{file: file, timeout: timeout, done: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// write queues a line and waits until it is written.
func (w *writer) write(line []byte) error {
	written := make(chan error, 1)
	if err := w.post(line, written); err != nil {
		return err
	}
	return <-written
}

// post queues a line without waiting.
func (w *writer) post(line []byte, written chan error) error {
	if !json.Valid(line) {
		return errors.New("write to claude: not a JSON line")
	}
	for i, b := range line {
		if b == '\n' || b == '\r' {
			line[i] = ' ' // between tokens, since inside a string it is invalid
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.closing {
		return errInputClosed
	}
	w.lines = append(w.lines, outgoingLine{append(line, '\n'), written})
	w.signal()
	return nil
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close lets the writer write what is queued and then close the CLI's input.
func (w *writer) close() {
	w.mu.Lock()
	w.closing = true
	w.signal()
	w.mu.Unlock()
}

// shut ends the writer at once and waits for it.
func (w *writer) shut() {
	w.fail(errInputClosed)
	_ = w.file.Close() // wakes a write that waits
	<-w.done
}

// fail makes every queued and later write fail.
func (w *writer) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	lines := w.lines
	w.lines = nil
	w.closing = true
	w.signal()
	w.mu.Unlock()
	for _, l := range lines {
		if l.written != nil {
			l.written <- err
		}
	}
}

func (w *writer) run() {
	defer close(w.done)
	for {
		w.mu.Lock()
		lines, closing := w.lines, w.closing
		w.lines = nil
		w.mu.Unlock()
		for i, l := range lines {
			err := w.writeLine(l.bytes)
			if l.written != nil {
				l.written <- err
			}
			if err != nil {
				for _, rest := range lines[i+1:] {
					if rest.written != nil {
						rest.written <- err
					}
				}
				w.fail(err)
				break
			}
		}
		if closing && len(lines) == 0 {
			_ = w.file.Close()
			return
		}
		if len(lines) == 0 {
			<-w.wake
		}
	}
}

func (w *writer) writeLine(line []byte) error {
	if err := w.file.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return errInputClosed
	}
	if _, err := w.file.Write(line); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("write to claude: it has not read its input for %v", w.timeout)
		}
		return fmt.Errorf("%w: %w", errInputClosed, err)
	}
	return nil
}
