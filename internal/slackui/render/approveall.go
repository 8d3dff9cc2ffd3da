package render

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// CallbackApproveAll is the callback id of the modal that approves several requests of a
// card. Its private metadata is a [Listed], in JSON.
const CallbackApproveAll = "approve_all"

// Listed are the approvals that the modal showed, whole.
type Listed struct {
	CardID string   `json:"card"`
	IDs    []string `json:"ids"` // their Refs
}

// ParseListed reads the private metadata of the modal.
func ParseListed(metadata string) (Listed, bool) {
	var l Listed
	err := json.Unmarshal([]byte(metadata), &l)
	return l, err == nil && l.CardID != "" && len(l.IDs) > 0
}

// Together reports whether a request may be approved together with others: a tool call that
// waits, and that takes no second step of its own.
func Together(a store.Approval) bool {
	return a.Status == store.ApprovalPending && a.Kind == store.ApprovalTool && !a.Terms.Dangerous
}

// approveAll are the buttons that open a modal for several requests, if there are some for
// it.
func (c *card) approveAll(list []row) {
	var waiting []string
	for _, r := range list {
		if Together(r.a) {
			waiting = append(waiting, r.a.ID)
		}
	}
	var buttons []slack.BlockElement
	if len(waiting) > 1 {
		buttons = append(buttons, button(ActionApproveAll, waiting[0], "Approve together…", ""))
	}
	if buttons = append(buttons, c.approveFiles(list)...); len(buttons) > 0 {
		c.add(slack.NewActionBlock(c.id(), buttons...))
	}
}

// ApproveAll is the modal that approves several of a card's requests. It shows the whole
// input of each that it is about; what is not, because it is dangerous, no tool call, too
// long to be read here, or not among mine, which are the ids that the person may decide
// about, is named. None is left out in silence. listed is empty if there is nothing that it
// could approve.
func ApproveAll(list []store.Approval, mine []string, o Options) (v slack.ModalViewRequest, listed Listed) {
	listed.CardID = list[0].CardID
	c := card{a: list[0], o: o}
	var left []string
	chunksLeft := inputChunks
	for i, a := range list {
		if a.Status != store.ApprovalPending {
			continue
		}
		one := card{a: a, o: o}
		s := one.subjectOf(a, rowObject)
		verb, rest := s.headline()
		name := strconv.Itoa(i+1) + " · " + capital(verb)
		why := ""
		chunks, deceits := inputChunksOf(a, o)
		switch {
		case a.Terms.Dangerous:
			why = "is dangerous, and takes a step of its own"
		case !Together(a):
			why = "is no tool call"
		case !slices.Contains(mine, a.ID):
			why = "is not yours to decide"
		case len(chunks) > chunksLeft:
			why = "is too long to be read here"
		}
		if why != "" {
			left = append(left, "*"+name+"* "+rest+" "+why+".")
			continue
		}
		chunksLeft -= len(chunks)
		listed.IDs = append(listed.IDs, Ref(a))
		warnings := s.warnings(newWarnings(deceits, s.cautions)...)
		c.a = a
		c.section(joinNonEmpty("\n", "*"+name+"* "+rest, one.risks(), warnings))
		for _, chunk := range chunks {
			if chunk.label != "" && len(chunks) > 1 {
				c.context(chunk.label)
			}
			c.add(preBlock(c.id(), chunk.text))
		}
	}
	if len(left) > 0 {
		c.section("*Not among them*, decide about these on the card:\n" + mrkdwn.ClipEscaped(strings.Join(left, "\n"), sectionMax-100))
	}
	metadata, err := json.Marshal(listed)
	if err != nil { // strings
		panic(err)
	}
	v = modal("Approve together?", CallbackApproveAll, string(metadata))
	v.Submit = plain("Approve "+count(len(listed.IDs)), modalTitle)
	v.Blocks.BlockSet = c.blocks
	return v, listed
}
