package memstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// approval is a row as the store returns it.
func (b *Store) approval(a *approvals.Approval) approvals.Approval {
	out := *a
	t := b.threads[a.ThreadID-1]
	out.ThreadKey, out.Project, out.Workspace = t.Key(), t.Project, t.Workspace
	out.TurnEnded, out.HeldBy = b.turns[a.TurnID-1].Ended, t.LeaseOwner
	out.Votes = slices.Clone(a.Votes)
	out.MessageTS = b.postedAs(outbox.CardPost, a.CardID)
	out.OutboxID = b.lastOutboxRow(func(w outbox.Row) bool { return w.CardID == a.CardID })
	out.Before = b.before(a)
	return out
}

// before is what became of the last request like this one that a process had which did not
// live to the turn's end.
func (b *Store) before(a *approvals.Approval) *approvals.Before {
	var last *approvals.Approval
	for id := b.turns[a.TurnID-1].continues; id != 0 && last == nil; id = b.turns[id-1].continues {
		for _, e := range b.approvals {
			if e.TurnID == id && e.ToolName == a.ToolName && (e.InputSHA256 == a.InputSHA256 || e.Edited.Times > 0 && e.Edited.SHA256 == a.InputSHA256) &&
				e.Status == approvals.Allowed && e.Delivered && b.turns[id-1].Parking == "" && (last == nil || !e.DecidedAt.Before(last.DecidedAt)) {
				last = e
			}
		}
	}
	if last == nil {
		return nil
	}
	out := &approvals.Before{Approved: last.DecidedAt, Changed: sha256.Sum256(last.ToRun()) != a.InputSHA256}
	for _, e := range b.audit {
		if e.Kind == audit.ToolResult && e.TurnID == last.TurnID && e.Details["tool_use"] == last.ToolUseID {
			out.Ended = &last.DecidedAt // the database keeps no time of it
			out.Failed, _ = e.Details["error"].(bool)
		}
	}
	return out
}

// bindable: an approval that a process which asks the same may have.
func bindable(a *approvals.Approval) bool {
	return a.Status == approvals.Pending || a.Status == approvals.Allowed || a.Status == approvals.Denied
}

// Ask is [store.Store.Ask].
func (b *Store) Ask(ctx context.Context, l threads.Lease, a approvals.Approval) (out approvals.Approval, err error) {
	err = b.under(ctx, l, func(t *threads.Thread) error {
		a.InputSHA256, a.ThreadID = sha256.Sum256(a.Input), t.ID
		a.Status, a.CardID = cmp.Or(a.Status, approvals.Pending), cmp.Or(a.CardID, a.ID)
		if a.Status == approvals.Pending {
			for _, old := range b.approvals {
				if old.TurnID == a.TurnID && old.RequestID == "" && old.ToolName == a.ToolName && old.InputSHA256 == a.InputSHA256 && sameTool(old, &a) && !old.Delivered && bindable(old) {
					old.RequestID, old.ToolUseID, old.SessionID = a.RequestID, a.ToolUseID, a.SessionID
					b.cardRow(old)
					out = b.approval(old)
					return nil
				}
			}
		}
		if a.GrantID != 0 {
			if g := b.grants[a.GrantID-1]; g.revoked || !g.expires.After(time.Now()) {
				return pg.ErrNotFound
			}
		}
		a.CreatedAt, a.Terms.Quorum = time.Now(), max(a.Terms.Quorum, 1)
		a.Terms.OnTimeout = cmp.Or(a.Terms.OnTimeout, approvals.TimeoutPause)
		if a.Status != approvals.Pending {
			a.DecidedAt, a.Delivered = a.CreatedAt, true
		}
		row := a
		b.approvals = append(b.approvals, &row)
		if row.Status == approvals.Pending {
			b.cardRow(&row)
		}
		out = b.approval(&row)
		return nil
	})
	return out, err
}

// sameTool reports whether two requests are known to be about a tool of which the model is told the same.
func sameTool(a, b *approvals.Approval) bool {
	return a.ToolSHA256 == b.ToolSHA256 && (a.ToolSHA256 != (approvals.Sum{}) || a.ToolChange == nil && b.ToolChange == nil)
}

func (b *Store) find(id string) *approvals.Approval {
	for _, a := range b.approvals {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// ApprovalByID is [store.Store.ApprovalByID].
func (b *Store) ApprovalByID(ctx context.Context, id string) (approvals.Approval, error) {
	if err := b.lock(ctx); err != nil {
		return approvals.Approval{}, err
	}
	defer b.mu.Unlock()
	if a := b.find(id); a != nil {
		return b.approval(a), nil
	}
	return approvals.Approval{}, pg.ErrNotFound
}

// Decide is [store.Store.Decide].
func (b *Store) Decide(ctx context.Context, d approvals.Decision) (approvals.Approval, error) {
	if err := b.lock(ctx); err != nil {
		return approvals.Approval{}, err
	}
	defer b.mu.Unlock()
	a := b.find(d.ApprovalID)
	if a == nil {
		return approvals.Approval{}, pg.ErrNotFound
	}
	now := time.Now()
	if a.Status != approvals.Pending || !a.ExpiresAt.After(now) {
		return b.approval(a), pg.ErrEnded
	}
	allows := 0
	allow := d.Status == approvals.Allowed
	if allow && d.Seen != a.Edited.Times {
		return b.approval(a), approvals.ErrChanged
	}
	if allow && a.Terms.Dangerous && (!d.Confirmed || len(d.Grants) > 0) {
		return approvals.Approval{}, fmt.Errorf("approval %s is dangerous: it is confirmed, each time, or not allowed", a.ID)
	}
	if d.Edit != nil {
		if !allow || a.Kind != approvals.Tool || a.Terms.Fixed || a.Terms.Dangerous || len(d.Grants) > 0 {
			return approvals.Approval{}, fmt.Errorf("the input of approval %s may not be changed", a.ID)
		}
		a.Edited = approvals.Edited{Times: a.Edited.Times + 1, Input: d.Edit.Input, SHA256: sha256.Sum256(d.Edit.Input), By: d.By}
		a.Risks, a.Touches, a.Votes = d.Edit.Risks, d.Edit.Touches, nil
		if !a.Terms.RequesterMay {
			b.voted(a)
			return b.approval(a), nil
		}
	}
	for _, v := range a.Votes {
		if v.UserID == d.By && v.Allow == allow {
			return b.approval(a), approvals.ErrVoted
		}
		if v.Allow {
			allows++
		}
	}
	decides := !allow || allows+1 >= a.Terms.Quorum
	if decides && len(d.Grants) > 0 && (!allow || !a.Terms.Grantable || a.Terms.Quorum > 1 || a.Edited.Times > 0) {
		return approvals.Approval{}, fmt.Errorf("approval %s cannot become a grant", a.ID)
	}
	a.Votes = append(slices.Clip(a.Votes), approvals.Vote{UserID: d.By, Allow: allow, Via: d.Via, At: now})
	if !decides {
		b.voted(a)
		return b.approval(a), nil
	}
	b.cardRow(a)
	t := b.threads[a.ThreadID-1]
	a.Status, a.DecidedBy, a.DecidedVia, a.Reason, a.Answer, a.DecidedAt = d.Status, d.By, d.Via, d.Reason, d.Answer, now
	a.Delivered = d.DeliverOn != "" && t.LeaseOwner == d.DeliverOn && b.turns[a.TurnID-1].Parking != turns.Parked
	for _, g := range d.Grants {
		b.grants = append(b.grants, &grant{
			LiveGrant: approvals.LiveGrant{ID: int64(len(b.grants) + 1), Pattern: g.Pattern, Approvers: a.Terms.Approvers, CreatedBy: d.By, CreatedAt: now, ToolSHA256: a.ToolSHA256},
			team:      t.TeamID, project: t.Project, channel: t.ChannelID, thread: t.ID, session: a.SessionID,
			scope: g.Scope, tool: a.ToolName, sum: a.InputSHA256, expires: now.Add(g.For),
		})
	}
	b.wakeTurn(a)
	if !a.Delivered {
		b.notify(pg.Notice{Kind: pg.NoticeApproval, ThreadID: a.ThreadID, ID: a.ID})
	}
	return b.approval(a), nil
}

// voted has an approval that waits on shown as it stands.
func (b *Store) voted(a *approvals.Approval) {
	b.cardRow(a)
	b.notify(pg.Notice{Kind: pg.NoticeVote, ThreadID: a.ThreadID, ID: a.CardID})
}

// Deliver is [store.Store.Deliver].
func (b *Store) Deliver(ctx context.Context, l threads.Lease, id string) (approvals.Approval, error) {
	if err := b.lock(ctx); err != nil {
		return approvals.Approval{}, err
	}
	defer b.mu.Unlock()
	_, err := b.holds(l)
	a := b.find(id)
	if err != nil || a == nil || a.ThreadID != l.ThreadID || a.Delivered || (a.Status != approvals.Allowed && a.Status != approvals.Denied) {
		return approvals.Approval{}, pg.ErrNotFound
	}
	a.Delivered = true
	return b.approval(a), nil
}

// CancelApproval is [store.Store.CancelApproval].
func (b *Store) CancelApproval(ctx context.Context, l threads.Lease, id string) (approvals.Approval, bool, error) {
	if err := b.lock(ctx); err != nil {
		return approvals.Approval{}, false, err
	}
	defer b.mu.Unlock()
	_, err := b.holds(l)
	a := b.find(id)
	if err != nil || a == nil || a.ThreadID != l.ThreadID || a.Status != approvals.Pending {
		return approvals.Approval{}, false, nil //nolint:nilerr // as a statement that finds no row
	}
	a.Status, a.DecidedAt = approvals.Cancelled, time.Now()
	b.cardRow(a)
	b.wakeTurn(a)
	return b.approval(a), true, nil
}

// ExpireApproval is [store.Store.ExpireApproval].
func (b *Store) ExpireApproval(ctx context.Context, id string) (approvals.Approval, bool, error) {
	if err := b.lock(ctx); err != nil {
		return approvals.Approval{}, false, err
	}
	defer b.mu.Unlock()
	a := b.find(id)
	switch {
	case a == nil:
		return approvals.Approval{}, false, pg.ErrNotFound
	case a.Status != approvals.Pending:
		return b.approval(a), false, nil
	case a.ExpiresAt.After(time.Now()):
		return b.approval(a), false, approvals.ErrTooEarly
	}
	a.Status, a.DecidedAt = approvals.Expired, time.Now()
	b.cardRow(a)
	b.wakeTurn(a)
	b.notify(pg.Notice{Kind: pg.NoticeApproval, ThreadID: a.ThreadID, ID: a.ID})
	return b.approval(a), true, nil
}

// KnowTool is [store.Store.KnowTool], of tools that never change.
func (b *Store) KnowTool(context.Context, threads.Lease, string, []approvals.ToolText) (*approvals.ToolChange, error) {
	return nil, nil
}

// LiveGrants is [store.Store.LiveGrants].
func (b *Store) LiveGrants(ctx context.Context, l threads.Lease, sessionID string, tools []string, sum [32]byte) ([]approvals.LiveGrant, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	t, err := b.thread(l.ThreadID)
	if err != nil {
		return nil, nil //nolint:nilerr // as a statement that finds no row
	}
	var out []approvals.LiveGrant
	for _, g := range b.grants {
		if g.team == t.TeamID && g.project == t.Project && slices.Contains(tools, g.tool) && !g.revoked && g.expires.After(time.Now()) &&
			(g.Pattern != "" || g.sum == sum && g.tool == tools[0]) &&
			(g.scope != approvals.GrantSession || g.session == sessionID) &&
			(g.scope != approvals.GrantThread || g.thread == t.ID) &&
			(g.scope != approvals.GrantChannel || g.channel == t.ChannelID) {
			out = append(out, g.LiveGrant)
		}
	}
	return out, nil
}

// RevokeGrant is [store.Store.RevokeGrant], which returns the grant too.
func (b *Store) RevokeGrant(ctx context.Context, teamID string, id int64, by string) (g approvals.Grant, ok bool, err error) {
	if err := b.lock(ctx); err != nil {
		return g, false, err
	}
	defer b.mu.Unlock()
	if id < 1 || id > int64(len(b.grants)) || b.grants[id-1].team != teamID {
		return g, false, pg.ErrNotFound
	}
	row := b.grants[id-1]
	ok, row.revoked = !row.revoked, true
	return approvals.Grant{ID: row.ID, TeamID: row.team, Project: row.project, ToolName: row.tool, Pattern: row.Pattern, CreatedBy: row.CreatedBy, RevokedBy: by}, ok, nil
}

// Grant makes a grant out of nothing: a standing permission of the project that covers
// the calls of a tool by a policy pattern. It ends with RevokeGrant only.
func (b *Store) Grant(teamID, project, tool, pattern, by string) (id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.grants = append(b.grants, &grant{
		LiveGrant: approvals.LiveGrant{ID: int64(len(b.grants) + 1), Pattern: pattern, CreatedBy: by, CreatedAt: now},
		team:      teamID, project: project, scope: approvals.GrantProject, tool: tool, expires: now.AddDate(100, 0, 0),
	})
	return int64(len(b.grants))
}
