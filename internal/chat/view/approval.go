package view

import (
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/plaintext"
	"deckhand/internal/report"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
)

// Ticked are the Refs of the rows of a card that are ticked.
func Ticked(values Inputs) (refs []string) {
	for _, block := range values {
		refs = append(refs, block[ActionTick].Chosen...)
	}
	return refs
}

// codeLetters is how many of an approval's id its code has.
const codeLetters = 5

// Code is the short code by which an approval is named in a reply, as in "approve 7K2QX",
// or "approve 7K2QX2" for one whose input was changed since.
func Code(a approvals.Approval) string {
	code := strings.ToUpper(a.ID[:min(codeLetters, len(a.ID))])
	if a.Edited.Times > 0 {
		code += strconv.Itoa(a.Edited.Times + 1)
	}
	return code
}

// ParseCode reads a Code: the beginning of the approval's id, and how often its input had
// been changed when it was shown.
func ParseCode(code string) (prefix string, seen int) {
	code = strings.ToUpper(code)
	if len(code) <= codeLetters {
		return code, 0
	}
	n, err := strconv.Atoi(code[codeLetters:])
	if err != nil || n < 2 {
		return code, -1 // no approval's
	}
	return code[:codeLetters], n - 1
}

// TokenField is the input in which a person enters a token, or an address with the code for one.
const TokenField = "token"

// Ref names an approval and its input as it stands: what was shown of it before somebody
// changed it decides nothing. It is the value of the buttons that allow.
func Ref(a approvals.Approval) string {
	if a.Edited.Times == 0 {
		return a.ID
	}
	return a.ID + "." + strconv.Itoa(a.Edited.Times)
}

// ParseRef reads a Ref: the approval's id, and how often its input had been changed.
func ParseRef(ref string) (id string, seen int) {
	id, times, ok := strings.Cut(ref, ".")
	if !ok {
		return id, 0
	}
	seen, err := strconv.Atoi(times)
	if err != nil || seen < 0 {
		return id, -1 // no approval's
	}
	return id, seen
}

// ConfirmBox is the box that the second step of what is dangerous wants ticked.
const ConfirmBox = "read"

// Dangers says what will be lost by a call that is dangerous, and the word that confirms it.
func Dangers(a approvals.Approval, redact func(string) string) (loses, word string) {
	input := policy.Call{Tool: a.ToolName, Input: a.Input, Workspace: a.Workspace, Dir: a.Dir, Project: a.Project, Channel: a.ChannelID}
	found := policy.Dangers(input)
	if len(found) == 0 {
		return "The policy calls this dangerous.", "confirm"
	}
	var sentences []string
	for _, d := range found {
		sentences = append(sentences, d.Loses)
	}
	if a.Push != nil && a.Push.Unknown == "" && a.Push.Pull == nil {
		sentences = append(sentences, lostBy(a.Push))
	}
	return plaintext.Visible(redact(strings.Join(sentences, " "))), found[0].Word
}

// MergeFacts are what speaks against a merge of a commit as the pull request stands now, a sentence each. Names in them
// are others'.
func MergeFacts(p forges.Pull, head string) (facts []string) {
	add := func(what string, names []string) {
		if len(names) > 0 {
			facts = append(facts, plaintext.Clip(plaintext.OneLine(plaintext.Visible(what+strings.Join(names, ", "))), 500)+".")
		}
	}
	checks, verdicts := map[string][]string{}, map[string][]string{}
	for _, c := range p.Checks {
		checks[c.State] = append(checks[c.State], c.Name)
	}
	for _, r := range p.Reviews {
		verdicts[r.Verdict] = append(verdicts[r.Verdict], r.Author)
	}
	if p.Problem != "" {
		facts = append(facts, p.Problem)
	}
	if p.State != "open" {
		return append(facts, "It is "+p.State+" already.")
	}
	if p.Head != head {
		facts = append(facts, "Its branch has moved since this was asked, and a merge of the older commit is refused.")
	}
	if p.Draft {
		facts = append(facts, "It is a draft, and would be marked as ready.")
	}
	add("Checks that have failed: ", checks["failed"])
	add("Checks that have not ended: ", checks["pending"])
	if len(p.Checks) == 0 {
		facts = append(facts, "It has no checks yet.")
	}
	add("Changes are asked for by ", verdicts["changes_requested"])
	if len(verdicts["approved"]) == 0 {
		facts = append(facts, "Nobody has approved it at the forge.")
	}
	if p.Discussions > 0 {
		facts = append(facts, "Open review threads: "+strconv.Itoa(p.Discussions)+".")
	}
	return facts
}

// ParseConfirm reports whether the box in ConfirmModal was ticked.
func ParseConfirm(values Inputs) bool {
	return slices.Contains(values[ConfirmBox][ConfirmBox].Chosen, "yes")
}

// ReasonBlock and ReasonAction name the input of DenyReason's modal.
const (
	ReasonBlock  = "reason"
	ReasonAction = "reason"
)

// lostBy says which commits a push throws away.
func lostBy(p *forges.Push) string {
	const most = 5
	var parts []string
	lost := 0
	for _, r := range p.Refs {
		lost += r.Lost.Count
		for _, one := range r.Lost.Some {
			if len(parts) < most {
				parts = append(parts, "“"+plaintext.Clip(plaintext.OneLine(one.Subject), 100)+"” by "+plaintext.Clip(plaintext.OneLine(one.Author), 80))
			}
		}
	}
	if lost == 0 {
		return "As the forge is now, none is lost."
	}
	if more := lost - len(parts); more > 0 {
		parts = append(parts, report.Count(int64(more))+" more")
	}
	return report.Plural(int64(lost), "commit is", "commits are") + " lost: " + strings.Join(parts, ", ") + "."
}

// AnswerError says to the person who answered what is wrong with the answer.
type AnswerError struct{ Sentence string }

func (e *AnswerError) Error() string { return e.Sentence }
