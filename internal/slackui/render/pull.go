package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/forges"
)

const (
	pullNamesMost = 6
	pullNameMost  = 60
)

// Pull renders a pull request. What others have written at the forge is shown as that.
func Pull(v view.Pull, o Options) Page {
	p, id := v.Pull, fmt.Sprintf("pull:%d", v.Pull.ID)
	text := func(s string, most int) string { return mrkdwn.EscapeWithin(o.redact(plaintext.OneLine(s)), most) }
	number := mrkdwn.Link(p.URL, fmt.Sprintf("#%d", p.Number))
	what := map[string]string{"open": "🔀 *Pull request*", "merged": "🟣 *Merged*", "closed": "🚫 *Closed*"}[p.State]
	if p.State == "open" && p.Draft {
		what = "🔀 *Draft pull request*"
	}
	head := what + " " + number + ": " + text(p.Title, 200)
	facts := []string{mrkdwn.CodeWithin(p.Branch, 80) + " → " + mrkdwn.CodeWithin(p.Base, 80) + " at " + mrkdwn.CodeWithin(p.Head[:min(len(p.Head), pushIDShort)], 20)}
	if p.Further != "" {
		facts[0] = mrkdwn.Code(p.Further) + ": " + facts[0]
	}
	switch p.State {
	case "merged":
		by := ""
		if p.MergedFor != "" {
			by = " for " + mrkdwn.Mention(p.MergedFor)
		} else if p.MergedBy != "" {
			by = " by " + text(p.MergedBy, 60)
		}
		facts = append(facts, "merged"+by+" as "+mrkdwn.CodeWithin(p.MergedCommit[:min(len(p.MergedCommit), pushIDShort)], 20))
	case "open":
		facts = append(facts, pullChecks(p, text), pullReviews(p, text))
		if p.Mergeable == "conflict" {
			facts = append(facts, "⚠️ conflicts with "+mrkdwn.CodeWithin(p.Base, 80))
		}
	}
	blocks := []slack.Block{section(id, head), contextBlock(id+":facts", joinNonEmpty(" · ", facts...))}
	if p.Problem != "" {
		blocks = append(blocks, contextBlock(id+":problem", "⚠️ "+text(p.Problem, 400)))
	}
	if p.State == "open" && v.Connects {
		blocks = append(blocks, contextBlock(id+":for", "Opened by "+text(p.OpenedBy, 60)+" for "+mrkdwn.Mention(p.Requester)+". Write "+mrkdwn.Code("connect")+" to Deckhand, and your own account opens them."))
	}
	if p.State == "open" {
		var buttons []slack.BlockElement
		value := fmt.Sprint(p.ID)
		if v.Wrong {
			buttons = append(buttons, button(view.ActionAddressPull, value, "Address these", slack.StylePrimary))
		}
		if p.Mergeable != "conflict" {
			buttons = append(buttons, button(view.ActionMergePull, value, "Merge…", ""))
		}
		if len(buttons) > 0 {
			blocks = append(blocks, slack.NewActionBlock(id+":do", buttons...))
		}
	}
	return Page{Text: mrkdwn.ClipEscaped(joinNonEmpty("\n", strings.ReplaceAll(head, "*", ""), joinNonEmpty(" · ", facts[1:]...)), fallbackMax), Blocks: blocks}
}

// pullChecks says how the checks stand, with the names of those that have failed.
func pullChecks(p forges.Pull, text func(string, int) string) string {
	by := map[string][]string{}
	for _, c := range p.Checks {
		by[c.State] = append(by[c.State], text(c.Name, pullNameMost))
	}
	var parts []string
	if failed := by["failed"]; len(failed) > 0 {
		said := "❌ " + plural(len(failed), "check has failed", "checks have failed") + ": " + strings.Join(failed[:min(len(failed), pullNamesMost)], ", ")
		if more := len(failed) - pullNamesMost; more > 0 {
			said += " and " + count(more) + " more"
		}
		parts = append(parts, said)
	}
	if n := len(by["pending"]); n > 0 {
		parts = append(parts, "⏳ "+plural(n, "check runs", "checks run"))
	}
	if n := len(by["passed"]); n > 0 {
		parts = append(parts, "✅ "+plural(n, "check has passed", "checks have passed"))
	}
	if len(p.Checks) == 0 {
		parts = append(parts, "no checks yet")
	}
	return strings.Join(parts, ", ")
}

// pullReviews says who has approved, and who wants changes.
func pullReviews(p forges.Pull, text func(string, int) string) string {
	var parts []string
	for _, r := range slices.Backward(p.Reviews) {
		if len(parts) == pullNamesMost {
			break
		}
		switch r.Verdict {
		case "approved":
			parts = append(parts, "✅ approved by "+text(r.Author, pullNameMost))
		case "changes_requested":
			parts = append(parts, "✋ "+text(r.Author, pullNameMost)+" asks for changes")
		}
	}
	if p.Discussions > 0 {
		parts = append(parts, plural(p.Discussions, "open review thread", "open review threads"))
	}
	return strings.Join(parts, ", ")
}

// pullHeadline is what becomes of a pull request, in a line; empty for a call that is about
// none. what is what is pushed for it.
func (c *asking) pullHeadline(what string) string {
	p := *c.a.Push.Pull
	if c.a.Edited.Times > 0 && p.Number == 0 { // as people have it now
		in := struct {
			Title *string
			Draft *bool
		}{&p.Title, &p.Draft}
		_ = json.Unmarshal(c.a.ToRun(), &in) // what people changed is such an input
	}
	title := mrkdwn.EscapeWithin(c.o.redact(plaintext.OneLine(p.Title)), 200)
	where := " into " + c.code(p.Base, 100) + c.ofRepository()
	number := fmt.Sprintf("#%d", p.Number)
	switch {
	case p.Head != "":
		return "*Merge pull request " + number + "*" + where + ": " + title
	case p.Number > 0:
		return "*Push " + what + " to pull request " + number + "*" + where + ": " + title
	case p.Draft:
		return "*Open a draft pull request* of " + what + " from " + c.code(p.Branch, 100) + where + ": " + title
	}
	return "*Open a pull request* of " + what + " from " + c.code(p.Branch, 100) + where + ": " + title
}

// reviewers says whom the forge is to ask for a review of a pull request that is opened.
func (c *asking) reviewers(p *forges.PushPull) string {
	var names []string
	for _, name := range p.Reviewers {
		names = append(names, c.code(name, 60))
	}
	return "Asks " + strings.Join(names, ", ") + " for a review"
}

// merged says of a pull request that is to be merged how it stood when people were asked.
func (c *card) merged(p *forges.PushPull) {
	text := func(s string, most int) string { return mrkdwn.EscapeWithin(c.o.redact(plaintext.OneLine(s)), most) }
	as := forges.Pull{Checks: p.Checks, Reviews: p.Said}
	draft := ""
	if p.Draft {
		draft = "a draft"
	}
	how := map[string]string{"merge": "with a merge commit", "squash": "as one commit", "rebase": "its commits put on top"}[p.Method]
	c.section(joinNonEmpty("\n", "The commit "+c.code(p.Head[:min(len(p.Head), pushIDShort)], 20)+", "+how+". If its branch moves before you decide, nothing is merged.",
		"When this was asked: "+joinNonEmpty(" · ", draft, pullChecks(as, text), pullReviews(as, text))+". The pull request's message has how it stands now."))
}
