package forge

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
)

const maxLog = 256 << 10

// in runs git in a repository.
func (f *Forge) in(name string, args ...string) (string, error) {
	out, err := output(nil, append([]string{"-C", f.path(name)}, args...)...)
	return strings.TrimSpace(out), err
}

// commit returns where a branch is.
func (f *Forge) commit(name, branch string) (string, error) {
	id, err := f.in(name, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
	if err != nil {
		return "", refuse(404, "there is no branch %q", branch)
	}
	return id, nil
}

// look brings what is known of a pull request up to date with git.
func (f *Forge) look(name string, p *pull) error {
	p.Draft, p.HTMLURL = p.draft(), fmt.Sprintf("%s%s%s/pulls/%d", f.url(), Root, name, p.Index)
	if p.Mergeable = false; p.HasMerged {
		return nil
	}
	if head, err := f.commit(name, p.Head.Ref); err == nil && head != p.Head.Sha { // the last commit is kept where the branch is gone
		if _, err := f.in(name, "update-ref", fmt.Sprintf("refs/pull/%d/head", p.Index), head); err != nil {
			return err
		}
		p.Head.Sha, p.Updated = head, now()
		if err := f.save(); err != nil {
			return err
		}
	}
	_, base, clean, err := f.tree(name, p)
	p.Base.Sha, p.Mergeable = base, err == nil && clean && p.Is() == "open"
	return nil
}

func now() *time.Time {
	t := time.Now()
	return &t
}

// tree returns what a merge would make; clean is false if the branches conflict.
func (f *Forge) tree(name string, p *pull) (id, base string, clean bool, err error) {
	if base, err = f.commit(name, p.Base.Ref); err != nil {
		return "", "", false, err
	}
	out, err := f.in(name, "merge-tree", "--write-tree", base, p.Head.Sha)
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == 1 || strings.Contains(err.Error(), "unrelated histories")) {
		return "", base, false, nil
	}
	return out, base, err == nil, err
}

func (f *Forge) openPull(name string, r *repository, who person, o gitea.CreatePullRequestOption) (*pull, error) {
	for _, branch := range []string{o.Head, o.Base} {
		if _, err := f.commit(name, branch); err != nil {
			return nil, err
		}
	}
	switch {
	case o.Head == o.Base:
		return nil, refuse(422, "There are no changes between the head and the base")
	case strings.TrimSpace(o.Title) == "":
		return nil, refuse(422, "the title is empty")
	case slices.ContainsFunc(r.Pulls, func(p *pull) bool { return p.State == gitea.StateOpen && p.Head.Ref == o.Head && p.Base.Ref == o.Base }):
		return nil, refuse(409, "pull request already exists for these targets")
	}
	p := &pull{PullRequest: &gitea.PullRequest{
		Index: r.next(), Title: o.Title, Body: o.Body, Poster: who.user(), State: gitea.StateOpen, Created: now(), Updated: now(),
		Head: &gitea.PRBranchInfo{Name: o.Head, Ref: o.Head, RepoID: 1}, Base: &gitea.PRBranchInfo{Name: o.Base, Ref: o.Base, RepoID: 1},
	}}
	for _, l := range r.Labels {
		if slices.Contains(o.Labels, l.ID) {
			p.Labels = append(p.Labels, l)
		}
	}
	r.Pulls = append(r.Pulls, p)
	return p, f.look(name, p)
}

// merge merges a pull request, if its head is the commit that is named or none is.
func (f *Forge) merge(name string, r *repository, p *pull, who person, o gitea.MergePullRequestOption) error {
	if err := f.look(name, p); err != nil {
		return err
	}
	switch {
	case p.HasMerged:
		return refuse(405, "The PR is already merged")
	case p.State == gitea.StateClosed:
		return refuse(404, "the pull request is closed")
	case !who.writes:
		return refuse(405, "User not allowed to merge PR")
	case p.draft():
		return refuse(405, "Work in progress PRs cannot be merged")
	}
	tree, base, clean, err := f.tree(name, p)
	if err != nil {
		return err
	}
	if !clean {
		return refuse(405, "Please try again later")
	}
	if why := r.unmet(p); why != "" {
		return refuse(405, "%s", why)
	}
	if o.HeadCommitId != "" && o.HeadCommitId != p.Head.Sha {
		return refuse(409, "head out of date")
	}
	into := p.Head.Sha
	_, behind := f.in(name, "merge-base", "--is-ancestor", base, p.Head.Sha)
	args := []string{"-C", f.path(name), "commit-tree", tree, "-p", base}
	title, text := o.Title, o.Message
	switch o.Style {
	case gitea.MergeStyleMerge, "":
		title = cmp.Or(title, fmt.Sprintf("Merge pull request '%s' (#%d) from %s into %s", p.Title, p.Index, p.Head.Ref, p.Base.Ref))
		args = append(args, "-p", p.Head.Sha)
	case gitea.MergeStyleSquash:
		title, text = cmp.Or(title, fmt.Sprintf("%s (#%d)", p.Title, p.Index)), cmp.Or(text, p.Body)
	default:
		if o.Style != gitea.MergeStyleRebase || behind != nil {
			return refuse(405, "%s is not an allowed merge style for this repository, unless the branch has all of its base", o.Style)
		}
		args = nil
	}
	if args != nil {
		env := []string{
			"GIT_AUTHOR_NAME=" + who.Name, "GIT_AUTHOR_EMAIL=" + who.Login + "@boathouse.example",
			"GIT_COMMITTER_NAME=Boathouse", "GIT_COMMITTER_EMAIL=forge@boathouse.example",
		}
		if into, err = output(env, append(args, "-m", strings.TrimSpace(title+"\n\n"+text))...); err != nil {
			return err
		}
		into = strings.TrimSpace(into)
	}
	if _, err := f.in(name, "update-ref", "refs/heads/"+p.Base.Ref, into, base); err != nil {
		return refuse(409, "merge push out of date")
	}
	p.State, p.HasMerged, p.MergedCommitID, p.MergedBy, p.Since = gitea.StateClosed, true, &into, who.user(), base
	p.Merged, p.Updated, p.Mergeable = now(), now(), false
	return f.save()
}

// unmet says which rule of a protected branch does not allow the merge, empty if none.
func (r *repository) unmet(p *pull) string {
	rule, protected := r.Rules[p.Base.Ref]
	if !protected {
		return ""
	}
	last := map[string]gitea.ReviewStateType{}
	for _, v := range p.Reviews {
		if v.Official {
			last[v.Reviewer.UserName] = v.State
		}
	}
	granted := int64(0)
	for _, v := range last {
		if v == gitea.ReviewStateApproved {
			granted++
		}
	}
	if granted < rule.Approvals {
		return "Does not have enough approvals"
	}
	checks := r.checks(p.Head.Sha)
	for _, s := range checks {
		if rule.StatusChecks && s.State != gitea.StatusSuccess && (len(rule.Contexts) == 0 || slices.Contains(rule.Contexts, s.Context)) {
			return "Not all required status checks successful"
		}
	}
	for _, name := range rule.Contexts {
		if rule.StatusChecks && !slices.ContainsFunc(checks, func(s *status) bool { return s.Context == name }) {
			return "Not all required status checks successful"
		}
	}
	return ""
}

func (f *Forge) addReview(name string, r *repository, p *pull, who person, o gitea.CreatePullReviewOptions) (*review, error) {
	if err := f.look(name, p); err != nil {
		return nil, err
	}
	switch o.State {
	case gitea.ReviewStateApproved, gitea.ReviewStateRequestChanges:
		if who.Login == p.Poster.UserName {
			return nil, refuse(422, "approve or reject your own pull request is not allowed")
		}
		if p.State != gitea.StateOpen {
			return nil, refuse(422, "the pull request is closed")
		}
	case gitea.ReviewStateComment:
	default:
		return nil, refuse(422, "there is no verdict %q: write APPROVED, REQUEST_CHANGES or COMMENT", o.State)
	}
	if o.State != gitea.ReviewStateApproved && strings.TrimSpace(o.Body) == "" && len(o.Comments) == 0 {
		return nil, refuse(422, "a review needs a text")
	}
	v := &review{PullReview: &gitea.PullReview{
		ID: r.next(), Reviewer: who.user(), State: o.State, Body: o.Body, CommitID: cmp.Or(o.CommitID, p.Head.Sha), Submitted: time.Now(),
		Official: who.writes && o.State != gitea.ReviewStateComment, CodeCommentsCount: len(o.Comments),
	}}
	for _, c := range o.Comments {
		if _, err := f.in(name, "cat-file", "-e", p.Head.Sha+":"+c.Path); err != nil && c.OldLineNum == 0 {
			return nil, refuse(422, "there is no file %q in the pull request", c.Path)
		}
		v.Comments = append(v.Comments, &gitea.PullReviewComment{
			ID: r.next(), Reviewer: who.user(), ReviewID: v.ID, Path: c.Path, CommitID: v.CommitID, Body: c.Body,
			LineNum: uint64(max(c.NewLineNum, 0)), OldLineNum: uint64(max(c.OldLineNum, 0)), Created: v.Submitted, Updated: v.Submitted,
		})
	}
	p.Reviews, p.Updated = append(p.Reviews, v), now()
	p.RequestedReviewers = slices.DeleteFunc(p.RequestedReviewers, func(u *gitea.User) bool { return u.UserName == who.Login })
	return v, f.save()
}

func (f *Forge) addStatus(name string, r *repository, who person, commit, log string, o gitea.CreateStatusOption) (*status, error) {
	if !who.writes {
		return nil, refuse(403, "%s may not set checks", who.Name)
	}
	if _, err := f.in(name, "cat-file", "-e", commit+"^{commit}"); err != nil || len(commit) < 40 || strings.Trim(commit, "0123456789abcdef") != "" {
		return nil, refuse(404, "there is no commit %q", commit)
	}
	if !slices.Contains([]gitea.StatusState{gitea.StatusPending, gitea.StatusSuccess, gitea.StatusError, gitea.StatusFailure, gitea.StatusWarning}, o.State) {
		return nil, refuse(422, "there is no state %q: write pending, success, failure, error or warning", o.State)
	}
	id := r.next()
	s := &status{Commit: commit, Log: log[max(0, len(log)-maxLog):], Status: &gitea.Status{
		ID: id, State: o.State, Context: cmp.Or(o.Context, "default"), Description: o.Description, Creator: who.user(), Created: time.Now(), Updated: time.Now(),
		TargetURL: cmp.Or(o.TargetURL, fmt.Sprintf("%s%s/actions/runs/%d/jobs/%d", Root, name, id, id)),
	}}
	r.Statuses = append(r.Statuses, s)
	return s, f.save()
}

// edit changes what an open pull request says, or closes it.
func (f *Forge) edit(p *pull, who person, o gitea.EditPullRequestOption) error {
	if !who.writes && who.Login != p.Poster.UserName {
		return refuse(http.StatusForbidden, "%s may not change it", who.Name)
	}
	if o.State != nil && p.HasMerged {
		return refuse(412, "cannot change the state of a pull request that is merged")
	}
	p.Title, p.Base.Ref, p.Updated = cmp.Or(o.Title, p.Title), cmp.Or(o.Base, p.Base.Ref), now()
	if o.Body != nil {
		p.Body = *o.Body
	}
	if o.State != nil {
		p.State = *o.State
	}
	return f.save()
}
