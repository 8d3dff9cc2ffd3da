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
	in, out := bufio.NewReaderSize(from, 1<<16), bufio.NewWriterSize(to, 1<<16)
	for {
		line, err := readEntry(in)
		if keptEntries[entryType(line)] {
			if _, err := out.Write(append(bytes.TrimRight(line, "\r\n"), '\n')); err != nil {
				return fmt.Errorf("copy a transcript: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return fmt.Errorf("copy a transcript: %w", err)
		}
	}
}

// maxEntry is the longest line of a transcript that is kept, in bytes.
const maxEntry = 64 << 20

// readEntry reads a line; of one that is too long, nothing.
func readEntry(in *bufio.Reader) (line []byte, err error) {
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxEntry; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// entryType is the type of a transcript's line, empty if it has none that everybody who
// reads it would agree on.
func entryType(line []byte) (kind string) {
	in := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowInvalidUTF8(true))
	if t, err := in.ReadToken(); err != nil || t.Kind() != '{' {
		return ""
	}
	for in.PeekKind() == '"' {
		name, err := in.ReadToken()
		if err != nil {
			return ""
		}
		if name.String() != "type" {
			if in.SkipValue() != nil {
				return ""
			}
			continue
		}
		value, err := in.ReadToken()
		if err != nil || value.Kind() != '"' {
			return ""
		}
		kind = value.String()
	}
	if t, err := in.ReadToken(); err != nil || t.Kind() != '}' {
		return ""
	}
	if _, err := in.ReadToken(); !errors.Is(err, io.EOF) {
		return ""
	}
	return kind
}
