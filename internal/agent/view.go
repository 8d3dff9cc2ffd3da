package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"deckhand/internal/agent/claude"
)

const (
	// inputKept and resultKept are how many bytes of a tool's input and of its result are
	// kept of a turn that waits to be shown: its line needs no more, but for a count.
	inputKept  = 16 << 10
	resultKept = 2 << 10
)

// EncodeTurn is an ended turn for the outbox: what [DecodeTurn] makes a view of that
// looks the same to people, whichever process shows it. A long input or result of a tool
// is left out; what the model has said is not.
func EncodeTurn(t TurnView) []byte {
	c := t.Content
	t.Content = claude.Output{Items: make([]claude.Item, len(c.Items)), Status: c.Status, Model: c.Model, Todos: c.Todos}
	for i, it := range c.Items {
		it.Data = ""
		if it.Tool != nil {
			tool := *it.Tool
			tool.StructuredResult = nil
			if len(tool.Input) > inputKept || !json.Valid(tool.Input) {
				tool.Input = nil
			}
			if len(tool.Result) > resultKept {
				tool.Result = strings.ToValidUTF8(tool.Result[:resultKept], "")
			}
			it.Tool = &tool
		}
		t.Content.Items[i] = it
	}
	out, err := json.Marshal(t)
	if err != nil {
		// Its fields are strings, numbers, times of this century and JSON that is valid.
		panic(fmt.Errorf("encode a turn: %w", err))
	}
	return bytes.ToValidUTF8(out, []byte("�")) // an input is copied as it stands
}

// DecodeTurn is the view that a [outbox.Turn] holds.
func DecodeTurn(body string) (TurnView, error) {
	var t TurnView
	if err := json.Unmarshal([]byte(body), &t); err != nil {
		return TurnView{}, fmt.Errorf("read an ended turn: %w", err)
	}
	if t.ID == 0 || !t.State.Ended() || t.State == "" {
		return TurnView{}, errors.New("read an ended turn: it has no id, or has not ended")
	}
	t.Settling = false // whoever was to show it once more has gone
	return t, nil
}
