package render

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/agent/policy"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

const grantsTitle = "*Runs without asking*"

// noGrants says what is asked where no grant is; the posture is empty where there are several.
func noGrants(posture policy.Posture) string {
	asked := "What is asked follows from the policy and the posture of each project and channel."
	switch posture {
	case policy.Careful:
		asked = "Everything is asked, except what the policy allows."
	case policy.Contained:
		asked = "Commands and edits run inside the sandbox without asking. What leaves it is asked, except what the policy allows."
	}
	return asked + " Whoever approves a request can change that with “Always allow…” on its card."
}

// Grants renders a list of grants, each with a button to revoke it for those who
// may. What does not fit into a message is counted.
func Grants(v view.Grants) Page {
	if len(v.Lines) == 0 && v.More <= 0 {
		none := noGrants(v.Posture)
		return Page{Text: none, Blocks: []slack.Block{section("grants:none", none)}}
	}
	blocks := []slack.Block{section("grants:title", grantsTitle)}
	used := blockWidth(blocks[0])
	for i, l := range v.Lines {
		b := grantBlock("grants:"+strconv.Itoa(i), l, v.Redact)
		if used += blockWidth(b); used > messageText-300 || len(blocks) >= messageBlocks-1 {
			break
		}
		blocks = append(blocks, b)
	}
	if more := len(v.Lines) - (len(blocks) - 1) + max(0, v.More); more > 0 {
		blocks = append(blocks, contextBlock("grants:more", "… and "+plural(more, "more rule", "more rules")+
			oneOrMany(more, " does", " do")+" not fit here."))
	}
	return Page{Text: plural(len(v.Lines)+max(0, v.More), "rule lets", "rules let") + " something run without asking.", Blocks: blocks}
}

// grantBlock is a grant with its button.
func grantBlock(id string, l view.GrantLine, redact func(string) string) *slack.SectionBlock {
	g := l.Grant
	o := Options{Redact: redact}
	pattern := o.redact(g.Pattern)
	const most = 300
	from := ""
	if l.Link != "" {
		from = " in " + linkTo(l.Link, "this thread")
	}
	what := "exactly the " + mrkdwn.CodeWithin(o.redact(g.ToolName), 100) + " call that was approved" + from
	revoked := "exactly that " + g.ToolName + " call"
	if g.Pattern != "" {
		what, revoked = mrkdwn.CodeWithin(pattern, most), g.Pattern
		if what != mrkdwn.Code(pattern) {
			what += " (the pattern has " + count(runes(pattern)) + " characters)"
		}
		if !strings.HasPrefix(g.Pattern, g.ToolName) && !strings.HasPrefix(g.Pattern, "Edit(") {
			what += " for " + mrkdwn.CodeWithin(o.redact(g.ToolName), 100)
		}
	}
	where := ""
	switch g.Scope {
	case approvals.GrantSession:
		where = "in one session of " + linkTo(l.Link, "its thread")
	case approvals.GrantThread:
		where = "in " + linkTo(l.Link, "its thread")
	case approvals.GrantChannel:
		where = "in its channel"
		if mrkdwn.IsID(g.ChannelID) {
			where = "in <#" + g.ChannelID + ">"
		}
	case approvals.GrantProject:
		where = "in the whole"
	}
	if where != "" && g.Scope != approvals.GrantProject {
		where += ","
	}
	where = joinNonEmpty(" ", where, "project "+mrkdwn.CodeWithin(o.redact(g.Project), 100))
	made := ""
	if g.CreatedBy != "" {
		made = "by " + mentionAny(g.CreatedBy)
	}
	if !g.CreatedAt.IsZero() {
		made = joinNonEmpty(" ", made, "on "+slackDate(g.CreatedAt, "{date_short_pretty}", "2 Jan 2006"))
	}
	if made != "" {
		made = "made " + made
		if g.Pattern != "" {
			made += from
		}
	}
	until := ""
	if !g.ExpiresAt.IsZero() {
		until = "until " + dateTime(g.ExpiresAt)
	}
	use := "not used yet"
	if g.Uses > 0 {
		use = "used " + oneOrMany(int(min(g.Uses, 2)), "once", count(int(g.Uses))+" times")
		if !g.LastUsedAt.IsZero() {
			use += ", last " + dateTime(g.LastUsedAt)
		}
	}
	lines := []string{"*Allows* " + what, joinNonEmpty(" · ", where, until), joinNonEmpty(" · ", made, use)}
	if g.RevokedBy != "" {
		lines = append(lines, "*Revoked* by "+mentionAny(g.RevokedBy))
	}
	b := section(id, strings.Join(lines, "\n"))
	if l.MayRevoke && g.RevokedBy == "" {
		revoke := button(view.ActionRevoke, strconv.FormatInt(g.ID, 10), "Revoke", slack.StyleDanger)
		revoke.AccessibilityLabel = plaintext.Clip("Revoke rule "+strconv.FormatInt(g.ID, 10)+": "+plaintext.OneLine(plaintext.Visible(o.redact(revoked))), buttonMax)
		revoke.Confirm = slack.NewConfirmationBlockObject(
			plain("Revoke this rule?", confirmTitle),
			plain("From now on Deckhand asks again about: "+plaintext.Clip(plaintext.OneLine(plaintext.Visible(o.redact(revoked))), 150)+
				". What has run already stays as it is.", confirmText),
			plain("Revoke", confirmButton), plain("Keep", confirmButton)).WithStyle(slack.StyleDanger)
		b.Accessory = slack.NewAccessory(revoke)
	}
	return b
}
