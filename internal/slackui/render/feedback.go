package render

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// ActionFeedback is the action id of the buttons below an answer; for their values see
// [ParseFeedback].
const ActionFeedback = "feedback"

// CallbackFeedback is the callback id of the modal that [WhyBad] makes; its private
// metadata is the turn's id in decimal. Its input is that of [DenyReason].
const CallbackFeedback = "feedback"

const (
	feedbackGood = "good:"
	feedbackBad  = "bad:"
)

// ParseFeedback reads the value of a button: the turn's id, and what its answer is thought
// to be.
func ParseFeedback(value string) (turnID int64, good, ok bool) {
	id, good := strings.CutPrefix(value, feedbackGood)
	if !good {
		if id, ok = strings.CutPrefix(value, feedbackBad); !ok {
			return 0, false, false
		}
	}
	turnID, err := strconv.ParseInt(id, 10, 64)
	return turnID, good, err == nil && turnID > 0
}

// feedback are the buttons below the answer of a turn that is done; nil where the model
// has said nothing, or the turn ended otherwise.
func (v *view) feedback(blockID string) slack.Block {
	if !v.ended || v.t.State != agent.TurnDone || v.t.Continue || !v.said() {
		return nil
	}
	id := strconv.FormatInt(v.t.ID, 10)
	good := slack.NewFeedbackButton(plain("Good answer", 75), feedbackGood+id)
	bad := slack.NewFeedbackButton(plain("Bad answer", 75), feedbackBad+id)
	bad.AccessibilityLabel = "Bad answer: you may say why"
	return slack.NewContextActionsBlock(blockID, slack.NewFeedbackButtonsBlockElement(ActionFeedback, good, bad))
}

func (v *view) said() bool {
	for i := range v.t.Content.Items {
		if it := &v.t.Content.Items[i]; it.Kind == claude.ItemText && it.ParentID == "" && strings.TrimSpace(it.Text) != "" {
			return true
		}
	}
	return false
}

// WhyBad is the modal that asks why an answer is a bad one. It holds nothing of the answer.
func WhyBad(turnID int64) slack.ModalViewRequest {
	v := modal("A bad answer", CallbackFeedback, strconv.FormatInt(turnID, 10))
	reason := slack.NewPlainTextInputBlockElement(plain("It did not run the tests", 150), ReasonAction)
	reason.Multiline, reason.MaxLength = true, 500
	in := slack.NewInputBlock(ReasonBlock, plain("Why?", 2000), plain("Only the team’s admins read this; the model does not. Your rating is saved already.", 2000), reason)
	in.Optional = true
	v.Blocks.BlockSet = []slack.Block{in}
	return v
}

// feedbackLine says how people liked the answers, by project; empty if nobody said.
func feedbackLine(list []store.FeedbackStats) string {
	var parts []string
	for _, f := range list[:min(len(list), 10)] {
		parts = append(parts, mrkdwn.EscapeWithin(f.Project, 60)+" "+withShare(f.Good, f.Good+f.Bad)+" of "+count(int(f.Good+f.Bad)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Answers that people called good: " + strings.Join(parts, ", ") + "."
}

// FeedbackView is what people think of the answers, as an admin may read it.
type FeedbackView struct {
	// Period says which, for people: "the last 30 days".
	Period   string
	Projects []store.FeedbackStats
	Reasons  []FeedbackReason // the latest first
	// More are reasons besides those, and Hidden those of channels that the person cannot read.
	More, Hidden int
	// Redact takes secrets out; nil shows all.
	Redact func(string) string
}

// FeedbackReason is what somebody wrote about an answer.
type FeedbackReason struct {
	store.FeedbackReason
	Permalink string // of the answer; may be empty
}

// FeedbackReport renders how many answers were called good, by project, and the reasons that
// people gave. What does not fit into a message is counted.
func FeedbackReport(v FeedbackView) Page {
	title := "*Feedback*, " + mrkdwn.EscapeWithin(v.Period, 100)
	line := feedbackLine(v.Projects)
	if line == "" {
		line = "No answer has a rating yet."
	}
	blocks := []slack.Block{section("feedback:head", title+"\n"+line)}
	used := blockWidth(blocks[0])
	more := v.More
	for i, r := range v.Reasons {
		b := section("feedback:"+strconv.Itoa(i), r.text(Options{Redact: v.Redact}))
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

func (r FeedbackReason) text(o Options) string {
	kind := "Bad answer"
	if r.Good {
		kind = "Good answer"
	}
	where := "in a direct message"
	if mrkdwn.IsID(r.ChannelID) && !strings.HasPrefix(r.ChannelID, "D") {
		where = "in <#" + r.ChannelID + ">"
	}
	head := "*" + kind + "*, says " + mrkdwn.Mention(r.UserID) + " " + where + ", " + mrkdwn.EscapeWithin(r.Project, 60) + ", " + dateTime(r.At)
	if r.Permalink != "" {
		head += " · " + linkTo(r.Permalink, "the answer")
	}
	return head + "\n> " + mrkdwn.EscapeWithin(mrkdwn.OneLine(o.redact(r.Reason)), 500)
}
