// Package beginning keeps the beginning of what others say at any length.
package beginning

import "bytes"

// Buffer keeps what is written to it up to so many bytes, and takes the rest without a
// word. The zero value keeps nothing.
type Buffer struct {
	Most int
	text bytes.Buffer
}

// Write never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.text.Write(p[:min(len(p), b.Most-b.text.Len())])
	return len(p), nil
}

// String is what was kept.
func (b *Buffer) String() string { return b.text.String() }
