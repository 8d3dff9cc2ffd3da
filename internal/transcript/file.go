package transcript

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
)

// What is copied of a transcript is what the next process may go on with: the lines that
// [claude.CopyTranscript] keeps. A home that is made anew has the same ones, so that a
// file and its copy are compared by their beginnings.
//
// The copy is cut into pieces at lines, by its text alone: each piece ends with the first
// line that makes it pieceBytes long. So the last one is the only one that changes while
// the file grows, and it is compressed as a whole.
const pieceBytes = 128 << 10

// file is a file that is copied, as far as it was read. The zero value was not
// read yet.
type file struct {
	info fs.FileInfo // when it was read last
	// last is where the copy's last piece begins, and tail the sum of what stands before.
	last lineEnd
	tail [sha256.Size]byte
	// rewritten: it has lost or changed what is copied, and has to be copied anew.
	rewritten bool
	// unread is how much stood behind the last line that was copied.
	unread int64
	copied store.Transcript // SHA256 is nil while there is no copy
	// lines are the ids of the lines that were read, and gap says that a line which was copied
	// since follows one that is not there: a disk that was full did not take it.
	lines map[string]bool
	gap   bool
}

// lineEnd is the end of a line: so many bytes of the file, of which so many are copied, with
// their sum (nil at the beginning).
type lineEnd struct {
	file, copy int64
	sum        hash.Hash
}

func (p lineEnd) clone() lineEnd {
	if p.sum == nil {
		p.sum = sha256.New()
		return p
	}
	sum, err := p.sum.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // SHA-256's cannot fail
	}
	p.sum = sum
	return p
}

// is reports whether the copy ends here.
func (p lineEnd) is(t store.Transcript) bool {
	return p.copy == t.Bytes && (t.SHA256 == nil || bytes.Equal(p.sum.Sum(nil), t.SHA256))
}

// tailBytes is how much before the last piece is looked at, to see whether the file was
// rewritten.
const tailBytes = 4 << 10

// tailOf is the sum of what stands before a place of a file.
func tailOf(src io.ReaderAt, at int64) (sum [sha256.Size]byte, err error) {
	b := make([]byte, min(at, tailBytes))
	if _, err := src.ReadAt(b, at-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return sum, err
	}
	return sha256.Sum256(b), nil
}

// errRewritten: the file does not begin with what was copied of it.
var errRewritten = errors.New("the transcript was rewritten or cut")

// read reads what the file has beyond its copy: whole lines, until the copy has room bytes
// or there are about most bytes of them; more says that there are more. With anew
// everything is read, whatever was copied. It returns the part to write, which has
// no pieces and is not full when there is nothing to write, and the file as it is when
// that is done.
func (f file) read(src *os.File, room, most int64, anew bool) (part store.TranscriptPart, then file, more bool, err error) {
	then = f
	if anew {
		then.last, then.rewritten = lineEnd{}, false
	} else if sum, err := tailOf(src, f.last.file); err != nil || f.last.file > 0 && sum != f.tail {
		return part, then, false, errors.Join(err, errRewritten)
	}
	from := then.last.file
	if _, err := src.Seek(from, io.SeekStart); err != nil {
		return part, then, false, err
	}
	in, at := claude.NewTranscriptReader(io.LimitReader(src, f.info.Size()-from)), then.last.clone()
	met := anew || at.is(f.copied)
	if from == 0 {
		then.lines = map[string]bool{}
	}
	part = store.TranscriptPart{Agent: f.copied.Agent, WasBytes: f.copied.Bytes, WasSHA256: f.copied.SHA256, From: at.copy}
	var open []byte
	var taken int64
	for !more && !part.Full {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break // a line that is not finished
		}
		if err != nil {
			return part, then, false, err
		}
		if part.Full = at.copy+int64(len(line)) > room; part.Full {
			break
		}
		link := in.Link()
		open = append(open, line...)
		at.file, at.copy = from+in.Offset(), at.copy+int64(len(line))
		at.sum.Write(line)
		if !met {
			if at.copy > f.copied.Bytes || at.copy == f.copied.Bytes && !at.is(f.copied) {
				return part, then, false, errRewritten
			}
			met = at.is(f.copied)
		} else {
			taken += int64(len(line))
			then.gap = then.gap || link.Parent != "" && !then.lines[link.Parent]
		}
		then.lines[link.ID] = true
		if len(open) >= pieceBytes {
			if taken > 0 {
				part.Pieces = append(part.Pieces, open)
				more = taken >= most
			} else {
				part.From = at.copy // it is there
			}
			then.last, open = at.clone(), nil
		}
	}
	if !met {
		return part, then, false, errRewritten
	}
	switch {
	case taken > 0 && len(open) > 0:
		part.Pieces = append(part.Pieces, open)
	case taken == 0:
		part.From = at.copy
	}
	then.unread = then.info.Size() - at.file
	part.Bytes, part.SHA256 = at.copy, [sha256.Size]byte(at.sum.Sum(nil))
	if then.tail, err = tailOf(src, then.last.file); err != nil {
		return part, then, false, err
	}
	if len(part.Pieces) > 0 || part.Full {
		then.copied.Bytes, then.copied.SHA256, then.copied.Full = part.Bytes, part.SHA256[:], part.Full
	}
	return part, then, more, nil
}

// fill is the part that adds nothing to the copy, and says that nothing will be added.
func (f file) fill() (store.TranscriptPart, file) {
	part := store.TranscriptPart{Agent: f.copied.Agent, WasBytes: f.copied.Bytes, WasSHA256: f.copied.SHA256, From: f.copied.Bytes, Bytes: f.copied.Bytes, Full: true}
	if part.SHA256 = sha256.Sum256(nil); f.copied.SHA256 != nil {
		part.SHA256 = [sha256.Size]byte(f.copied.SHA256)
	}
	f.copied.SHA256, f.copied.Full = part.SHA256[:], true
	return part, f
}

// begins reports whether a file begins with what is copied of it, so that it is the one to
// go on with.
func begins(src io.Reader, t store.Transcript) (bool, error) {
	in, at := claude.NewTranscriptReader(src), lineEnd{}.clone()
	for !at.is(t) {
		line, err := in.Next()
		at.copy += int64(len(line))
		at.sum.Write(line)
		if errors.Is(err, io.EOF) {
			return at.is(t), nil
		}
		if err != nil || at.copy > t.Bytes {
			return false, err
		}
	}
	return true, nil
}
