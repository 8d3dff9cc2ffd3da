package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store/transcripts"
)

// Prompts tells what a session was given, beside its copies.
type Prompts interface {
	Copies
	PromptsAfter(ctx context.Context, sessionID string, turn int64) (ids map[string]bool, spoke bool, err error)
}

// ErrNotKept is a conversation of which it is not known where a turn has ended.
var ErrNotKept = errors.New("the conversation as it was then is not kept")

// Until is the beginning of a session's conversation, up to the end of a turn, for a session of another id; nil if nothing
// was said by then.
func Until(ctx context.Context, store Prompts, sessionID string, turn int64, as string) (*transcripts.Part, error) {
	copies, err := store.Transcripts(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	later, spoke, err := store.PromptsAfter(ctx, sessionID, turn)
	if err != nil {
		return nil, err
	}
	if len(copies) == 0 || copies[0].Agent != "" {
		return nil, ErrNotKept
	}
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := store.ReadTranscript(ctx, copies[0], write)
		done <- err
		_ = write.CloseWithError(err)
	}()
	part, cut, err := until(read, later)
	_ = read.Close() // the rest is not read
	if e := <-done; err == nil && !cut {
		err = e
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read what was said: %w", err)
	case !cut && (spoke || copies[0].Full):
		return nil, ErrNotKept
	}
	if part != nil {
		part.SessionID = as
	}
	return part, nil
}

// answered is in the lines of a transcript that the model has written.
var answered = []byte(`"type":"assistant"`)

// until reads a transcript up to the first of some lines; cut reports whether it met one. The part is nil if nothing was
// answered before it.
func until(from io.Reader, later map[string]bool) (part *transcripts.Part, cut bool, err error) {
	in, sum, said := claude.NewTranscriptReader(from), sha256.New(), false
	p := transcripts.Part{}
	var open []byte
	for {
		line, err := in.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		if cut = later[in.Link().ID]; cut {
			break
		}
		said = said || in.Link().ID != "" && bytes.Contains(line, answered)
		sum.Write(line)
		p.Bytes += int64(len(line))
		if open = append(open, line...); len(open) >= pieceBytes {
			p.Pieces, open = append(p.Pieces, open), nil
		}
		if err != nil {
			break
		}
	}
	if len(open) > 0 {
		p.Pieces = append(p.Pieces, open)
	}
	if p.SHA256 = [sha256.Size]byte(sum.Sum(nil)); !said {
		return nil, cut, nil
	}
	return &p, cut, nil
}
