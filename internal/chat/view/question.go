package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"deckhand/internal/plaintext"
	"deckhand/internal/store/approvals"
)

// Question is one of AskUserQuestion's.
type Question struct {
	Question    string `json:"question"`
	Header      string `json:"header"`
	MultiSelect bool   `json:"multiSelect"`
	Options     []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// Questions reads the input of AskUserQuestion; raw is its list as it came.
func Questions(a approvals.Approval) (list []Question, raw json.RawMessage, err error) {
	raw = FieldsOf(a.Input).Raw("questions")
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, nil, errors.New("these questions cannot be read")
	}
	for _, q := range list {
		if q.Question == "" {
			return nil, nil, errors.New("one of these questions is empty")
		}
	}
	return list, raw, nil
}

func answerError(format string, q Question) error {
	return &AnswerError{fmt.Sprintf(format, plaintext.Clip(plaintext.OneLine(q.Question), 200))}
}

// Answers builds the input that answers a question's card or its modal: the
// questions exactly as they were asked, and the answers. state is the state of the
// message or the view: block id → action id → value. A question without an answer
// and a choice that was not offered give an [*AnswerError].
func Answers(a approvals.Approval, state Inputs) (json.RawMessage, error) {
	list, raw, err := Questions(a)
	if err != nil {
		return nil, err
	}
	answers := map[string]string{}
	for i, q := range list {
		n := strconv.Itoa(i)
		picks, err := picked(q, state["q"+n][ActionPick])
		if err != nil {
			return nil, err
		}
		if other := strings.TrimSpace(state["o"+n][ActionOther].Value); other != "" {
			if !q.MultiSelect {
				picks = nil // what somebody took the trouble to write outweighs a choice
			}
			picks = append(picks, other)
		}
		if len(picks) == 0 {
			return nil, answerError("Please answer “%s” first, or choose Skip.", q)
		}
		answer := strings.Join(picks, ", ")
		if earlier, ok := answers[q.Question]; ok && earlier != answer {
			answer = earlier + ", " + answer
		}
		answers[q.Question] = answer
	}
	out, err := json.Marshal(struct {
		Questions json.RawMessage   `json:"questions"`
		Answers   map[string]string `json:"answers"`
	}{raw, answers})
	if err != nil {
		return nil, fmt.Errorf("encode the answers: %w", err)
	}
	return out, nil
}

// picked returns the labels that were chosen, which must have been offered.
func picked(q Question, got Input) ([]string, error) {
	if len(got.Chosen) > 1 && !q.MultiSelect {
		return nil, answerError("Only one answer fits “%s”.", q)
	}
	var labels []string
	for _, option := range got.Chosen {
		i, err := strconv.Atoi(option)
		if err != nil || i < 0 || i >= min(len(q.Options), OptionsMax) {
			return nil, answerError("That is not one of the choices for “%s”. Please choose again.", q)
		}
		labels = append(labels, q.Options[i].Label)
	}
	return labels, nil
}
