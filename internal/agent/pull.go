package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/forge"
	"deckhand/internal/store/forges"
	"deckhand/internal/workspace"
)

// madeCommits are the project in the repositories in which the turn that ends has made commits that could go to a forge.
func (s *session) madeCommits(t *turn) (in []place.Project) {
	if s == nil || !s.project.ReachesForge() {
		return nil
	}
	all := s.project.All()
	for i, head := range s.place.Heads(s.thread, s.project) {
		if all[i].ReachesForge() && head != "" && (i >= len(t.heads) || head != t.heads[i]) {
			in = append(in, all[i])
		}
	}
	return in
}

// opensPull reports whether a turn that has made commits offers to open a pull request: in one of the repositories none
// is open.
func (h *leased) opensPull(ctx context.Context, made []place.Project) bool {
	return h.pulls != nil && slices.ContainsFunc(made, func(q place.Project) bool {
		if !q.OpensPulls() {
			return false
		}
		p, err := h.pulls.Store.PullOfThread(ctx, h.threadID, q.Of)
		return err != nil || p.State != string(forge.Open)
	})
}

// saveDiff keeps what a turn's commits would bring to the forge, for the window that shows it.
func (s *session) saveDiff(ctx context.Context, turnID int64, branch string) {
	ctx, cancel := context.WithTimeoutCause(ctx, ask.LookTimeout, fmt.Errorf("it took more than %s", ask.LookTimeout))
	defer cancel()
	var push *forges.Push
	for _, q := range s.project.All() {
		if !q.ReachesForge() {
			continue
		}
		in := s.proc.Outgoing(ctx, workspace.Within(s.thread.Workspace, q.Of), policy.Push{Specs: []policy.Refspec{{Src: "HEAD", Dst: branch}}})
		if in == nil || ctx.Err() != nil {
			return
		}
		if q.Of == "" {
			push = in
			continue
		}
		if in.Unknown != "" {
			push.Unknown = strings.TrimSpace(push.Unknown + " In the repository " + q.Of + ": " + in.Unknown)
		}
		for _, r := range in.Refs {
			r.Repository = q.Of
			push.Refs = append(push.Refs, r)
		}
	}
	if push == nil {
		return
	}
	if len(s.project.Further) > 0 {
		push.Refs = slices.DeleteFunc(push.Refs, func(r forges.PushRef) bool { return r.Commits.Count == 0 && r.Old != r.New })
	}
	if err := s.store.SaveDiff(ctx, turnID, push); err != nil && ctx.Err() == nil {
		s.log.Warn("save a turn's diff", zap.Int64("turn", turnID), zap.Error(err))
	}
}
