package slackui

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
	"deckhand/internal/agent/policy"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// offers are the rules that a grant of the approval may be given, narrow first. They
// follow from the request alone, so that what is submitted is what was shown.
func offers(a store.Approval) []render.GrantOffer {
	if !grantable(a) {
		return nil
	}
	var out []render.GrantOffer
	for _, s := range policy.Suggest(callOf(a)) {
		out = append(out, render.GrantOffer{Pattern: s.Pattern.String(), Label: s.Pattern.String(), Sentence: s.Sentence})
	}
	if len(out) == 0 {
		out = append(out, render.GrantOffer{Label: a.ToolName + ", this input", Sentence: "Allows " + a.ToolName + " with exactly the input shown, and nothing else."})
	}
	return out
}

// grantable reports whether one person may give a standing permission for it.
func grantable(a store.Approval) bool {
	return a.Kind == store.ApprovalTool && a.Terms.Grantable && a.Terms.Quorum <= 1 && !a.Terms.Dangerous && a.Edited.Times == 0
}

func callOf(a store.Approval) policy.Call {
	return policy.Call{Tool: a.ToolName, Input: a.Input, Workspace: a.Workspace, Dir: a.Dir, Project: a.Project, Channel: a.ChannelID}
}

// scopes are those that the person may give: what reaches beyond the thread takes
// an admin.
func (a *App) scopes(ctx context.Context, p person, approval store.Approval) []store.GrantScope {
	out := []store.GrantScope{store.GrantSession, store.GrantThread}
	p.ChannelID, p.Project = approval.ChannelID, approval.Project
	if a.mayDo(ctx, p, access.Administer) == nil {
		out = append(out, store.GrantChannel, store.GrantProject)
	}
	return out
}

// oneFile is the plain file that a request would write, if edits below its folder may be
// allowed with it; else "".
func oneFile(a store.Approval) string {
	if a.Status != store.ApprovalPending || !grantable(a) {
		return ""
	}
	name, _, _ := policy.OneFile(callOf(a))
	return name
}

// onAlwaysClick opens the form that makes a rule of a request. One button starts it with edits
// below the file's folder, in this thread, for an hour.
func (a *App) onAlwaysClick(ctx context.Context, in *incoming, approval store.Approval, _ store.Decision) (outcome string, err error) {
	o := offers(approval)
	if len(o) == 0 {
		a.answer(in, "This has to be asked every time, so there is nothing to allow for good.")
		return "not grantable", nil
	}
	below := in.click.ActionCallback.BlockActions[0].ActionID == render.ActionEditsBelow
	return a.openForm(ctx, in, approval, render.GrantModal(approval, o, a.scopes(ctx, in.person(), approval), below, a.rendering()))
}

func (a *App) onGrantSubmission(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	choice, err := render.ParseGrant(in.submitted())
	if err != nil {
		return a.incomplete(in, err)
	}
	offer, err := choice.Of(offers(approval))
	if err != nil {
		return a.incomplete(in, err)
	}
	if choice.Scope == store.GrantChannel || choice.Scope == store.GrantProject {
		p := in.person()
		p.Project = approval.Project
		if r := a.authorise(ctx, p, access.Administer); r != nil {
			a.answer(in, r.Sentence)
			return "refused", nil
		}
	}
	d.Grants = []store.NewGrant{{Scope: choice.Scope, Pattern: offer.Pattern, For: choice.For}}
	return a.decide(ctx, in, approval, d)
}

// onRevokeClick ends a grant: its maker may, as long as they are an approver there,
// and an admin.
func (a *App) onRevokeClick(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	id, err := strconv.ParseInt(action.Value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the Revoke button's value is not a grant: %w", err)
	}
	found, err := a.c.Store.Grants(ctx, store.GrantFilter{TeamID: a.self.TeamID, ID: id}, 1)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		a.answer(in, "This permission is not known here.")
		return "unknown grant", nil
	}
	own := found[0].CreatedBy == in.store.UserID
	if r := a.authorise(ctx, a.whereGrantHolds(in.person(), found[0]), access.Revoking(own)); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	g, ok, err := a.c.Store.RevokeGrant(ctx, a.self.TeamID, id, in.store.UserID)
	if err != nil {
		return "", err
	}
	what := g.Pattern
	if what == "" {
		what = g.ToolName
	}
	if ok {
		a.answer(in, "Revoked: "+what+" is asked again from now on.")
	} else {
		a.answer(in, "This was revoked already, by "+a.people.Name(ctx, g.RevokedBy)+".")
	}
	if in.click.View.Type != slack.VTHomeTab {
		a.homes.changed()
		return "revoked", nil
	}
	return "revoked", a.publishHome(ctx, in.person(), homeChoice(in))
}

// whereGrantHolds puts a person where a grant holds, for authorise.
func (a *App) whereGrantHolds(p person, g store.Grant) person {
	p.ChannelID, p.Project = g.ChannelID, g.Project
	return p
}

// direct sends a person a direct message.
func (a *App) direct(user string, page render.Page) {
	a.publisher.Once(publish.Call{
		Method: publish.PostMessage, Priority: publish.Click, Group: user, What: "message " + user,
		Do: func(ctx context.Context) error {
			return a.publisher.Reduced(publish.InMessage, "direct message", page, func(page render.Page) error {
				_, _, err := a.api.PostMessageContext(ctx, user, page.PostOptions()...)
				return err
			})
		},
	})
}

// A list has at most grantsShown grants, and counts as many as are read.
const (
	grantsShown = 20
	grantsRead  = 500
)

// grantLines lists the grants that a person may see: an admin all, everybody else
// their own; or those that hold in a thread. more is how many are left out, as far
// as is known.
func (a *App) grantLines(ctx context.Context, p person, thread *store.Thread) (lines []render.GrantLine, more int, err error) {
	f := store.GrantFilter{TeamID: a.self.TeamID}
	switch {
	case thread != nil:
		f.ThreadID = thread.ID
	case a.mayDo(ctx, p, access.Administer) != nil:
		f.CreatedBy = p.UserID
	}
	grants, err := a.c.Store.Grants(ctx, f, grantsRead)
	if err != nil {
		return nil, 0, err
	}
	more = max(0, len(grants)-grantsShown)
	for _, g := range grants[:len(grants)-more] {
		where := a.whereGrantHolds(p, g)
		lines = append(lines, render.GrantLine{
			Grant: g, Link: a.permalink(g.ChannelID, g.ThreadTS),
			MayRevoke: a.mayDo(ctx, where, access.Revoking(g.CreatedBy == p.UserID)) == nil,
		})
	}
	return lines, more, nil
}

// grantsPage answers a request for the list of grants: those of the thread if there
// is one.
func (a *App) grantsPage(ctx context.Context, p person, key store.ThreadKey) (render.Page, error) {
	var in *store.Thread
	if key.ThreadTS != "" {
		thread, err := a.c.Store.ThreadByKey(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return render.Page{}, err
		}
		if err == nil {
			in = &thread
		}
	}
	lines, more, err := a.grantLines(ctx, p, in)
	if err != nil {
		return render.Page{}, err
	}
	return render.Grants(render.GrantsView{Lines: lines, More: more, Redact: a.c.Redact}), nil
}
