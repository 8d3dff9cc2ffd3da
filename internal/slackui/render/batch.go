package render

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/store/approvals"
)

// InBatch reports whether a request may be decided together with others of its card: a tool
// call that waits, and that takes no second step of its own.
func InBatch(a approvals.Approval) bool {
	return a.Status == approvals.Pending && a.Kind == approvals.Tool && !a.Terms.Dangerous
}

// batch are the blocks that decide about the rows that may be decided together: a checkbox for
// each, all ticked, and two buttons, whose value are the Refs of the rows. There are none for
// fewer than two rows.
func batch(shown []*row) []slack.Block {
	var options []*slack.OptionBlockObject
	var refs []string
	for _, r := range shown {
		if !InBatch(r.a) {
			continue
		}
		label := strconv.Itoa(r.number) + " · " + capital(r.verb) + " " + plaintext.OneLine(plaintext.Visible(r.object))
		options = append(options, slack.NewOptionBlockObject(view.Ref(r.a), plain(label, optionMax), nil))
		refs = append(refs, view.Ref(r.a))
	}
	if len(refs) < 2 {
		return nil
	}
	tick := slack.NewCheckboxGroupsBlockElement(view.ActionTick, options...)
	tick.InitialOptions = options
	all := strings.Join(refs, " ")
	// A client keeps what a person has ticked for as long as the block has its id: until other
	// requests are decided together.
	of := fmt.Sprintf("%x", sha256.Sum256([]byte(all)))[:16]
	return []slack.Block{
		slack.NewActionBlock("tick:"+of, tick),
		slack.NewActionBlock("ticked:"+of, button(view.ActionApproveTicked, all, "Approve ticked", slack.StylePrimary), button(view.ActionDenyAll, all, "Deny all", "")),
	}
}
