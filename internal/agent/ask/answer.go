package ask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
)

// Denial is what the model is told: the person's reason steers it.
func Denial(a approvals.Approval) string {
	switch {
	case a.Kind == approvals.Question:
		return strings.TrimSpace("The person does not want to answer this. " + a.Reason)
	case a.Kind == approvals.Plan && a.Reason != "":
		return "The person wants you to keep planning: " + a.Reason
	case a.Kind == approvals.Plan:
		return "The person did not accept the plan. Ask what to change."
	case a.Reason != "":
		return "The person denied this, and said: " + a.Reason
	}
	return "The person denied this. Do not try to get around it; say what you would have done, or ask."
}

// TimeToDecide is how long people had.
func TimeToDecide(a approvals.Approval) time.Duration {
	return a.ExpiresAt.Sub(a.CreatedAt).Round(time.Second)
}

// noteMost bounds the input that the note to the model repeats, in bytes. What is longer
// stands in its conversation.
const noteMost = 8 << 10

// callOf names a call for the model, on one line.
func callOf(a approvals.Approval) string {
	if a.ToolName == policy.NetworkTool {
		return "A connection to " + HostOf(a)
	}
	var input bytes.Buffer
	if err := json.Compact(&input, a.Input); err != nil || input.Len() > noteMost {
		return "The last call of " + a.ToolName
	}
	return a.ToolName + " " + input.String()
}

// answerTo tells the model what was decided about a call.
func answerTo(a approvals.Approval) string {
	switch {
	case a.Status == approvals.Denied:
		return "was refused. " + Denial(a)
	case a.Status == approvals.Expired:
		return fmt.Sprintf("was not decided about within %s, %s", TimeToDecide(a), takenAsNo)
	case a.Status == approvals.Pending:
		return "is not decided yet: make it again as it was."
	case a.Kind == approvals.Question:
		return "was answered: ask it again, word for word, and you get the answer."
	case a.ToolName == policy.NetworkTool:
		return "was allowed: run again what needs it."
	}
	return "was allowed: make it again with exactly this input, and nobody is asked again."
}

// WakeNote tells the model what became of the calls that waited when its turn was parked. paused
// says that there is nothing to go on with: nobody has decided in time. expired is told of each
// call of which the policy takes that as a no.
func WakeNote(answers []approvals.Approval, expired func(approvals.Approval)) (note string, paused bool) {
	var lines []string
	for _, a := range answers {
		if a.Status == approvals.Expired {
			if a.Terms.OnTimeout != approvals.TimeoutDeny {
				return "", true
			}
			expired(a)
		}
		lines = append(lines, "- "+callOf(a)+" "+answerTo(a))
	}
	return "[Deckhand parked this session while people decided, and has resumed it. What ran meanwhile has ended. The calls that waited were not made:\n" +
		strings.Join(lines, "\n") + "\nLook at what you have done already, then go on with the message below.]\n\n", false
}
