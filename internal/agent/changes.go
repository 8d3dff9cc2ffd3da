package agent

import (
	"encoding/json"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
)

// Change is [ask.Change] by this team's policy.
func (s *Supervisor) Change(a store.Approval, input json.RawMessage) (e store.Edit, why string) {
	return ask.Change(s.policy, a, input)
}

// afterChanges registers the hooks by which the model is told what ran: the CLI shows it the
// call as it wrote it, with the result of what people have made of it.
func afterChanges() map[string][]claude.HookMatcher {
	every := []claude.HookMatcher{{Matcher: "Bash|Edit|Write|NotebookEdit", CallbackIDs: []string{"deckhand-changed"}}}
	return map[string][]claude.HookMatcher{"PostToolUse": every, "PostToolUseFailure": every}
}

// tellChange tells the model with a call's result that another input ran than it wrote.
func (w *worker) tellChange(h *claude.HookCallback) error {
	answer := claude.HookAnswer{}
	if told, ok := w.turn.changed[h.ToolUseID]; ok {
		delete(w.turn.changed, h.ToolUseID)
		answer.Specific = map[string]any{"hookEventName": h.Event, "additionalContext": told}
	}
	return w.reply(w.session.proc.AnswerHook(h.RequestID, answer))
}
