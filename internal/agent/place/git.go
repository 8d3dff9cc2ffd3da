package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/workspace/gitdata"
)

// branchesMost bounds the branches of one push.
const branchesMost = 10

// Outgoing tells what a push in a folder of the workspace would bring to the forge; nil where
// the session does not reach one.
func (b *boxed) Outgoing(ctx context.Context, dir string, p policy.Push) *forges.Push {
	if b.git == nil {
		return nil
	}
	out := &forges.Push{}
	leaving, origin, err := b.leaves(dir)
	out.Further = origin != ""
	if err == nil && !out.Further {
		switch at := repositoryOf(leaving.Clone, dir); at {
		case "":
			err = errors.New("it runs in no repository of the thread's folder")
		case leaving.Clone:
		default: // one that the session has cloned there
			leaving.Clone, leaving.Source, out.Further = at, nil, true
			origin, err = leaving.Origin(ctx)
		}
	}
	if err == nil {
		err = b.look(ctx, leaving, origin, out, p)
	}
	if err != nil {
		out.Unknown = "It could not be looked at: " + strings.TrimSuffix(cmp.Or(context.Cause(ctx), err).Error(), ".") + "."
		out.Unknown = strings.ReplaceAll(strings.ToValidUTF8(out.Unknown, "�"), "\x00", "")
	}
	return out
}

// repositoryOf is the folder of the repository that git works on in a folder of the workspace: the workspace's own, or
// one within it. It is empty if there is none, or a link leads there.
func repositoryOf(workspace, dir string) string {
	rel, err := filepath.Rel(workspace, cmp.Or(dir, workspace))
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // it is only read
	found := workspace
	for ; rel != "."; rel = filepath.Dir(rel) {
		if info, err := root.Lstat(rel); err != nil || !info.IsDir() {
			return ""
		}
		if _, err := root.Lstat(filepath.Join(rel, ".git")); err == nil && found == workspace {
			found = filepath.Join(workspace, rel)
		}
	}
	return found
}

// look fills in what a push to an origin would bring, first of all the commits.
func (b *boxed) look(ctx context.Context, leaving gitdata.Leaving, origin string, out *forges.Push, p policy.Push) error {
	if err := names(leaving, out, p); err != nil {
		out.Refs = nil
		return err
	}
	repository, mirror, err := b.git.Mirror(ctx, origin)
	out.Repository = repository
	if err != nil {
		if repository == "" {
			out.Refs = nil // nobody knows whose they are
		}
		return err
	}
	leaving.Mirror = gitdata.Repository{Dir: mirror, Common: mirror}
	olds, news := make([]string, len(out.Refs)), make([]string, len(out.Refs))
	for i, r := range out.Refs {
		if olds[i], err = leaving.Mirror.Ref(r.Name); err != nil {
			return err
		}
		news[i] = r.New
	}
	refs, err := leaving.Refs(ctx, olds, news)
	if err != nil {
		return err
	}
	for i, of := range refs {
		to := &out.Refs[i]
		to.Old = cmp.Or(olds[i], strings.Repeat("0", len(to.New)))
		to.Commits, to.Lost = pushCommits(of.Commits), pushCommits(of.Lost)
		for _, f := range of.Files {
			to.Files = append(to.Files, forges.PushFile(f))
		}
		to.More, to.Orders, to.Added, to.Removed, to.Diff, to.Cut = of.More, of.Firsts, of.Added, of.Removed, of.Diff, of.Cut
	}
	return nil
}

// names fills in which branches a push would have name which commits.
func names(l gitdata.Leaving, out *forges.Push, p policy.Push) error {
	specs := p.Specs
	if len(specs) == 0 {
		specs = []policy.Refspec{{Src: "HEAD"}}
	}
	if len(specs) > branchesMost {
		return fmt.Errorf("it pushes %d branches, and no more than %d at once are looked at", len(specs), branchesMost)
	}
	for _, s := range specs {
		branch, commit, err := l.Name(s.Src)
		if err != nil {
			return err
		}
		dst := cmp.Or(strings.TrimPrefix(s.Dst, "refs/heads/"), branch)
		if dst == "" {
			return fmt.Errorf("%s is no branch", s.Src)
		}
		out.Refs = append(out.Refs, forges.PushRef{Name: "refs/heads/" + dst, New: commit})
	}
	return nil
}

func pushCommits(c gitdata.Commits) forges.PushCommits {
	out := forges.PushCommits{Count: c.Count}
	for _, one := range c.Some {
		out.Some = append(out.Some, forges.PushCommit(one))
	}
	return out
}

// GitEntry is the audit entry of a fetch or a push.
func GitEntry(team string, thread int64, e gitway.Event) audit.Entry {
	d := map[string]any{"act": "fetch", "repository": e.Repository, "bytes": e.Bytes}
	if e.Push {
		d["act"] = "push"
	}
	for name, text := range map[string]string{"refused": e.Refused, "tool_use": e.ToolUse} {
		if text != "" {
			d[name] = text
		}
	}
	if len(e.Wanted) > 0 {
		d["wanted"] = e.Wanted
	}
	refs := []map[string]string{}
	for _, r := range e.Refs {
		ref := map[string]string{"ref": r.Name, "old": r.Old, "new": r.New}
		if r.Refused != "" {
			ref["refused"] = r.Refused
		}
		refs = append(refs, ref)
	}
	if len(refs) > 0 {
		d["refs"] = refs
	}
	return audit.Entry{Kind: audit.Git, TeamID: team, ThreadID: thread, Details: d}
}
