package claude

import (
	"io"
	"strings"
	"sync"
)

// tail keeps the last bytes of a stream, without terminal control sequences.
type tail struct {
	mu    sync.Mutex
	limit int
	buf   []byte
	cut   bool
	// state is where in an escape sequence the stream stands.
	state escapeState
}

type escapeState int

const (
	plainText escapeState = iota
	afterEscape
	inControl // CSI: ends with a byte from @ to ~
	inString  // OSC and the like: ends with BEL or ESC \
)

func newTail(limit int) *tail { return &tail{limit: limit} }

// drain reads r to its end.
func (t *tail) drain(r io.Reader) {
	buf := make([]byte, 8<<10)
	for {
		n, err := r.Read(buf)
		t.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range p {
		switch t.state {
		case afterEscape:
			switch b {
			case '[':
				t.state = inControl
			case ']', 'P', 'X', '^', '_':
				t.state = inString
			case 0x1b:
			default:
				t.state = plainText
			}
		case inControl:
			if b >= '@' && b <= '~' {
				t.state = plainText
			}
		case inString:
			switch b {
			case 0x07:
				t.state = plainText
			case 0x1b:
				t.state = afterEscape
			}
		default:
			switch {
			case b == 0x1b:
				t.state = afterEscape
			case b == '\n' || b == '\t' || b >= 0x20 && b != 0x7f:
				t.buf = append(t.buf, b)
			}
		}
	}
	// Cutting at twice the limit makes keeping the tail cheap for a chatty
	// program.
	if len(t.buf) > 2*t.limit {
		n := copy(t.buf, t.buf[len(t.buf)-t.limit:])
		t.buf = t.buf[:n]
		t.cut = true
	}
}

// String returns the tail, with a mark where its beginning is missing.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, cut := t.buf, t.cut
	if len(b) > t.limit {
		b, cut = b[len(b)-t.limit:], true
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if cut {
		return "…" + s
	}
	return s
}
