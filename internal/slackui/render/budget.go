package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/money"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// The buttons and the modal by which an admin decides about a budget. A button's
// value and the modal's private metadata are the notice's id.
const (
	ActionBudgetRaise = "budget_raise"
	ActionBudgetModel = "budget_model"
	ActionBudgetLeave = "budget_leave"

	CallbackBudget = "budget"
	BudgetAmount   = "amount"
)

// BudgetView is a notice of a budget.
type BudgetView struct {
	Notice agent.BudgetAlert
	// Link leads to the thread, for channels that are told beside it; or empty.
	Link string
	// Admins are the users and groups to call, where admins have to decide.
	Admins []string
	// Decided, when it is not nil, is how somebody decided.
	Decided *store.BudgetNotice
}

// Budget renders a warning, or that a limit is reached, with buttons for admins if
// the budget asks and nobody has decided.
func Budget(v BudgetView) Page {
	b := v.Notice.Status
	name := budgetName(b)
	numbers := mrkdwn.Code(money.USD(b.SpentMicroUSD)) + " of " + mrkdwn.Code(money.USD(b.LimitMicroUSD)) + " are spent; it begins anew on " + mrkdwn.Escape(b.To.Format("Monday, 2 January")) + "."
	where := ""
	if v.Link != "" {
		where = " It was noticed in " + linkTo(v.Link, "this thread") + "."
	}
	var lines []string
	switch {
	case v.Notice.Share < 100:
		lines = append(lines, fmt.Sprintf("📈 *%s: %d%% is spent.* %s%s", name, v.Notice.Share, numbers, where))
	default:
		lines = append(lines, "⛔ *"+name+" is used up.* "+numbers+where)
		switch {
		case v.Decided != nil:
		case v.Notice.Stopped:
			lines = append(lines, "The work was stopped.")
		case v.Notice.Waiting:
			lines = append(lines, "What was asked for waits until an admin has decided.")
		}
	}
	id := mrkdwn.Clip(v.Notice.ID, 200)
	page := Page{Blocks: []slack.Block{section(id+":budget", strings.Join(lines, "\n"))}}
	switch {
	case v.Decided != nil:
		page.Blocks = append(page.Blocks, section(id+":decided", budgetDecision(*v.Decided)))
	case v.Notice.Share == 100 && b.Ask:
		if call := mentions(v.Admins, " "); call != "" {
			page.Blocks = append(page.Blocks, contextBlock(id+":admins", "For an admin to decide: "+call))
		}
		buttons := []slack.BlockElement{button(ActionBudgetRaise, v.Notice.ID, "Raise…", slack.StylePrimary)}
		if b.CheaperModel != "" {
			buttons = append(buttons, button(ActionBudgetModel, v.Notice.ID, "Go on with "+b.CheaperModel, ""))
		}
		buttons = append(buttons, button(ActionBudgetLeave, v.Notice.ID, "Leave it", slack.StyleDanger))
		page.Blocks = append(page.Blocks, slack.NewActionBlock(id+":decide", buttons...))
	}
	page.Text = mrkdwn.ClipEscaped(strings.Join(lines, "\n"), fallbackMax)
	return page
}

// budgetName names the budget for everybody, with people and channels as mentions.
func budgetName(b agent.BudgetStatus) string {
	switch b.Scope {
	case store.BudgetPerson:
		return mrkdwn.Escape(strings.TrimSuffix(b.Name(), "the person who asks")) + mrkdwn.Mention(b.Key)
	case store.BudgetChannel:
		return mrkdwn.Escape(strings.TrimSuffix(b.Name(), "this channel")) + "<#" + b.Key + ">"
	default:
		return mrkdwn.Escape(b.Name())
	}
}

func budgetDecision(n store.BudgetNotice) string {
	by := " by " + mrkdwn.Mention(n.DecidedBy) + " · " + clockTime(n.DecidedAt)
	switch {
	case n.Decision.RaiseMicroUSD > 0:
		return "✅ *Raised by " + mrkdwn.Code(money.USD(n.Decision.RaiseMicroUSD)) + "* for this " + string(n.Period) + by
	case n.Decision.Model != "":
		return "✅ *Going on with " + mrkdwn.Code(n.Decision.Model) + "* until the end of this " + string(n.Period) + by
	}
	return "🚫 *Left as it is*" + by
}

// BudgetModal asks by how much a budget is to be raised.
func BudgetModal(n store.BudgetNotice) slack.ModalViewRequest {
	v := modal("Raise this budget", CallbackBudget, n.ID)
	v.Submit = plain("Raise", modalTitle)
	amount := slack.NewPlainTextInputBlockElement(plain("50", 150), BudgetAmount)
	amount.InitialValue = strings.TrimSuffix(money.USD(max(n.LimitMicroUSD/4, 1_000_000)), ".00")
	v.Blocks.BlockSet = []slack.Block{
		section("limit", "The limit is "+mrkdwn.Code(money.USD(n.LimitMicroUSD))+", and "+mrkdwn.Code(money.USD(n.SpentMicroUSD))+" are spent. It is raised until "+
			mrkdwn.Escape(n.To.Add(-time.Second).Format("Monday, 2 January"))+", once; after that it is what deckhand.yaml says."),
		slack.NewInputBlock(BudgetAmount, plain("By how many US dollars?", 2000), nil, amount),
	}
	return v
}

// ParseBudget reads BudgetModal's values. What is no sensible amount gives an
// [*AnswerError].
func ParseBudget(values map[string]map[string]slack.BlockAction) (microUSD int64, err error) {
	text := values[BudgetAmount][BudgetAmount].Value
	microUSD, err = money.Parse(text)
	if err != nil || microUSD <= 0 || microUSD > 1_000_000_000_000 {
		return 0, &AnswerError{"“" + mrkdwn.Clip(text, 40) + "” is not an amount to raise by: write dollars, such as 50 or 12.50."}
	}
	return microUSD, nil
}
