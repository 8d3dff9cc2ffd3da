package render_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/chat/view"
)

type state = view.Inputs

func pick(values ...string) map[string]view.Input {
	return map[string]view.Input{view.ActionPick: {Chosen: values}}
}

func radio(value string) map[string]view.Input {
	return map[string]view.Input{view.ActionPick: {Chosen: []string{value}}}
}

func words(s string) map[string]view.Input {
	return map[string]view.Input{view.ActionOther: {Value: s}}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	const asked = `[ {"question":"One?","header":"h","options":[{"label":"a"},{"label":"b"}],"multiSelect":false, "extra": 1.50},
		{"question":"Many?","options":[{"label":"x, y"},{"label":"z"}],"multiSelect":true} ]`
	a := question(`{"questions":` + asked + `,"metadata":{}}`)
	for name, c := range map[string]struct {
		state   state
		want    string
		problem string
	}{
		"chosen":              {state{"q0": radio("1"), "q1": pick("0", "1")}, `{"Many?":"x, y, z","One?":"b"}`, ""},
		"own words":           {state{"q0": radio("1"), "o0": words(" neither "), "q1": pick("1"), "o1": words("w")}, `{"Many?":"z, w","One?":"neither"}`, ""},
		"one missing":         {state{"q0": radio("0")}, "", "“Many?”"},
		"nothing":             {nil, "", "“One?”"},
		"not offered":         {state{"q0": radio("2"), "q1": pick("0")}, "", "not one of the choices"},
		"negative":            {state{"q0": radio("-1"), "q1": pick("0")}, "", "not one of the choices"},
		"a label for a place": {state{"q0": radio("a"), "q1": pick("0")}, "", "not one of the choices"},
		"two where one fits":  {state{"q0": pick("0", "1"), "q1": pick("0")}, "", "Only one answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := view.Answers(a, c.state)
			if c.problem != "" {
				var sentence *view.AnswerError
				if !errors.As(err, &sentence) || !strings.Contains(sentence.Sentence, c.problem) {
					t.Errorf("error %v, want one with %q", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// The questions stay as they were, but for white space.
			compacted := strings.NewReplacer("[ ", "[", "\n\t\t", "", ", \"extra\": ", `,"extra":`, " ]", "]").Replace(asked)
			if diff := cmp.Diff(`{"questions":`+compacted+`,"answers":`+c.want+`}`, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestQuestionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`{}`, `[]`, `{"questions":[]}`, `{"questions":[{"question":""}]}`, `{"questions":{}}`} {
		if got, err := view.Answers(question(input), state{"q0": radio("0")}); err == nil {
			t.Errorf("%s: answered with %s", input, got)
		}
	}
}
