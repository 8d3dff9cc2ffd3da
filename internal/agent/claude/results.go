package claude

import (
	"bytes"
	"crypto/sha256"
)

// ToolResults are the results of tools in a line of a transcript, or of the stream; none if
// it is another line.
func ToolResults(line []byte) []Block {
	if !bytes.Contains(line, []byte(`"tool_result"`)) {
		return nil
	}
	m, ok := decodeUser(line).(*User)
	if !ok || entryType(line) != "user" {
		return nil
	}
	var out []Block
	for _, b := range m.Content {
		if b.Type == "tool_result" {
			out = append(out, b)
		}
	}
	return out
}

// ResultSum is the sum of what a tool_result holds, and its size in bytes: of its texts, and
// of its pictures and documents as they are written.
func (b Block) ResultSum() (sum [sha256.Size]byte, size int) {
	h := sha256.New()
	for _, c := range b.Content {
		_, _ = h.Write([]byte(c.Text)) // a hash does not fail
		_, _ = h.Write([]byte(c.Data))
		size += len(c.Text) + len(c.Data)
	}
	return [sha256.Size]byte(h.Sum(nil)), size
}
