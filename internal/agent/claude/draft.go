package claude

import (
	"sync/atomic"
	"unsafe"
)

// draft is the growing text of an item. Its bytes are only ever appended to, so
// that the texts of all turns that were folded from one another are prefixes of
// one buffer: adding a delta costs the delta, not the text. Whoever extends the
// newest text claims the bytes behind it; two folds from the same turn cannot
// both do so, and the later one copies.
type draft struct {
	buf []byte
	// used is how much of buf belongs to some text.
	used atomic.Int64
}

// extend returns text + more, and the draft that holds it.
func (d *draft) extend(text, more string) (*draft, string) {
	n := int64(len(text) + len(more))
	if d == nil || n > int64(len(d.buf)) || !d.used.CompareAndSwap(int64(len(text)), n) {
		d = &draft{buf: make([]byte, max(256, 2*n))}
		copy(d.buf, text)
		d.used.Store(n)
	}
	copy(d.buf[len(text):], more)
	// Bytes below used are never written again, as those of a string must be.
	return d, unsafe.String(&d.buf[0], n)
}
