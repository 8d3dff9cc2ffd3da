package claude

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// samples are JSON and what is nearly JSON.
var samples = []string{
	`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `-1.5e+10`, `1e5`, `""`, `"a"`, ` { "a" : [ 1 , { } ] } `,
	`{"a":"\u00e9\ud83d\ude00\n\"\\\/"}`, `"\ud83d"`, `"\ude00\ud83d"`, `{"a":1,"a":2}`, `{"k\u0065y":1}`,
	"\"\xff\xfe\"", `"` + strings.Repeat("long and plain ", 20) + `"`, `[[[[[[]]]]]]`, `{"a":{"b":[{"c":[]}]}}`,
	``, `{`, `}`, `[1,]`, `{"a":}`, `{"a"}`, `{,}`, `01`, `-`, `1.`, `.5`, `1e`, `tru`, `nul`, `"\x"`, `"\u12g4"`, `"`, "\"\n\"", `{"a":1}}`, `[1 2]`, `{"a":1 "b":2}`, `{1:2}`, `"a" "b"`, `{"a":1,}`,
	"\"1234567\x01\"", "\"12345678\x1f90\"", "\"1234567\\\"8\"",
}

func TestCursorAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
		checkCursor(t, []byte(s))
	}
}

func FuzzCursor(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkCursor(t, b) })
}

// checkCursor compares with encoding/json in what is valid, and in what strings
// say.
func checkCursor(t *testing.T, b []byte) {
	t.Helper()
	if bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) >= maxDepth {
		return // where encoding/json goes deeper
	}
	c := cursor{b: b}
	c.skip()
	if got, want := c.end(), json.Valid(b); got != want {
		t.Fatalf("skip of %q: valid %v, encoding/json says %v", b, got, want)
	}
	walked := cursor{b: b}
	walk(&walked)
	if got, want := walked.end(), json.Valid(b); got != want {
		t.Fatalf("walk of %q: valid %v, encoding/json says %v", b, got, want)
	}
	var want string
	if json.Unmarshal(b, &want) == nil && strings.HasPrefix(strings.TrimSpace(string(b)), `"`) {
		c := cursor{b: b}
		if got := c.str(); got != want {
			t.Fatalf("string %q: %q, encoding/json says %q", b, got, want)
		}
	}
}

// walk takes every value by the method for its kind.
func walk(c *cursor) {
	switch c.peek() {
	case '{':
		for _, ok := c.firstKey(); ok; _, ok = c.nextKey() {
			walk(c)
		}
	case '[':
		for ok := c.firstElem(); ok; ok = c.nextElem() {
			walk(c)
		}
	case '"':
		c.str()
	case 't', 'f':
		c.boolean()
	default:
		c.float()
	}
}

func TestCursorNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"0": 0, "17": 17, "-17": -17, "1.9": 1, "1e3": 1000, "123456789012345678": 123456789012345678,
		"1e400": 0, `"5"`: 0, "null": 0, "9223372036854775807": 0,
	} {
		c := cursor{b: []byte(in)}
		if got := c.integer(); got != want || !c.end() {
			t.Errorf("integer of %s is %d, want %d", in, got, want)
		}
	}
}

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
			if line, _, err := l.next(); err != nil || string(line) != "short" {
				t.Fatalf("limit %d: %q, %v", limit, line, err)
			}
			line, _, err := l.next()
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
			line, _, err := l.next()
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
