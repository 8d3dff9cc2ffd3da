package claude

import (
	"encoding/json"
	"strconv"
)

// cursor is a pull parser over one complete JSON text. A caller walks objects
// and arrays with the first/next pairs and takes each value with exactly one of
// the value methods; everything that is walked or skipped is checked, so that
// after the last value a cursor that is not bad has seen only valid JSON, in
// one pass and without building a tree.
//
// Value methods never fail: a value of another type than the one asked for is
// skipped and the zero value returned, since a field that changed its type in a
// newer CLI must not cost the message that carries it.
type cursor struct {
	b   []byte
	i   int
	bad bool
}

// maxDepth bounds the nesting of a value; real messages stay under thirty.
const maxDepth = 1024

func (c *cursor) space() {
	for c.i < len(c.b) && c.b[c.i] <= ' ' && isSpace(c.b[c.i]) {
		c.i++
	}
}

// peek returns the first byte of the next value, or 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.bad || c.i >= len(c.b) {
		return 0
	}
	return c.b[c.i]
}

// fail marks the text as corrupt and moves to its end, so that every loop ends.
func (c *cursor) fail() {
	c.bad = true
	c.i = len(c.b)
}

// end reports whether the text held valid JSON and nothing after it.
func (c *cursor) end() bool {
	c.space()
	return !c.bad && c.i == len(c.b)
}

// firstKey enters an object and returns its first key; false when the object is
// empty or the value is no object (which is then skipped).
func (c *cursor) firstKey() ([]byte, bool) {
	if c.peek() != '{' {
		c.skip()
		return nil, false
	}
	c.i++
	if c.peek() == '}' {
		c.i++
		return nil, false
	}
	return c.key()
}

// nextKey returns the following key of the object being walked.
func (c *cursor) nextKey() ([]byte, bool) {
	switch c.peek() {
	case ',':
		c.i++
		return c.key()
	case '}':
		c.i++
		return nil, false
	}
	c.fail()
	return nil, false
}

func (c *cursor) key() ([]byte, bool) {
	if c.peek() != '"' {
		c.fail()
		return nil, false
	}
	raw, escaped, ok := c.stringBody()
	if !ok || c.peek() != ':' {
		c.fail()
		return nil, false
	}
	c.i++
	if escaped {
		return []byte(unescape(raw)), true
	}
	return raw, true
}

// firstElem enters an array; false when it is empty or the value is no array.
func (c *cursor) firstElem() bool {
	if c.peek() != '[' {
		c.skip()
		return false
	}
	c.i++
	if c.peek() == ']' {
		c.i++
		return false
	}
	return !c.bad
}

func (c *cursor) nextElem() bool {
	switch c.peek() {
	case ',':
		c.i++
		return true
	case ']':
		c.i++
		return false
	}
	c.fail()
	return false
}

// str takes a string; "" for any other value.
func (c *cursor) str() string {
	if c.peek() != '"' {
		c.skip()
		return ""
	}
	raw, escaped, ok := c.stringBody()
	if !ok {
		return ""
	}
	if escaped {
		return unescape(raw)
	}
	return text(raw)
}

// sym takes a string that is one of a small set of names, without allocating
// for those that the protocol is known to use.
func (c *cursor) sym() string { return c.cached("") }

// cached takes a string, and returns last itself when it is equal to it.
func (c *cursor) cached(last string) string {
	if c.peek() != '"' {
		c.skip()
		return ""
	}
	raw, escaped, ok := c.stringBody()
	if !ok {
		return ""
	}
	if escaped {
		return unescape(raw)
	}
	if string(raw) == last {
		return last
	}
	if s, ok := symbol(raw); ok {
		return s
	}
	return text(raw)
}

// raw takes any value as the bytes it is written with; they alias the text.
func (c *cursor) raw() json.RawMessage {
	c.space()
	start := c.i
	c.skip()
	if c.bad {
		return nil
	}
	return json.RawMessage(c.b[start:c.i:c.i])
}

// boolean takes true or false; false for any other value.
func (c *cursor) boolean() bool {
	is := c.peek() == 't'
	c.skip()
	return is && !c.bad
}

// float takes a number; 0 for any other value.
func (c *cursor) float() float64 {
	switch c.peek() {
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		f, err := strconv.ParseFloat(string(c.raw()), 64)
		if err != nil {
			return 0
		}
		return f
	}
	c.skip()
	return 0
}

// integer takes a number and drops what is after its point.
func (c *cursor) integer() int64 {
	p := c.peek()
	if p != '-' && (p < '0' || p > '9') {
		c.skip()
		return 0
	}
	raw := c.raw()
	var n int64
	for i, d := range raw {
		if d < '0' || d > '9' || i > 17 {
			f, err := strconv.ParseFloat(string(raw), 64)
			if err != nil || f > 1<<62 || f < -(1<<62) {
				return 0
			}
			return int64(f)
		}
		n = n*10 + int64(d-'0')
	}
	return n
}

// strings takes an array of strings; other elements are dropped.
func (c *cursor) strings() []string {
	var out []string
	for ok := c.firstElem(); ok; ok = c.nextElem() {
		if c.peek() != '"' {
			c.skip()
			continue
		}
		out = append(out, c.str())
	}
	return out
}

// stringBody takes a string and returns what is between its quotes, as written.
func (c *cursor) stringBody() (raw []byte, escaped, ok bool) {
	start := c.i + 1
	end, escaped := scanString(c.b, start)
	if end < 0 {
		c.fail()
		return nil, false, false
	}
	c.i = end
	return c.b[start : end-1], escaped, true
}

// skip passes over one value of any kind and checks it.
func (c *cursor) skip() {
	if c.bad {
		return
	}
	b, i := c.b, c.i
	// One bit a level says whether it is an object.
	var objects [maxDepth / 64]uint64
	depth := 0
	object := false

value:
	for i < len(b) && b[i] <= ' ' && isSpace(b[i]) {
		i++
	}
	if i >= len(b) {
		c.fail()
		return
	}
	switch ch := b[i]; {
	case ch == '"':
		if i, _ = scanString(b, i+1); i < 0 {
			c.fail()
			return
		}
	case ch == '{' || ch == '[':
		if depth == maxDepth {
			c.fail()
			return
		}
		if ch == '{' {
			objects[depth/64] |= 1 << (depth % 64)
		} else {
			objects[depth/64] &^= 1 << (depth % 64)
		}
		depth++
		i++
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		if i < len(b) && b[i] == ch+2 { // '}' and ']' stand two after their openers
			i++
			depth--
			goto after
		}
		if ch == '{' {
			goto key
		}
		goto value
	default:
		if i = scanScalar(b, i); i < 0 {
			c.fail()
			return
		}
	}

after:
	if depth == 0 {
		c.i = i
		return
	}
	for i < len(b) && b[i] <= ' ' && isSpace(b[i]) {
		i++
	}
	if i >= len(b) {
		c.fail()
		return
	}
	object = objects[(depth-1)/64]&(1<<((depth-1)%64)) != 0
	switch {
	case b[i] == ',' && object:
		i++
		goto key
	case b[i] == ',':
		i++
		goto value
	case b[i] == '}' && object, b[i] == ']' && !object:
		i++
		depth--
		goto after
	}
	c.fail()
	return

key:
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	if i >= len(b) || b[i] != '"' {
		c.fail()
		return
	}
	if i, _ = scanString(b, i+1); i < 0 {
		c.fail()
		return
	}
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	if i >= len(b) || b[i] != ':' {
		c.fail()
		return
	}
	i++
	goto value
}
