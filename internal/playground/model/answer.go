package model

import (
	"crypto/rand"
	"encoding/json"
)

// answer is one complete response of the model, before it is written as JSON
// or as a stream.
type answer struct {
	ID         string
	Model      string
	Blocks     []answerBlock
	StopReason string
	Usage      usage
	Pace       int // characters a second, 0 = at once
}

// answerBlock is one content block of an answer; exactly one kind is set.
type answerBlock struct {
	Thinking  string
	Signature string
	Text      string
	ToolID    string
	Tool      toolCall
}

func (b answerBlock) kind() string {
	switch {
	case b.ToolID != "":
		return "tool_use"
	case b.Thinking != "":
		return "thinking"
	default:
		return "text"
	}
}

// MarshalJSON writes the block as a non-streamed answer carries it.
func (b answerBlock) MarshalJSON() ([]byte, error) {
	switch b.kind() {
	case "tool_use":
		return plainJSON(struct {
			Type  string          `json:"type"`
			ID    string          `json:"id"`
			Name  string          `json:"name"`
			Input json.RawMessage `json:"input"`
		}{"tool_use", b.ToolID, b.Tool.Name, b.Tool.Input})
	case "thinking":
		return plainJSON(struct {
			Type      string `json:"type"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature"`
		}{"thinking", b.Thinking, b.Signature})
	default:
		return plainJSON(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", b.Text})
	}
}

// outputTokens estimates the tokens of the answer.
func (a *answer) outputTokens() int {
	n := 0
	for _, b := range a.Blocks {
		n += tokensIn(len(b.Thinking)) + tokensIn(len(b.Text))
		if b.ToolID != "" {
			n += 12 + tokensIn(len(b.Tool.Name)+len(b.Tool.Input))
		}
	}
	return max(n, 1)
}

// build turns a step into the blocks of an answer.
func (s *Server) build(st step, model string, u usage) answer {
	a := answer{ID: s.newID("msg_01"), Model: model, StopReason: "end_turn", Pace: st.Pace}
	if st.Thinking != "" {
		a.Blocks = append(a.Blocks, answerBlock{Thinking: st.Thinking, Signature: s.newID("EqQB")})
	}
	if st.Say != "" {
		a.Blocks = append(a.Blocks, answerBlock{Text: st.Say})
	}
	for _, t := range st.Tools {
		a.Blocks = append(a.Blocks, answerBlock{ToolID: s.newID("toolu_01"), Tool: t})
		a.StopReason = "tool_use"
	}
	u.OutputTokens = a.outputTokens()
	a.Usage = u
	if st.Usage != nil {
		// parseDirectives and the script loader only let valid usages through.
		if over, err := u.override(st.Usage); err == nil {
			a.Usage = over
		}
	}
	return a
}

// randomID makes ids in the shape of Anthropic's: a prefix and 22 letters and
// digits.
func randomID(prefix string) string {
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	b := make([]byte, 22)
	_, _ = rand.Read(b) // documented never to fail
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return prefix + string(b)
}
