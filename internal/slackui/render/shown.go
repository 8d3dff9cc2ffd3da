package render

import (
	"fmt"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
)

// Shown is a page as Slack has it.
func Shown(p view.Page, o Options) Page {
	switch p := p.(type) {
	case view.Sentence:
		return Sentence(string(p))
	case view.Call:
		return Sentence(p.Sentence, p.Whom...)
	case view.Help:
		return Help(p)
	case view.AskBack:
		return AskBack(p.Sentence, p.Choices, p.TS)
	case view.PickProject:
		return PickProject(p.User, p.TS, p.Projects)
	case view.Grants:
		return Grants(p)
	case view.ApprovalsReport:
		return ApprovalReport(p.Period, p.Report)
	case view.FeedbackReport:
		return FeedbackReport(p)
	case view.Accounts:
		return Accounts(p)
	case view.ThreadSessions:
		return ThreadSessions(p)
	case view.MCPServers:
		return MCPServers(p.Names, p.Now, p.Buttons)
	case view.Forked:
		return Forked(p.Name, p.Title, p.Address)
	case view.ForkedHere:
		return ForkedHere(p.Name, p.Address)
	case view.Asked:
		return Asked(p.User, p.Prompt, o)
	case view.Reminder:
		return Reminder(p)
	case view.Card:
		o.Calling, o.OneFile = p.Calling, p.OneFile
		if len(p.List) > 0 {
			o.Workspace = p.List[0].Workspace
		}
		return Card(p.List, o)
	case view.Queue:
		return Queue(p)
	case view.InLine:
		return Place(int(p))
	case view.Budget:
		return Budget(p)
	case view.BudgetWait:
		return BudgetWait(p)
	case view.Pull:
		return Pull(p, o)
	case view.OfferConnection:
		return OfferConnection(p.Sentence, p.Site)
	}
	panic(fmt.Sprintf("a page that nobody shows: %T", p))
}

// Window is a form as Slack has it.
func Window(f view.Form, o Options) slack.ModalViewRequest {
	switch f := f.(type) {
	case view.DenyReason:
		return DenyReason(f.Approval, o)
	case view.AnswerOther:
		return AnswerOther(f.Approval, o)
	case view.Confirm:
		return ConfirmModal(f.Approval, o, f.Facts...)
	case view.Edit:
		v, _ := EditModal(f.Approval, o)
		return v
	case view.Always:
		return GrantModal(f.Approval, f.Offers, f.Scopes, f.Below, o)
	case view.WholeInput:
		return ApprovalInput(f.Approval, f.Page, o)
	case view.Ask:
		return Ask(f)
	case view.Notice:
		return Notice(string(f))
	case view.Raise:
		return BudgetModal(f.Notice, f.About)
	case view.ConnectByCode:
		return ConnectByCode(f.Host, f.Address, f.Code)
	case view.ConnectByToken:
		return ConnectByToken(f)
	case view.ConnectByLink:
		return ConnectByLink(f)
	case view.WhyBad:
		return WhyBad(int64(f))
	case view.Steps:
		o.Workspace = f.Workspace
		return Steps(f, o)
	case view.TurnDiff:
		return TurnDiff(f.Page.Turn, f.Push, f.Page.Page, o)
	}
	panic(fmt.Sprintf("a form that nobody shows: %T", f))
}
