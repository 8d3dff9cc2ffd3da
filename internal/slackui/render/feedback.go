package render

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/turns"
)

// feedback are the buttons below the answer of a turn that is done; nil where the model
// has said nothing, or the turn ended otherwise.
func (v *turnWords) feedback(blockID string) slack.Block {
	if !v.ended || v.t.State != agent.TurnDone || v.t.Continue || !v.said() {
		return nil
	}
	id := strconv.FormatInt(v.t.ID, 10)
	good := slack.NewFeedbackButton(plain("Good answer", 75), view.FeedbackGood+id)
	bad := slack.NewFeedbackButton(plain("Bad answer", 75), view.FeedbackBad+id)
	bad.AccessibilityLabel = "Bad answer: you may say why"
	return slack.NewContextActionsBlock(blockID, slack.NewFeedbackButtonsBlockElement(view.ActionFeedback, good, bad))
}

func (v *turnWords) said() bool {
	for i := range v.t.Content.Items {
		if it := &v.t.Content.Items[i]; it.Kind == claude.ItemText && it.ParentID == "" && strings.TrimSpace(it.Text) != "" {
			return true
		}
	}
	return false
}

// WhyBad is the modal that asks why an answer is a bad one. It holds nothing of the answer.
func WhyBad(turnID int64) slack.ModalViewRequest {
	v := modal("A bad answer", "Send", view.CallbackFeedback, strconv.FormatInt(turnID, 10))
	reason := longText(view.ReasonAction, 500)
	reason.Placeholder = plain("It did not run the tests", 150)
	in := slack.NewInputBlock(view.ReasonBlock, plain("Why?", 2000), plain("Only the team’s admins read this; the model does not. Your rating is saved already.", 2000), reason)
	in.Optional = true
	v.Blocks.BlockSet = []slack.Block{in}
	return v
}

// feedbackLine says how people liked the answers, by project; empty if nobody said.
func feedbackLine(list []turns.FeedbackStats) string {
	var parts []string
	for _, f := range list[:min(len(list), 10)] {
		parts = append(parts, mrkdwn.EscapeWithin(f.Project, 60)+" "+withShare(f.Good, f.Good+f.Bad)+" of "+count(int(f.Good+f.Bad)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Answers that people called good: " + strings.Join(parts, ", ") + "."
}

// FeedbackReport renders how many answers were called good, by project, and the reasons that
// people gave. What does not fit into a message is counted.
func FeedbackReport(v view.FeedbackReport) Page {
	title := "*Feedback*, " + mrkdwn.EscapeWithin(v.Period, 100)
	line := cmp.Or(feedbackLine(v.Projects), "No answer has a rating yet.")
	blocks := []slack.Block{section("feedback:head", title+"\n"+line)}
	used := blockWidth(blocks[0])
	more := v.More
	for i, r := range v.Reasons {
		b := section("feedback:"+strconv.Itoa(i), reasonText(r, Options{Redact: v.Redact}))
		if used += blockWidth(b); used > messageText-500 || len(blocks) >= messageBlocks-1 {
			more += len(v.Reasons) - i
			break
		}
		blocks = append(blocks, b)
	}
	var rest []string
	if more > 0 {
		rest = append(rest, "… and "+plural(more, "reason", "reasons")+" more: `bot report feedback` has them.")
	}
	if v.Hidden > 0 {
		rest = append(rest, plural(v.Hidden, "reason is", "reasons are")+" not shown: you cannot read their channels or direct messages.")
	}
	if len(rest) > 0 {
		blocks = append(blocks, contextBlock("feedback:more", strings.Join(rest, " ")))
	}
	return Page{Text: title + "\n" + line, Blocks: blocks}
}

func reasonText(r view.FeedbackReason, o Options) string {
	kind := "Bad answer"
	if r.Good {
		kind = "Good answer"
	}
	where := "in a direct message"
	if mrkdwn.IsID(r.ChannelID) && !access.IsDirect(r.ChannelID) {
		where = "in <#" + r.ChannelID + ">"
	}
	head := "*" + kind + "*, says " + mrkdwn.Mention(r.UserID) + " " + where + ", " + mrkdwn.EscapeWithin(r.Project, 60) + ", " + dateTime(r.At)
	if r.Permalink != "" {
		head += " · " + linkTo(r.Permalink, "the answer")
	}
	return head + "\n> " + mrkdwn.EscapeWithin(plaintext.OneLine(o.redact(r.Reason)), 500)
}
