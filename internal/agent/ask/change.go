package ask

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
)

// Change is an approval's input as a person would have it run instead, judged as a new
// request would be. why is a sentence where it may not run so by their decision: the
// policy denies it, or has it decided by other people, by more of them, or with a second
// step. What was asked by milder terms never becomes what stricter ones are about.
func Change(p *policy.Policy, a approvals.Approval, input json.RawMessage) (e approvals.Edit, why string) {
	call := policy.Call{Tool: a.ToolName, Input: input, Workspace: a.Workspace, Dir: a.Dir, Project: a.Project, Channel: a.ChannelID}
	d := p.Decide(call)
	rule, isRule := policy.Told(d.Rule)
	if isRule {
		rule = " (" + rule + ")"
	} else {
		rule = ""
	}
	switch t := d.Terms; {
	case d.Fault != "":
		return e, "Deckhand failed while reading it, so it does not run. Its log says more."
	case d.Verdict == policy.Deny:
		return e, "The policy does not allow what you wrote" + rule + ", whoever approves it. The request waits as it was."
	case d.Verdict == policy.Allow:
	case t.Dangerous, t.Fixed, t.Quorum > a.Terms.Quorum, !t.RequesterMayApprove && a.Terms.RequesterMay, !slices.Equal(t.Approvers, a.Terms.Approvers):
		return e, "What you wrote is asked under stricter terms" + rule + " than this request. Deny this one with a reason, and have Deckhand ask for the other. The request waits as it was."
	}
	e = approvals.Edit{Input: input, Touches: Touched(call)}
	for _, risk := range policy.Assess(call) {
		e.Risks = append(e.Risks, string(risk))
	}
	return e, ""
}

// Touched is what a call would touch, as people are shown it; nil where nothing is known, and
// for a plain push, whose commits say more.
func Touched(c policy.Call) json.RawMessage {
	if _, push := policy.PlainPush(c); push {
		return nil
	}
	p := policy.Touches(c)
	if len(p.Touches)+len(p.Hosts)+len(p.Unknown) == 0 {
		return nil
	}
	raw, err := json.Marshal(p)
	if err != nil { // texts and numbers
		panic(err)
	}
	return raw
}

// ChangeNote is what the model is told of a call that ran as people changed it: the fields
// that they changed, as they ran.
func ChangeNote(a approvals.Approval) string {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(a.Input, &before) != nil || json.Unmarshal(a.Edited.Input, &after) != nil {
		before, after = nil, map[string]json.RawMessage{"input": a.Edited.Input}
	}
	maps.DeleteFunc(after, func(key string, value json.RawMessage) bool { return bytes.Equal(before[key], value) })
	var ran bytes.Buffer
	e := json.NewEncoder(&ran)
	e.SetEscapeHTML(false)                  // of commands, in which these are many
	if err := e.Encode(after); err != nil { // it was JSON
		panic(err)
	}
	return "The person who approved this call changed it first: it did not run as you wrote it. What ran has in its place: " + strings.TrimSpace(ran.String()) +
		". The result is of that. It is their decision: go on from it, and do not run your own version instead."
}
