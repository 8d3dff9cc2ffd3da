package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// plainJSON encodes v as Anthropic does: without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// writeJSON writes the answer as a plain response.
func writeJSON(w http.ResponseWriter, a *answer) error {
	blocks := a.Blocks
	if blocks == nil {
		blocks = []answerBlock{}
	}
	body, err := plainJSON(struct {
		Model        string        `json:"model"`
		ID           string        `json:"id"`
		Type         string        `json:"type"`
		Role         string        `json:"role"`
		Content      []answerBlock `json:"content"`
		StopReason   string        `json:"stop_reason"`
		StopSequence *string       `json:"stop_sequence"`
		Usage        usage         `json:"usage"`
	}{a.Model, a.ID, "message", "assistant", blocks, a.StopReason, nil, a.Usage})
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// stream writes server-sent events and flushes each.
type stream struct {
	ctx context.Context
	w   http.ResponseWriter
	ctl *http.ResponseController

	frames bool // of Amazon's event stream, not server-sent events

	bytes int  // until the stream is cut, negative = never
	chars int  // until the stream is cut or stalls, negative = never
	stall bool // at the end of chars say nothing more, instead of a cut
	mute  bool // tell no usage

	// open is set between message_start and the final usage: the client knows
	// what the prompt costs, and guesses what the answer does.
	open  bool
	guess guess
	made  guess // what is billed: a token for each four characters
}

// guess is what the CLI takes for the output tokens of an answer that broke
// off: a third of the characters (as JavaScript counts them) of every block,
// a tool's name included, or of some models a quarter. Seen on 2.1.329; 2.1.276
// counts nothing of such an answer.
type guess struct {
	per   int // characters per token
	done  int // tokens of the blocks before the current
	chars int // of the current block
}

func (g *guess) add(text string) { g.chars += len(utf16.Encode([]rune(text))) }

func (g *guess) endBlock() { g.done, g.chars = g.tokens(), 0 }

func (g *guess) tokens() int { return g.done + (2*g.chars+g.per)/(2*g.per) }

// quarters are the models of whose answers the CLI guesses a token per four characters.
var quarters = regexp.MustCompile(`claude-(?:sonnet-4-[0256]|haiku-4-5|opus-4-[56])(?:$|[^0-9]|[0-9]{5})`)

func newGuess(model string) guess {
	if quarters.MatchString(model) {
		return guess{per: 4}
	}
	return guess{per: 3}
}

func newStream(ctx context.Context, w http.ResponseWriter, model string, f Fault, how form) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	if how.frames {
		h.Set("Content-Type", "application/vnd.amazon.eventstream")
	}
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	s := &stream{ctx: ctx, w: w, ctl: http.NewResponseController(w), frames: how.frames, bytes: -1, chars: -1, mute: f.Mute, guess: newGuess(model), made: guess{per: 4}}
	if f.CutAfterBytes > 0 {
		s.bytes = f.CutAfterBytes
	}
	if f.CutAfterChars > 0 {
		s.chars = f.CutAfterChars
	}
	if f.StallAfterChars > 0 {
		s.chars, s.stall = f.StallAfterChars, true
	}
	return s
}

// cutError says that a fault ended the stream in the middle.
type cutError struct{}

func (cutError) Error() string { return "stream cut by a fault" }

// usageInEvent is what an event says of the usage.
var usageInEvent = regexp.MustCompile(`"usage":\{(?:[^{}]|\{[^{}]*\})*\}`)

func (s *stream) event(name string, v any) error {
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("stream %s: %w", name, context.Cause(s.ctx))
	}
	data, err := plainJSON(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if s.mute {
		data = usageInEvent.ReplaceAll(data, []byte(`"usage":{}`))
	}
	out := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
	if s.frames {
		if out, err = frame(data); err != nil {
			return err
		}
	}
	cut := s.bytes >= 0 && len(out) > s.bytes
	if cut {
		out = out[:s.bytes]
	} else if s.bytes >= 0 {
		s.bytes -= len(out)
	}
	if _, err := s.w.Write(out); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := s.ctl.Flush(); err != nil {
		return fmt.Errorf("flush %s: %w", name, err)
	}
	if cut {
		return s.cut()
	}
	return nil
}

// cutDelay lets what was sent arrive before the connection breaks: a broken
// connection drops what the client has not read.
const cutDelay = 200 * time.Millisecond

// cut ends the stream in the middle.
func (s *stream) cut() error {
	if err := pause(s.ctx, cutDelay); err != nil {
		return err
	}
	return cutError{}
}

// answer streams a whole answer at its pace. bill is called just before the
// final usage is sent, so that whoever has seen it finds it in the bill.
func (s *stream) answer(a *answer, bill func()) error {
	if err := s.event("message_start", startEvent{"message_start", startMessage{
		Model: a.Model, ID: a.ID, Type: "message", Role: "assistant", Content: []string{}, Usage: a.Usage.opening(0),
	}}); err != nil {
		return err
	}
	s.open = true
	for i, b := range a.Blocks {
		pace := a.Pace
		if b.kind() == "tool_use" && (i == 0 || a.Blocks[i-1].kind() != "tool_use") {
			pace = 0 // the first call comes at once, those after it while people look at it
		}
		if err := s.block(i, b, pace); err != nil {
			return err
		}
	}
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("stream answer: %w", context.Cause(s.ctx))
	}
	bill()
	s.open = false
	if err := s.event("message_delta", messageDelta{
		"message_delta",
		stopDelta{StopReason: a.StopReason},
		deltaUsage{
			a.Usage.InputTokens, a.Usage.CacheCreationInputTokens, a.Usage.CacheReadInputTokens,
			a.Usage.OutputTokens, a.Usage.ServerToolUse,
		},
	}); err != nil {
		return err
	}
	return s.event("message_stop", plainEvent{"message_stop"})
}

func (s *stream) block(i int, b answerBlock, pace int) error {
	var start any
	var send func(string) any
	var text string
	switch b.kind() {
	case "tool_use":
		start = toolStart{Type: "tool_use", ID: b.ToolID, Name: b.Tool.Name}
		send = func(t string) any { return inputDelta{"input_json_delta", t} }
		text = string(b.Tool.Input)
	case "thinking":
		start = thinkingStart{Type: "thinking"}
		send = func(t string) any { return thinkingDelta{"thinking_delta", t} }
		text = b.Thinking
	default:
		start = textStart{Type: "text"}
		send = func(t string) any { return textDelta{"text_delta", t} }
		text = b.Text
	}
	if err := s.event("content_block_start", blockStart{"content_block_start", i, start}); err != nil {
		return err
	}
	s.guess.endBlock()
	s.made.endBlock()
	s.count(b.Tool.Name)
	if i == 0 {
		if err := s.event("ping", plainEvent{"ping"}); err != nil {
			return err
		}
	}
	if b.kind() == "tool_use" {
		// Anthropic opens every input with an empty piece.
		if err := s.event("content_block_delta", blockDelta{"content_block_delta", i, send("")}); err != nil {
			return err
		}
	}
	size := chunkSize(utf8.RuneCountInString(text), pace)
	for text != "" {
		var piece string
		n := size
		if s.chars >= 0 {
			n = min(size, s.chars)
		}
		piece, text = cutRunes(text, n)
		if err := s.event("content_block_delta", blockDelta{"content_block_delta", i, send(piece)}); err != nil {
			return err
		}
		s.count(piece)
		if s.chars >= 0 {
			if s.chars -= utf8.RuneCountInString(piece); s.chars <= 0 {
				if s.stall {
					<-s.ctx.Done()
					return fmt.Errorf("stall: %w", context.Cause(s.ctx))
				}
				return s.cut()
			}
		}
		if pace > 0 {
			if err := pause(s.ctx, time.Duration(utf8.RuneCountInString(piece))*time.Second/time.Duration(pace)); err != nil {
				return err
			}
		}
	}
	if b.Signature != "" {
		if err := s.event("content_block_delta", blockDelta{"content_block_delta", i, signatureDelta{"signature_delta", b.Signature}}); err != nil {
			return err
		}
	}
	return s.event("content_block_stop", blockStop{"content_block_stop", i})
}

// count counts what was sent of an answer.
func (s *stream) count(text string) {
	s.guess.add(text)
	s.made.add(text)
}

// chunkSize is the number of characters per delta: about twenty deltas a
// second when paced, else small pieces, but no more than some hundred.
func chunkSize(total, pace int) int {
	if pace > 0 {
		return max(1, pace/20)
	}
	return max(12, total/200)
}

func cutRunes(s string, n int) (head, tail string) {
	i := 0
	for range n {
		if i >= len(s) {
			break
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return s[:i], s[i:]
}

// pause waits, or returns the cause when ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pause: %w", context.Cause(ctx))
	}
}
