package transcript

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store/transcripts"
)

// Copies has the copies of sessions: the methods of [*store.Store] that [Results] needs.
type Copies interface {
	Transcripts(ctx context.Context, sessionID string) ([]transcripts.Transcript, error)
	ReadTranscript(ctx context.Context, t transcripts.Transcript, out io.Writer) error
}

// Result is a tool's result as the model read it. Everything in the session can have written it.
type Result struct {
	Text     string
	Pictures int // and other content without text
	SHA256   string
	Subagent bool // a subagent used the tool
}

// Found is what [Results] has found.
type Found struct {
	Results map[string]Result // by the uses' ids
	// Kept says that there are copies of the session; Full, that they have reached their limit, so that later
	// results are missing; Damaged, that some could not be read.
	Kept, Full, Damaged bool
}

// Add adds the results of another session.
func (f *Found) Add(other Found) {
	maps.Copy(f.Results, other.Results)
	f.Kept, f.Full, f.Damaged = f.Kept || other.Kept, f.Full || other.Full, f.Damaged || other.Damaged
}

// Results finds the results of tool uses in a session's copies.
func Results(ctx context.Context, copies Copies, sessionID string, uses []string) (Found, error) {
	list, err := copies.Transcripts(ctx, sessionID)
	if err != nil {
		return Found{}, err
	}
	found := Found{Results: map[string]Result{}, Kept: len(list) > 0}
	for _, t := range list {
		found.Full = found.Full || t.Full
		if len(found.Results) == len(uses) {
			break
		}
		f := &finder{subagent: t.Agent != "", found: map[string]Result{}}
		for _, id := range uses {
			if _, ok := found.Results[id]; !ok && id != "" {
				f.uses = append(f.uses, id)
			}
		}
		err := copies.ReadTranscript(ctx, t, &lines{read: f.read})
		switch {
		case errors.Is(err, transcripts.ErrDamaged):
			found.Damaged = true
			continue // it is damaged
		case err != nil:
			return Found{}, fmt.Errorf("look for results of tools: %w", err)
		}
		maps.Copy(found.Results, f.found)
	}
	return found, nil
}

// finder reads a transcript, and keeps the results of some tool uses. The last one counts: a resumed session may
// repeat its history.
type finder struct {
	uses     []string
	subagent bool
	found    map[string]Result
}

// lines splits a transcript that is written to it into lines, each valid until the next one.
type lines struct {
	read func(line []byte)
	line []byte // the beginning of an incomplete one
}

// Write takes the next part of the transcript.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.line = append(l.line, p...)
			return n, nil
		}
		line := p[:i]
		if len(l.line) > 0 {
			line = append(l.line, line...)
			l.line = line[:0]
		}
		l.read(line)
		p = p[i+1:]
	}
}

func (f *finder) read(line []byte) {
	wanted := false
	for _, id := range f.uses {
		wanted = wanted || bytes.Contains(line, []byte(id))
	}
	if !wanted {
		return
	}
	for _, b := range claude.ToolResults(line) {
		for _, id := range f.uses {
			if b.ToolUseID == id {
				f.found[id] = resultOf(b, f.subagent)
			}
		}
	}
}

func resultOf(b claude.Block, subagent bool) Result {
	sum, _ := b.ResultSum()
	r := Result{SHA256: hex.EncodeToString(sum[:]), Subagent: subagent}
	var text []string
	for _, c := range b.Content {
		if c.Type == "text" {
			text = append(text, c.Text)
		} else {
			r.Pictures++
		}
	}
	r.Text = strings.Join(text, "\n")
	return r
}
