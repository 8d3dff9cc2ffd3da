package chat

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"deckhand/internal/access"
	"deckhand/internal/agent/policy"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
)

// Offers are the rules that a grant of the approval may be given, narrow first. They
// follow from the request alone, so that what is submitted is what was shown.
func Offers(a approvals.Approval) []view.GrantOffer {
	if !grantable(a) {
		return nil
	}
	var out []view.GrantOffer
	for _, s := range policy.Suggest(callOf(a)) {
		out = append(out, view.GrantOffer{Pattern: s.Pattern.String(), Label: s.Pattern.String(), Sentence: s.Sentence})
	}
	if len(out) == 0 {
		out = append(out, view.GrantOffer{Label: a.ToolName + ", this input", Sentence: "Allows " + a.ToolName + " with exactly the input shown, and nothing else."})
	}
	return out
}

// grantable reports whether one person may give a standing permission for it.
func grantable(a approvals.Approval) bool {
	return a.Kind == approvals.Tool && a.Terms.Grantable && a.Terms.Quorum <= 1 && !a.Terms.Dangerous && a.Edited.Times == 0
}

func callOf(a approvals.Approval) policy.Call {
	return policy.Call{Tool: a.ToolName, Input: a.Input, Workspace: a.Workspace, Dir: a.Dir, Project: a.Project, Channel: a.ChannelID}
}

// scopes are those that the person may give: what reaches beyond the thread takes
// an admin.
func (a decider) scopes(ctx context.Context, p person, approval approvals.Approval) []approvals.GrantScope {
	out := []approvals.GrantScope{approvals.GrantSession, approvals.GrantThread}
	if a.mayDo(ctx, p.at(approval.ChannelID, approval.Project), access.Administer) == nil {
		out = append(out, approvals.GrantChannel, approvals.GrantProject)
	}
	return out
}

// OneFile is the plain file that a request would write, if edits below its folder may be
// allowed with it; else "".
func OneFile(a approvals.Approval) string {
	if a.Status != approvals.Pending || !grantable(a) {
		return ""
	}
	name, _, _ := policy.OneFile(callOf(a))
	return name
}

// onAlwaysClick opens the form that makes a rule of a request. One button starts it with edits
// below the file's folder, in this thread, for an hour.
func (a decider) onAlwaysClick(ctx context.Context, in *Incoming, approval approvals.Approval, _ approvals.Decision) (outcome string, err error) {
	o := Offers(approval)
	if len(o) == 0 {
		a.Answer(in, "This has to be asked every time, so there is nothing to allow for good.")
		return "not grantable", nil
	}
	below := in.Click.Action == view.ActionEditsBelow
	return a.openForm(ctx, in, approval, view.Always{Approval: approval, Offers: o, Scopes: a.scopes(ctx, in.person(), approval), Below: below})
}

func (a decider) onGrantSubmission(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error) {
	choice, err := view.ParseGrant(in.Submission.Inputs)
	if err != nil {
		return a.incomplete(in, err)
	}
	offer, err := choice.Of(Offers(approval))
	if err != nil {
		return a.incomplete(in, err)
	}
	if choice.Scope == approvals.GrantChannel || choice.Scope == approvals.GrantProject {
		if a.refuses(ctx, in, in.person().at(approval.ChannelID, approval.Project), access.Administer) {
			return "refused", nil
		}
	}
	d.Grants = []approvals.NewGrant{{Scope: choice.Scope, Pattern: offer.Pattern, For: choice.For}}
	return a.decide(ctx, in, approval, d)
}

// onRevokeClick ends a grant: its maker may, as long as they are an approver there,
// and an admin.
func (a granter) onRevokeClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	id, err := strconv.ParseInt(in.Click.Value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the Revoke button's value is not a grant: %w", err)
	}
	found, err := a.c.Store.Grants(ctx, approvals.GrantFilter{TeamID: a.self.Team, ID: id}, 1)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		a.Answer(in, "This permission is not known here.")
		return "unknown grant", nil
	}
	own := found[0].CreatedBy == in.Row.UserID
	if a.refuses(ctx, in, in.person().at(found[0].ChannelID, found[0].Project), access.Revoking(own)) {
		return "refused", nil
	}
	g, ok, err := a.c.Store.RevokeGrant(ctx, a.self.Team, id, in.Row.UserID)
	if err != nil {
		return "", err
	}
	if ok {
		a.Answer(in, "Revoked: "+cmp.Or(g.Pattern, g.ToolName)+" is asked again from now on.")
	} else {
		a.Answer(in, "This was revoked already, by "+a.people.Name(ctx, g.RevokedBy)+".")
	}
	if !in.Click.OnHome {
		a.Homes.Changed()
		return "revoked", nil
	}
	return "revoked", tab(a).publishHome(ctx, in.person(), homeChoice(in))
}

// A list has at most grantsShown grants, and counts as many as are read.
const (
	grantsShown = 20
	grantsRead  = 500
)

// grantLines lists the grants that a person may see: an admin all, everybody else
// their own; or those that hold in a thread. more is how many are left out, as far
// as is known.
func (a granter) grantLines(ctx context.Context, p person, threadID int64) (lines []view.GrantLine, more int, err error) {
	f := approvals.GrantFilter{TeamID: a.self.Team, ThreadID: threadID}
	if threadID == 0 && a.mayDo(ctx, p, access.Administer) != nil {
		f.CreatedBy = p.UserID
	}
	grants, err := a.c.Store.Grants(ctx, f, grantsRead)
	if err != nil {
		return nil, 0, err
	}
	more = max(0, len(grants)-grantsShown)
	for _, g := range grants[:len(grants)-more] {
		lines = append(lines, view.GrantLine{
			Grant: g, Link: a.screen.Permalink(g.ChannelID, g.ThreadTS),
			MayRevoke: a.mayDo(ctx, p.at(g.ChannelID, g.Project), access.Revoking(g.CreatedBy == p.UserID)) == nil,
		})
	}
	return lines, more, nil
}

// onGrantsCommand lists grants: those of the thread in which it is said, if there is one.
func (a granter) onGrantsCommand(ctx context.Context, in *Incoming, _ string) (outcome string, err error) {
	thread, err := a.here(ctx, in)
	if err != nil {
		return "", err
	}
	lines, more, err := a.grantLines(ctx, in.person(), thread.ID)
	if err != nil {
		return "", err
	}
	projects := []string{thread.Project}
	if thread.ID == 0 {
		projects = a.c.Access.Places.Of(in.Row.ChannelID)
	}
	var posture policy.Posture
	for i, p := range projects {
		of := a.c.Postures.Of(p, in.Row.ChannelID)
		if i > 0 && of != posture {
			posture = ""
			break
		}
		posture = of
	}
	a.reply(in, view.Grants{Lines: lines, More: more, Posture: posture, Redact: a.c.Redact})
	return "grants", nil
}
