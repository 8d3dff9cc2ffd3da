package claude

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errLineTooLong ends a session whose CLI printed a line over the limit.
var errLineTooLong = errors.New("line too long")

// lineReader cuts a stream into lines. Short lines are handed out in place from
// one reused buffer; a line longer than the buffer gets bytes of its own, which
// are let go with it. It never holds more than one line and one buffer.
type lineReader struct {
	r io.Reader
	// limit is the longest line allowed, in bytes without its newline.
	limit int
	buf   []byte
	// buf[start:end] has been read and not handed out.
	start, end int
	err        error
}

const lineBuffer = 64 << 10

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: r, limit: limit, buf: make([]byte, lineBuffer)}
}

// next returns a line without its newline, whose bytes hold until the following
// call. The last line may lack its newline. At the end the error is io.EOF or what
// the stream failed with.
func (l *lineReader) next() (line []byte, err error) {
	for scanned := 0; ; {
		if i := bytes.IndexByte(l.buf[l.start+scanned:l.end], '\n'); i >= 0 {
			end := l.start + scanned + i
			if end-l.start > l.limit {
				return nil, fmt.Errorf("%w: over %d bytes", errLineTooLong, l.limit)
			}
			line := l.buf[l.start:end]
			l.start = end + 1
			return trimCR(line), nil
		}
		scanned = l.end - l.start
		if scanned > l.limit {
			return nil, fmt.Errorf("%w: over %d bytes", errLineTooLong, l.limit)
		}
		if l.err != nil {
			line := l.buf[l.start:l.end]
			l.start = l.end
			if len(line) > 0 {
				return trimCR(line), nil
			}
			return nil, l.err
		}
		if l.end == len(l.buf) {
			if l.start == 0 {
				return l.long()
			}
			copy(l.buf, l.buf[l.start:l.end])
			l.end -= l.start
			l.start = 0
		}
		l.fill()
	}
}

// fill reads once into the free end of the buffer.
func (l *lineReader) fill() {
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	l.err = err
}

// long gathers a line that is longer than the buffer, in chunks of which each
// doubles what is there, so that no more than twice the line is ever held.
func (l *lineReader) long() (line []byte, err error) {
	line = append(make([]byte, 0, 4*len(l.buf)), l.buf[:l.end]...)
	l.start, l.end = 0, 0
	// The stream's own error, if any, comes with the next call.
	for l.err == nil {
		l.fill()
		i := bytes.IndexByte(l.buf[:l.end], '\n')
		chunk := l.buf[:l.end]
		if i >= 0 {
			chunk = l.buf[:i]
		}
		if len(line)+len(chunk) > l.limit {
			return nil, fmt.Errorf("%w: over %d bytes", errLineTooLong, l.limit)
		}
		line = append(line, chunk...)
		if i >= 0 {
			l.start = i + 1
			return trimCR(line), nil
		}
		l.start, l.end = 0, 0
	}
	return trimCR(line), nil
}

func trimCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }
