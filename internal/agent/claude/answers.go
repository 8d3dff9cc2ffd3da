package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"go.uber.org/zap"
)

// Allow lets the tool of a [CanUseTool] run. updatedInput is what runs, in
// full: pass the Input that was shown, byte for byte. The error is
// [ErrNotPending] when the request was answered or withdrawn before.
func (p *Process) Allow(requestID string, updatedInput json.RawMessage) error {
	if len(updatedInput) == 0 || !json.Valid(updatedInput) {
		return fmt.Errorf("allow %s: the input is no JSON", requestID)
	}
	// Put together by hand: encoding/json would rewrite the input's bytes.
	var answer bytes.Buffer
	answer.WriteString(`{"behavior":"allow","updatedInput":`)
	answer.Write(updatedInput)
	answer.WriteByte('}')
	return p.answer("allow", requestID, answer.Bytes())
}

// Deny refuses the tool of a [CanUseTool]. The model reads the message, so a
// person's reason steers it; interrupt also ends the turn.
func (p *Process) Deny(requestID, message string, interrupt bool) error {
	message = cmp.Or(message, "The request was denied.")
	answer, err := json.Marshal(struct {
		Behavior  string `json:"behavior"`
		Message   string `json:"message"`
		Interrupt bool   `json:"interrupt,omitempty"`
	}{"deny", message, interrupt})
	if err != nil {
		return fmt.Errorf("deny %s: %w", requestID, err)
	}
	return p.answer("deny", requestID, answer)
}

// HookDecision is what a PreToolUse hook decides.
type HookDecision string

// The decisions of a PreToolUse hook. HookAsk leads to a [CanUseTool] whatever the CLI's own
// rules say.
const (
	HookAllow HookDecision = "allow"
	HookDeny  HookDecision = "deny"
	HookAsk   HookDecision = "ask"
)

// AnswerPreToolUse answers a [HookCallback] of the event PreToolUse. The model
// reads the reason of a denial.
func (p *Process) AnswerPreToolUse(requestID string, d HookDecision, reason string) error {
	answer := map[string]any{"hookEventName": "PreToolUse", "permissionDecision": string(d)}
	if reason != "" {
		answer["permissionDecisionReason"] = reason
	}
	return p.AnswerHook(requestID, answer)
}

// AnswerHook answers a [HookCallback] of any event: nil lets things take their course.
// hookEventName must name the event; additionalContext adds to what the model reads.
func (p *Process) AnswerHook(requestID string, specific map[string]any) error {
	answer, err := json.Marshal(struct {
		Specific map[string]any `json:"hookSpecificOutput,omitempty"`
	}{specific})
	if err != nil {
		return fmt.Errorf("answer hook %s: %w", requestID, err)
	}
	return p.answer("answer hook", requestID, answer)
}

// answer sends the answer to a pending request, once.
func (p *Process) answer(verb, requestID string, response []byte) error {
	if !p.calls.close(requestID) {
		return fmt.Errorf("%s %s: %w", verb, requestID, ErrNotPending)
	}
	p.life.answered(requestID)
	if err := p.send(responseLine(requestID, response)); err != nil {
		return fmt.Errorf("%s %s: %w", verb, requestID, err)
	}
	return nil
}

// refuse answers what nobody here can: politely, so that the CLI and the
// server that asked go on. It does not wait.
func (p *Process) refuse(m *RefusedRequest) {
	line := errorLine(m.RequestID, "This host does not support "+m.Subtype+" requests.")
	switch m.Subtype {
	case "elicitation":
		line = responseLine(m.RequestID, []byte(`{"action":"decline"}`))
	case "request_user_dialog":
		line = responseLine(m.RequestID, []byte(`{"behavior":"cancelled"}`))
	}
	if err := p.in.post(line, nil); err != nil {
		p.log.Debug("refusal not sent", zap.Error(err))
	}
}

func responseLine(requestID string, response []byte) []byte {
	id, _ := json.Marshal(requestID) // a string always can be
	line := make([]byte, 0, len(response)+len(id)+96)
	line = append(line, `{"type":"control_response","response":{"subtype":"success","request_id":`...)
	line = append(line, id...)
	line = append(line, `,"response":`...)
	line = append(line, response...)
	return append(line, "}}"...)
}

func errorLine(requestID, message string) []byte {
	id, _ := json.Marshal(requestID)
	text, _ := json.Marshal(message)
	line := append([]byte(`{"type":"control_response","response":{"subtype":"error","request_id":`), id...)
	line = append(line, `,"error":`...)
	line = append(line, text...)
	return append(line, "}}"...)
}
