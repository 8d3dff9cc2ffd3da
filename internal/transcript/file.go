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
	"deckhand/internal/store/transcripts"
)

// Only what the next process may continue from is copied: the lines that [claude.CopyTranscript] keeps. A renewed
// home has the same lines, so that a file and its copy can be compared by their prefixes.
//
// The copy is split into pieces at lines, by its text alone: each piece ends with the first line that makes it
// pieceBytes long. So only the last piece changes while the file grows, and it is compressed as a whole.
const pieceBytes = 128 << 10

// file is a copied file, as far as it was read. The zero value was not read yet.
type file struct {
	info fs.FileInfo // at the last read
	// last is where the copy's last piece begins, and tail the checksum of what precedes it.
	last lineEnd
	tail [sha256.Size]byte
	// rewritten: copied content was lost or changed, so it must be copied again.
	rewritten bool
	// unread is how much followed the last copied line.
	unread int64
	copied transcripts.Transcript // SHA256 is nil while there is no copy
	// lines are the ids of the lines read, and gap says that a line copied since follows a missing one: a full disk
	// lost it.
	lines map[string]bool
	gap   bool
}

// lineEnd is the end of a line: its offset in the file and in the copy, with the copy's checksum (nil at the
// beginning).
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
func (p lineEnd) is(t transcripts.Transcript) bool {
	return p.copy == t.Bytes && (t.SHA256 == nil || bytes.Equal(p.sum.Sum(nil), t.SHA256))
}

// tailBytes is how much before the last piece is checked, to detect a rewrite.
const tailBytes = 4 << 10

// tailOf is the checksum of what precedes an offset of a file.
func tailOf(src io.ReaderAt, at int64) (sum [sha256.Size]byte, err error) {
	b := make([]byte, min(at, tailBytes))
	if _, err := src.ReadAt(b, at-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return sum, err
	}
	return sha256.Sum256(b), nil
}

// errRewritten: the file does not begin with its copy.
var errRewritten = errors.New("the transcript was rewritten or cut")

// read reads what the file has beyond its copy: whole lines, until the copy has room bytes or about most bytes were
// read; more says that there are more. With anew it reads everything. It returns the part to write, which has no
// pieces and is not full when there is nothing to write, and the file's state afterwards.
func (f file) read(src *os.File, room, most int64, anew bool) (part transcripts.Part, then file, more bool, err error) {
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
	part = transcripts.Part{Agent: f.copied.Agent, WasBytes: f.copied.Bytes, WasSHA256: f.copied.SHA256, From: at.copy}
	var open []byte
	var taken int64
	for !more && !part.Full {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break // an unfinished line
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

// fill is the part that only marks the copy as full.
func (f file) fill() (transcripts.Part, file) {
	part := transcripts.Part{Agent: f.copied.Agent, WasBytes: f.copied.Bytes, WasSHA256: f.copied.SHA256, From: f.copied.Bytes, Bytes: f.copied.Bytes, Full: true}
	if part.SHA256 = sha256.Sum256(nil); f.copied.SHA256 != nil {
		part.SHA256 = [sha256.Size]byte(f.copied.SHA256)
	}
	f.copied.SHA256, f.copied.Full = part.SHA256[:], true
	return part, f
}

// begins reports whether a file begins with its copy, so that a process can continue from it.
func begins(src io.Reader, t transcripts.Transcript) (bool, error) {
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
