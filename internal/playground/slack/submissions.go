package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// submission is how a modal's submission ended.
type submission struct {
	errors  map[string]string
	cleared bool
}

// errBadAnswer is an answer to a submission that Slack's client cannot use.
var errBadAnswer = errors.New("the app's answer to the submission is not valid")

// submitAnswer does what the acknowledgement of a submission says: nothing closes
// the modal.
func (s *Server) submitAnswer(v *view, raw json.RawMessage) (submission, error) {
	body := object{}
	if len(raw) > 0 {
		if err := decodeJSON(raw, &body); err != nil {
			return submission{}, errBadAnswer
		}
	}
	if s.openView(v.ID) != v {
		return submission{cleared: true}, nil // closed in the meantime
	}
	next := func() (object, error) {
		def, ok := body["view"].(object)
		if !ok {
			return nil, errBadAnswer
		}
		def, problems := checkView(def, []string{"modal"}, s.fileKnown)
		if len(problems) > 0 {
			return nil, fmt.Errorf("%w: %s", errBadAnswer, strings.Join(problems, "; "))
		}
		return def, nil
	}
	switch action := text(body["response_action"]); action {
	case "errors":
		given, _ := body["errors"].(object)
		out := map[string]string{}
		for block, what := range given {
			if !slices.ContainsFunc(blocksOf(v.Def), func(b any) bool { return text(b.(object)["block_id"]) == block && b.(object)["type"] == "input" }) {
				return submission{}, fmt.Errorf("%w: errors for the block %q, which is no input of the modal", errBadAnswer, block)
			}
			out[block] = text(what)
		}
		if len(out) == 0 {
			return submission{}, fmt.Errorf("%w: no errors given", errBadAnswer)
		}
		return submission{errors: out}, nil
	case "update":
		def, err := next()
		if err != nil {
			return submission{}, err
		}
		v.set(def)
		s.liveView(v.User)
		return submission{}, nil
	case "push":
		def, err := next()
		if err != nil {
			return submission{}, err
		}
		if len(s.stacks[v.User]) >= maxViewStack {
			return submission{}, fmt.Errorf("%w: three modals are open already", errBadAnswer)
		}
		s.pushView(v.User, newView(v.User, def))
		return submission{}, nil
	case "clear":
		s.popView(v.User, true)
		return submission{cleared: true}, nil
	case "":
		s.popView(v.User, false)
		return submission{cleared: s.topView(v.User) == nil}, nil
	default:
		return submission{}, fmt.Errorf("%w: response_action %q", errBadAnswer, action)
	}
}
