package claude

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLineReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*lineBuffer+5)
	for _, in := range []string{"", "\n", "a", "a\n", "a\nb", "a\r\nb\n", "\n\na\n", long, long + "\n", "a\n" + long + "\nb\n" + long} {
		checkLines(t, []byte(in), 10*lineBuffer)
	}
}

func TestLineReaderRefusesLongLines(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{10, lineBuffer, lineBuffer + 10, 5 * lineBuffer} {
		for _, extra := range []int{0, 1, lineBuffer} {
			in := "short\n" + strings.Repeat("x", limit+extra) + "\nafter\n"
			l := newLineReader(strings.NewReader(in), limit)
			if line, err := l.next(); err != nil || string(line) != "short" {
				t.Fatalf("limit %d: %q, %v", limit, line, err)
			}
			line, err := l.next()
			if extra == 0 && (err != nil || len(line) != limit) {
				t.Errorf("limit %d: a line of just that length: %v", limit, err)
			}
			if extra > 0 && err == nil {
				t.Errorf("limit %d: a line of %d was read", limit, len(line))
			}
		}
	}
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\nccc"), 3)
	f.Add([]byte(strings.Repeat("long ", 20)+"\nshort"), 1000)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if limit < 1 || limit > 1<<20 || len(b) > 1<<12 {
			return
		}
		checkLines(t, b, limit)
	})
}

// checkLines compares with splitting the whole, for readers that give much, one
// byte, and data together with their error.
func checkLines(t *testing.T, b []byte, limit int) {
	t.Helper()
	want := bytes.Split(b, []byte("\n"))
	if last := len(want) - 1; len(want[last]) == 0 {
		want = want[:last]
	}
	for _, r := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
		l := newLineReader(r, limit)
		l.buf = make([]byte, 16) // so that small inputs have long lines
		for i := 0; ; i++ {
			line, err := l.next()
			if err != nil {
				if i < len(want) && len(want[i]) <= limit {
					t.Fatalf("line %d of %q: %v", i, b, err)
				}
				break
			}
			if i >= len(want) || !bytes.Equal(line, bytes.TrimSuffix(want[i], []byte("\r"))) {
				t.Fatalf("line %d of %q is %q", i, b, line)
			}
		}
	}
}

func TestTailKeepsTheEndWithoutControlSequences(t *testing.T) {
	t.Parallel()
	tl := newTail(20)
	for _, part := range []string{"\x1b[31mred\x1b", "[0m plain\n", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\link\r\n"} {
		tl.add([]byte(part))
	}
	if got, want := tl.String(), "red plain\nlink\n"; got != want {
		t.Errorf("tail %q, want %q", got, want)
	}
	for range 100 {
		tl.add([]byte("0123456789"))
	}
	if got, want := tl.String(), "…"+strings.Repeat("0123456789", 2); got != want {
		t.Errorf("tail %q, want %q", got, want)
	}
	if cap(tl.buf) > 4096 {
		t.Errorf("a tail of 20 bytes holds %d", cap(tl.buf))
	}
}
