package claude

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// keptEntries are the kinds of a transcript's lines that tell what was said, and what it
// has cost. Others set what the next process is: the folder that it works in
// (worktree-state), its agent with its tools (agent-setting), its mode. A transcript lies
// where commands can write, so those are not kept; nor is a kind that nobody has judged.
var keptEntries = map[string]bool{
	"user": true, "assistant": true, "system": true, "attachment": true, "summary": true, "progress": true,
	"cost-state": true, "last-prompt": true, "queue-operation": true, "content-replacement": true,
	"tools-used": true, "atis-latch": true, "api-request": true, "api-request-shape": true, "api-request-blob": true,
}

// CopyTranscript copies of a transcript the lines that another process may go on with: what
// was said and what it cost, but not what the process was set to. A line that is no JSON
// object, or names a member twice, is left out, such as one that a dying process has left
// unfinished; so is one of more than 64 MiB.
func CopyTranscript(to io.Writer, from io.Reader) error {
	in, out := NewTranscriptReader(from), bufio.NewWriterSize(to, 1<<16)
	for {
		line, err := in.Next()
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("copy a transcript: %w", err)
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return fmt.Errorf("copy a transcript: %w", err)
		}
	}
}

// TranscriptReader reads a transcript, the lines that another process may go on with alone:
// see [CopyTranscript].
type TranscriptReader struct {
	in   *bufio.Reader
	line []byte
	size int64 // of the line as it stands there
	read int64
	link Link
}

// Link is the place of a transcript's line in its conversation: its own id, and that of the
// line before it. Both are empty in a line that is not part of it.
type Link struct{ ID, Parent string }

// NewTranscriptReader returns a reader of a transcript.
func NewTranscriptReader(from io.Reader) *TranscriptReader {
	return &TranscriptReader{in: bufio.NewReaderSize(from, 1<<16)}
}

// Next returns the next line, with a newline at its end; it is valid until the next call.
// It is empty where a line stands that is left out. The error is [io.EOF] with the last
// line, which has no newline of its own: it may be finished yet.
func (r *TranscriptReader) Next() ([]byte, error) {
	err := r.entry()
	r.read += r.size
	kind, link := readEntry(r.line)
	if r.link = link; !keptEntries[kind] {
		r.link = Link{}
		return nil, err
	}
	r.line = append(bytes.TrimRight(r.line, "\r\n"), '\n')
	return r.line, err
}

// Offset is how many bytes of the transcript have been read: all lines up to the one that
// Next returned last.
func (r *TranscriptReader) Offset() int64 { return r.read }

// Link is the place of the line that Next returned last.
func (r *TranscriptReader) Link() Link { return r.link }

// maxEntry is the longest line of a transcript that is kept, in bytes.
const maxEntry = 64 << 20

// entry reads a line; of one that is too long, nothing.
func (r *TranscriptReader) entry() error {
	r.line, r.size = r.line[:0], 0
	tooLong := false
	for {
		part, err := r.in.ReadSlice('\n')
		r.size += int64(len(part))
		if tooLong = tooLong || r.size > maxEntry; tooLong {
			r.line = r.line[:0]
		} else {
			r.line = append(r.line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// readEntry is the type of a transcript's line and its place. The type is empty if the line
// has none that everybody who reads it would agree on.
func readEntry(line []byte) (kind string, link Link) {
	in := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowInvalidUTF8(true))
	if t, err := in.ReadToken(); err != nil || t.Kind() != '{' {
		return "", link
	}
	for in.PeekKind() == '"' {
		name, err := in.ReadToken()
		if err != nil {
			return "", link
		}
		var member *string
		switch name.String() {
		case "type":
			member = &kind
		case "uuid":
			member = &link.ID
		case "parentUuid":
			member = &link.Parent
		}
		if member == nil || member != &kind && in.PeekKind() != '"' { // the first line follows null
			if in.SkipValue() != nil {
				return "", link
			}
			continue
		}
		value, err := in.ReadToken()
		if err != nil || value.Kind() != '"' {
			return "", link
		}
		*member = value.String()
	}
	if t, err := in.ReadToken(); err != nil || t.Kind() != '}' {
		return "", link
	}
	if _, err := in.ReadToken(); !errors.Is(err, io.EOF) {
		return "", link
	}
	return kind, link
}

func entryType(line []byte) string {
	kind, _ := readEntry(line)
	return kind
}
