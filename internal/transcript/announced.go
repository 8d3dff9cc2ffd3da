package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
)

const (
	// announcedMost is how many uses of tools are read of an answer.
	announcedMost = 100
	// announcedIn is how many of a session's copies are looked through for an answer: the
	// session's own, and those of subagents that were written last.
	announcedIn = 8
)

// Announced looks in the copies of a session for the answer of the model that asks for a use
// of a tool, and gives the uses that the same answer asks for after it and that have no result
// yet, in their order: the CLI asks for one after the other. None are given where the answer
// is not copied yet, or not any more. Whatever runs in the session can have written it: what
// is announced is a hint at what will be asked, and gives no right to anything.
func Announced(ctx context.Context, copies Copies, sessionID, use string) ([]claude.ToolUse, error) {
	if use == "" {
		return nil, nil
	}
	list, err := copies.Transcripts(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b store.Transcript) int {
		if (a.Agent == "") != (b.Agent == "") {
			return len(a.Agent) - len(b.Agent) // the session's own has none
		}
		return b.SavedAt.Compare(a.SavedAt)
	})
	for _, t := range list[:min(len(list), announcedIn)] {
		a := &announcer{use: use}
		err := copies.ReadTranscript(ctx, t, &lines{read: a.read})
		switch {
		case errors.Is(err, store.ErrDamaged): // it is not what was written
		case err != nil:
			return nil, fmt.Errorf("look for what an answer goes on to do: %w", err)
		case a.answer != "":
			return a.after, nil
		}
	}
	return nil, nil
}

// announcer reads a transcript, and keeps what an answer asks for after one use of a tool.
// What a session was resumed from may be told twice: the last time counts.
type announcer struct {
	use    string // the one
	answer string // its answer's id, once it was found
	after  []claude.ToolUse
}

func (a *announcer) read(line []byte) {
	if a.answer == "" && !bytes.Contains(line, []byte(a.use)) {
		return
	}
	id, uses := claude.ToolUses(line)
	for _, b := range uses {
		switch {
		case b.ID == a.use:
			a.answer, a.after = id, nil
		case a.answer == "" || id != a.answer || b.ID == "" || len(a.after) >= announcedMost:
		case !slices.ContainsFunc(a.after, func(have claude.ToolUse) bool { return have.ID == b.ID }):
			b.Input = bytes.Clone(b.Input)
			a.after = append(a.after, b)
		}
	}
	for _, b := range claude.ToolResults(line) {
		a.after = slices.DeleteFunc(a.after, func(u claude.ToolUse) bool { return u.ID == b.ToolUseID })
	}
}
