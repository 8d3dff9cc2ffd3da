package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deckhand/internal/attachment"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/work"
	"deckhand/internal/workspace"
	"deckhand/internal/workspace/gitdata"
)

// Repository is one that a project has beside its own. Each thread has a working tree of it, on a branch of the name
// that the thread's own has.
type Repository struct{ Name, Repo, Base string }

// In is the project with another repository in the place of its own: by its short name, or its own by an empty name or
// the project's. Its error is a sentence.
func (p Project) In(name string) (Project, error) {
	if name == "" || name == p.Name {
		return p, nil
	}
	i := slices.IndexFunc(p.Further, func(r Repository) bool { return r.Name == name })
	if i < 0 {
		names := []string{p.Name}
		for _, r := range p.Further {
			names = append(names, r.Name)
		}
		return p, fmt.Errorf("project %s has no repository %q; it has %s", p.Name, name, strings.Join(names, ", "))
	}
	r, host := p.Further[i], p.ForgeHost()
	p.Access = p.Access.At(r.Repo, host)
	p.Of, p.Repo, p.Base, p.Dir, p.Subdir, p.Forge, p.Further = r.Name, r.Repo, r.Base, "", "", nil, nil
	p.Setup, p.Preview = workspace.Setup{}, Preview{}
	if gitway.IsForge(r.Repo) {
		p.Forge = []string{r.Repo}
	}
	if p.ForgeHost() != host { // another kind of forge, perhaps
		p.PullRequests = PullRequests{}
	}
	return p, nil
}

// All are the project in each of its repositories, its own first.
func (p Project) All() []Project {
	out := []Project{p}
	for _, r := range p.Further {
		q, _ := p.In(r.Name) // it is there
		out = append(out, q)
	}
	return out
}

// folders are those of a thread's repositories in its workspace, which is its own and the first.
func (p Project) folders(dir string) []string {
	out := []string{dir}
	for _, r := range p.Further {
		out = append(out, workspace.Within(dir, r.Name))
	}
	return out
}

// about says of a sentence for people which repository it is about.
func (p Project) about(told ...string) []string {
	for i := range told {
		if p.Of != "" && told[i] != "" {
			told[i] = "In the repository " + p.Of + ": " + told[i]
		}
	}
	return told
}

// each does something for each of a thread's repositories, also where it fails for one, and gives the first error. Its
// own comes last: once that is kept, the others are.
func (h *Host) each(t threads.Thread, p Project, do func(w workspace.Thread, q Project, s workspace.Project) error) (err error) {
	for _, q := range slices.Backward(p.All()) {
		err = cmp.Or(err, do(h.worksIn(t, q), q, q.space(t)))
	}
	return err
}

// Workspace implements [Machine].
func (h *Host) Workspace(ctx context.Context, t threads.Thread, p Project) (dir string, told []string, err error) {
	all := p.All()
	for _, q := range all[1:] { // one that was left behind here is in the folder of the other
		if w := h.worksIn(t, q); w.Elsewhere {
			_, said, _ := h.Keeper.PutAway(ctx, w, q.space(t)) // else it stays, and with it that folder
			told = append(told, q.about(said...)...)
		}
	}
	for _, q := range all {
		if q.Of != "" {
			if err := attachment.Own(dir); err != nil {
				return "", nil, err
			}
		}
		at, said, err := h.Keeper.Open(ctx, h.worksIn(t, q), q.space(t))
		taken := (*workspace.TakenError)(nil)
		if q.Of != "" && errors.As(err, &taken) { // all begin under another name
			at := t
			at.Workspace, at.WorkspaceReplica = dir, h.Replica
			if stays, _, failed := h.PutAway(ctx, at, p); failed != nil || stays != "" {
				err = fmt.Errorf("%s; and its folder stays: %s", taken.Error(), cmp.Or(stays, fmt.Sprint(failed)))
			}
		}
		if err != nil {
			return "", nil, err
		}
		if told = append(told, q.about(said...)...); q.Of == "" {
			dir = at
		}
	}
	if p.Subdir != "" && p.Folder(dir) == dir {
		told = append(told, fmt.Sprintf("There is no folder %s in this thread's working tree any more, so the session works in the whole of it.", p.Subdir))
	}
	return dir, told, nil
}

// Heads implements [Machine].
func (h *Host) Heads(t threads.Thread, p Project) (commits []string) {
	for i, dir := range p.folders(t.Workspace) {
		head := ""
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || i == 0 {
			head = workspace.Head(dir)
		}
		commits = append(commits, head)
	}
	return commits
}

// Repositories implements [Machine].
func (h *Host) Repositories(t threads.Thread, p Project) (folders []string) {
	for _, q := range p.All()[1:] {
		if h.Keeper.Obeys(h.worksIn(t, q), q.space(t)) {
			folders = append(folders, workspace.Within("", q.Of))
		}
	}
	return folders
}

// repositories are, for a session, the folders that git in a thread's working trees reads objects from, and settings
// by which it runs nothing that these name.
func (h *Host) repositories(ctx context.Context, t threads.Thread, p Project) (borrowed []string, settings [][2]string, err error) {
	for _, q := range p.All() {
		objects, err := h.Keeper.Borrowed(q.space(t))
		if err != nil {
			return nil, nil, err
		}
		set, err := deaf(ctx, workspace.Within(t.Workspace, q.Of))
		if err != nil {
			return nil, nil, err
		}
		borrowed, settings = append(borrowed, objects...), append(settings, set...)
	}
	return borrowed, settings, nil
}

// Elsewhere implements [Machine].
func (h *Host) Elsewhere(ctx context.Context, t threads.Thread, p Project) (all bool, err error) {
	kept, err := h.Works.WorkRepositories(ctx, t.ID)
	if err != nil {
		return false, err
	}
	for _, name := range kept {
		if _, err := p.In(name); err != nil {
			return false, err
		}
	}
	all = true
	err = h.each(t, p, func(w workspace.Thread, _ Project, s workspace.Project) error {
		elsewhere, err := h.Keeper.KeptElsewhere(ctx, w, s)
		all = all && elsewhere
		return err
	})
	return all && err == nil, err
}

// Publish implements [Machine].
func (h *Host) Publish(ctx context.Context, t threads.Thread, p Project, within time.Duration) error {
	return h.each(t, p, func(w workspace.Thread, _ Project, s workspace.Project) error {
		w.Within = within
		return h.Keeper.Publish(ctx, w, s)
	})
}

// Save implements [Machine].
func (h *Host) Save(ctx context.Context, t threads.Thread, p Project, within time.Duration, end *workspace.End) (left string, err error) {
	var all []string
	err = h.each(t, p, func(w workspace.Thread, q Project, s workspace.Project) error {
		w.Within, w.End = within, end
		left, err := h.Keeper.Save(ctx, w, s)
		if err != nil {
			end = nil // where the thread's own has a state, the others have it
		}
		if left != "" {
			all = append(all, q.about(left)...)
		}
		if err != nil && q.Of != "" {
			err = fmt.Errorf("the repository %s: %w", q.Of, err)
		}
		return err
	})
	return strings.Join(all, " "), err
}

// Differs implements [Machine].
func (h *Host) Differs(ctx context.Context, t threads.Thread, p Project, now, then map[string]work.State) (all []Differs, err error) {
	for _, q := range p.All() {
		way, kept, err := h.way(t, q, now, then)
		d := Differs{Of: q.Of, Stays: !kept}
		if kept && err == nil {
			var forge string
			forge, d.Unasked = q.atForge(ctx, t.Branch)
			d.Loss, err = h.Keeper.Differs(ctx, way, forge)
		}
		if q.Of != "" && errors.Is(err, gitdata.ErrGone) {
			d.Stays, err = true, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// atForge is the commit that the forge's branch of a name has; empty for none. unasked says that the forge did not answer.
func (p Project) atForge(ctx context.Context, branch string) (commit string, unasked bool) {
	if !p.ReachesForge() {
		return "", false
	}
	ctx, cancel := context.WithTimeoutCause(ctx, branchTimeout, fmt.Errorf("no answer in %s", branchTimeout))
	defer cancel()
	refs, err := p.remote(p.Forge[0]).Refs(ctx, "refs/heads/"+branch)
	commit, _, _ = strings.Cut(strings.TrimSpace(refs), "\t")
	return commit, err != nil
}

// way is a repository's from now to then; false if what it was then is not kept.
func (h *Host) way(t threads.Thread, q Project, now, then map[string]work.State) (w workspace.Way, kept bool, err error) {
	is, saved := now[q.Of]
	to, kept := then[q.Of]
	if kept && !saved {
		err = fmt.Errorf("what is there now in the repository %s could not be saved", cmp.Or(q.Of, q.Name))
	}
	return workspace.Way{Thread: h.worksIn(t, q), Project: q.space(t), Now: workspace.State(is), Then: workspace.State(to)}, kept, err
}

// Rewind implements [Machine].
func (h *Host) Rewind(ctx context.Context, t threads.Thread, p Project, now, then map[string]work.State, key string) (told string, err error) {
	var ways []workspace.Way
	for _, q := range slices.Backward(p.All()) {
		way, kept, err := h.way(t, q, now, then)
		if err != nil {
			return "", err
		}
		if kept {
			ways = append(ways, way)
		}
	}
	return h.Keeper.Rewind(ctx, key, ways...)
}

// PutAway implements [Machine].
func (h *Host) PutAway(ctx context.Context, t threads.Thread, p Project) (stays string, told []string, err error) {
	_ = os.RemoveAll(h.commitsOf(t.ID)) // its next process makes it again
	h.made.Delete(t.ID)
	_ = os.Remove(h.picturesOf(t.ID))
	for _, q := range slices.Backward(p.All()) { // the thread's own holds the others
		var said []string
		stays, said, err = h.Keeper.PutAway(ctx, h.worksIn(t, q), q.space(t))
		if told = append(told, q.about(said...)...); stays != "" || err != nil {
			return strings.Join(q.about(stays), ""), told, err
		}
	}
	return "", told, nil
}
