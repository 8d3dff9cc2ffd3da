package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent/spend"
	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/ledger"
)

// Budget renders a warning, or that a limit is reached, with buttons for admins if
// the budget asks and nobody has decided.
func Budget(v view.Budget) Page {
	b, asks := v.Status, v.Asks()
	numbers := mrkdwn.Code(money.Spent(b.SpentMicroUSD, b.LimitMicroUSD)) + " of " + mrkdwn.Code(money.USD(b.LimitMicroUSD)) + " spent. It starts again on " + mrkdwn.Escape(b.Begins()) + "."
	where := ""
	if v.Link != "" {
		where = " Noticed in " + linkTo(v.Link, "this thread") + "."
	}
	var lines []string
	if v.Notice.Share < 100 {
		lines = append(lines, fmt.Sprintf("📈 *%s: %d%% is spent.* %s%s", budgetName(b), v.Notice.Share, numbers, where))
	} else {
		lines = append(lines, "⛔ *"+budgetName(b)+" is used up.* "+numbers+where)
	}
	if asks {
		lines = append(lines, "New requests wait for an admin.")
		if b.CheaperModel != "" {
			lines = append(lines, "Going on with "+mrkdwn.Code(b.CheaperModel)+" has no limit until the end of this "+string(b.Period)+".")
		}
	}
	id := plaintext.Clip(v.Notice.ID, 200)
	page := Page{Blocks: []slack.Block{section(id+":budget", strings.Join(lines, "\n"))}}
	switch {
	case v.Notice.DecidedBy != "":
		said := budgetDecision(v.Notice)
		if v.Notice.Decision.Leave {
			said += ", so what waits for it does not start."
		}
		page.Blocks = append(page.Blocks, section(id+":decided", said))
	case asks:
		if call := mentions(v.Admins, " "); call != "" {
			page.Blocks = append(page.Blocks, contextBlock(id+":admins", "For an admin to decide: "+call))
		}
		buttons := []slack.BlockElement{button(view.ActionBudgetRaise, v.Notice.ID, "Raise…", slack.StylePrimary)}
		if b.CheaperModel != "" {
			buttons = append(buttons, button(view.ActionBudgetModel, v.Notice.ID, "Go on with "+b.CheaperModel, ""))
		}
		buttons = append(buttons, button(view.ActionBudgetLeave, v.Notice.ID, "Keep the limit", slack.StyleDanger))
		page.Blocks = append(page.Blocks, slack.NewActionBlock(id+":decide", buttons...))
	}
	page.Text = mrkdwn.ClipEscaped(strings.Join(lines, "\n"), fallbackMax)
	return page
}

// BudgetWait renders the one sentence that says what a prompt waits for, or what became
// of it.
func BudgetWait(v view.BudgetWait) Page {
	n := v.Wait.Notice
	var said string
	switch {
	case v.Wait.Waits:
		said = "⏳ This waits for " + lowerFirst(budgetName(v.Status)) + ": " + oneOf(v.Who) + " can raise it"
		if v.Link != "" {
			said += " " + linkTo(v.Link, "here")
		}
		said += ". Otherwise it starts on " + mrkdwn.Escape(v.Status.Begins()) + "."
	case v.Wait.Begun && n.DecidedBy != "":
		said = budgetDecision(n) + ", so this has started."
	case v.Wait.Begun:
		said = "✅ " + budgetName(v.Status) + " has room again, so this has started."
	case n.Decision.Leave:
		said = budgetDecision(n) + ", so this does not start. The budget starts again on " + mrkdwn.Escape(v.Status.Begins()) + "."
	default:
		said = "🚫 This waited for " + lowerFirst(budgetName(v.Status)) + " and did not start."
	}
	return Page{Text: mrkdwn.ClipEscaped(said, fallbackMax), Blocks: []slack.Block{contextBlock(fmt.Sprintf("wait:%d", v.Wait.InboxID), said)}}
}

// oneOf names people of whom one is enough.
func oneOf(names []string) string {
	const most = 5
	if len(names) == 0 {
		return "an admin"
	}
	safe := firstOf(escapeAll(names), most, "")
	last := len(safe) - 1
	return joinNonEmpty(" or ", strings.Join(safe[:last], ", "), safe[last])
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// budgetName names the budget, which has no [spend.Status.Whose], for everybody, with people and channels as mentions.
func budgetName(b spend.Status) string {
	switch b.Scope {
	case ledger.BudgetPerson:
		return mrkdwn.Mention(b.Key) + "'s" + strings.TrimPrefix(b.Name(), "Your")
	case ledger.BudgetChannel:
		return mrkdwn.Escape(strings.TrimSuffix(b.Name(), "this channel")) + "<#" + b.Key + ">"
	default:
		return mrkdwn.Escape(b.Name())
	}
}

func budgetDecision(n ledger.BudgetNotice) string {
	by := " by " + mrkdwn.Mention(n.DecidedBy) + " · " + clockTime(n.DecidedAt)
	switch {
	case n.Decision.RaiseMicroUSD > 0:
		return "✅ *Raised by " + mrkdwn.Code(money.USD(n.Decision.RaiseMicroUSD)) + "* for this " + string(n.Period) + by
	case n.Decision.Model != "":
		return "✅ *Going on with " + mrkdwn.Code(n.Decision.Model) + "* without a limit until the end of this " + string(n.Period) + by
	}
	return "🚫 *Limit kept* for this " + string(n.Period) + by
}

// BudgetModal asks by how much a budget is to be raised.
func BudgetModal(n ledger.BudgetNotice, f view.BudgetForm) slack.ModalViewRequest {
	v := modal("Raise this budget", "Raise", view.CallbackBudget, strings.Join([]string{f.NoticeID, f.ChannelID, f.ThreadTS}, " "))
	amount := slack.NewPlainTextInputBlockElement(plain("50", 150), view.BudgetAmount)
	amount.InitialValue = strings.TrimSuffix(money.USD(max(n.LimitMicroUSD/4, 1_000_000)), ".00")
	v.Blocks.BlockSet = []slack.Block{
		section("limit", "The limit is "+mrkdwn.Code(money.USD(n.LimitMicroUSD))+", and "+mrkdwn.Code(money.USD(n.SpentMicroUSD))+" is spent. The raise lasts until "+
			mrkdwn.Escape(n.To.Add(-time.Second).Format("Monday, 2 January"))+". After that, the limit in deckhand.yaml holds again."),
		slack.NewInputBlock(view.BudgetAmount, plain("By how many US dollars?", 2000), nil, amount),
	}
	return v
}
