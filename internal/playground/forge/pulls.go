package forge

import (
	"cmp"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
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

// look brings what is known of an open pull request up to date with git.
func (f *Forge) look(name string, p *pull) error {
	if p.Merged != "" {
		return nil
	}
	head, err := f.commit(name, p.Branch)
	if err != nil || head == p.Head {
		return nil // its last commit is kept where the branch is gone
	}
	if _, err := f.in(name, "update-ref", "refs/pull/"+strconv.FormatInt(p.Number, 10)+"/head", head); err != nil {
		return err
	}
	p.Head, p.Updated = head, time.Now()
	return f.save()
}

// tree returns what a merge would make; clean is false if the branches conflict.
func (f *Forge) tree(name string, p *pull) (id, base string, clean bool, err error) {
	if base, err = f.commit(name, p.Base); err != nil {
		return "", "", false, err
	}
	out, err := f.in(name, "merge-tree", "--write-tree", base, p.Head)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return "", base, false, nil
	}
	return out, base, err == nil, err
}

func (f *Forge) openPull(name string, r *repository, who person, o gitea.CreatePullRequestOption) (*pull, error) {
	head, err := f.commit(name, o.Head)
	if err != nil {
		return nil, err
	}
	if _, err := f.commit(name, o.Base); err != nil {
		return nil, err
	}
	switch {
	case o.Head == o.Base:
		return nil, refuse(422, "There are no changes between the head and the base")
	case strings.TrimSpace(o.Title) == "":
		return nil, refuse(422, "the title is empty")
	case slices.ContainsFunc(r.Pulls, func(p *pull) bool { return p.open() && p.Branch == o.Head && p.Base == o.Base }):
		return nil, refuse(409, "pull request already exists for these targets")
	}
	p := &pull{
		Number: r.next(), Title: o.Title, Body: o.Body, Branch: o.Head, Base: o.Base, Author: who.Login,
		Created: time.Now(), Updated: time.Now(),
	}
	for _, l := range r.Labels {
		if slices.Contains(o.Labels, l.ID) {
			p.Labels = append(p.Labels, l.ID)
		}
	}
	if _, err := f.in(name, "update-ref", "refs/pull/"+strconv.FormatInt(p.Number, 10)+"/head", head); err != nil {
		return nil, err
	}
	p.Head = head
	r.Pulls = append(r.Pulls, p)
	return p, f.save()
}

// merge merges a pull request, if its head is the commit that is named or none is.
func (f *Forge) merge(name string, r *repository, p *pull, who person, style gitea.MergeStyle, head string) error {
	if err := f.look(name, p); err != nil {
		return err
	}
	switch {
	case p.Merged != "":
		return refuse(405, "The PR is already merged")
	case p.Closed:
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
	if head != "" && head != p.Head {
		return refuse(409, "head out of date")
	}
	into := p.Head
	_, behind := f.in(name, "merge-base", "--is-ancestor", base, p.Head)
	number := "#" + strconv.FormatInt(p.Number, 10)
	args := []string{"-C", f.path(name), "commit-tree", tree, "-p", base}
	switch style {
	case gitea.MergeStyleMerge, "":
		args = append(args, "-p", p.Head, "-m", "Merge pull request '"+p.Title+"' ("+number+") from "+p.Branch+" into "+p.Base)
	case gitea.MergeStyleSquash:
		args = append(args, "-m", strings.TrimSpace(p.Title+" ("+number+")\n\n"+p.Body))
	default:
		if style != gitea.MergeStyleRebase || behind != nil {
			return refuse(405, "%s is not an allowed merge style for this repository, unless the branch has all of its base", style)
		}
		args = nil
	}
	if args != nil {
		env := []string{
			"GIT_AUTHOR_NAME=" + who.Name, "GIT_AUTHOR_EMAIL=" + who.Login + "@boathouse.example",
			"GIT_COMMITTER_NAME=Boathouse", "GIT_COMMITTER_EMAIL=forge@boathouse.example",
		}
		if into, err = output(env, args...); err != nil {
			return err
		}
		into = strings.TrimSpace(into)
	}
	if _, err := f.in(name, "update-ref", "refs/heads/"+p.Base, into, base); err != nil {
		return refuse(409, "merge push out of date")
	}
	p.Merged, p.MergedBy, p.Since, p.Updated = into, who.Login, base, time.Now()
	return f.save()
}

// unmet says which rule of a protected branch does not allow the merge, empty if none.
func (r *repository) unmet(p *pull) string {
	rule, protected := r.Rules[p.Base]
	if !protected {
		return ""
	}
	last := map[string]gitea.ReviewStateType{}
	for _, v := range p.Reviews {
		if who, err := personOf(v.Author); err == nil && who.writes && v.State != gitea.ReviewStateComment {
			last[v.Author] = v.State
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
	checks := r.checks(p.Head)
	for _, s := range checks {
		if rule.StatusChecks && s.State != gitea.StatusSuccess && (len(rule.Contexts) == 0 || slices.Contains(rule.Contexts, s.Name)) {
			return "Not all required status checks successful"
		}
	}
	for _, name := range rule.Contexts {
		if rule.StatusChecks && !slices.ContainsFunc(checks, func(s *status) bool { return s.Name == name }) {
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
		if who.Login == p.Author {
			return nil, refuse(422, "approve or reject your own pull request is not allowed")
		}
		if !p.open() {
			return nil, refuse(422, "the pull request is closed")
		}
	case gitea.ReviewStateComment:
	default:
		return nil, refuse(422, "there is no verdict %q: write APPROVED, REQUEST_CHANGES or COMMENT", o.State)
	}
	if o.State != gitea.ReviewStateApproved && strings.TrimSpace(o.Body) == "" && len(o.Comments) == 0 {
		return nil, refuse(422, "a review needs a text")
	}
	v := &review{ID: r.next(), Author: who.Login, State: o.State, Body: o.Body, Commit: cmp.Or(o.CommitID, p.Head), At: time.Now()}
	for _, c := range o.Comments {
		if _, err := f.in(name, "cat-file", "-e", p.Head+":"+c.Path); err != nil && c.OldLineNum == 0 {
			return nil, refuse(422, "there is no file %q in the pull request", c.Path)
		}
		v.Comments = append(v.Comments, &comment{
			ID: r.next(), Author: who.Login, Path: c.Path, Line: c.NewLineNum - c.OldLineNum, Body: c.Body, At: time.Now(),
		})
	}
	p.Reviews, p.Updated = append(p.Reviews, v), time.Now()
	p.Reviewers = slices.DeleteFunc(p.Reviewers, func(login string) bool { return login == who.Login })
	return v, f.save()
}

func (f *Forge) addStatus(name string, r *repository, who person, s status) (*status, error) {
	if !who.writes {
		return nil, refuse(403, "%s may not set checks", who.Name)
	}
	if _, err := f.in(name, "cat-file", "-e", s.Commit+"^{commit}"); err != nil || len(s.Commit) < 40 || strings.Trim(s.Commit, "0123456789abcdef") != "" {
		return nil, refuse(404, "there is no commit %q", s.Commit)
	}
	if !slices.Contains([]gitea.StatusState{gitea.StatusPending, gitea.StatusSuccess, gitea.StatusError, gitea.StatusFailure, gitea.StatusWarning}, s.State) {
		return nil, refuse(422, "there is no state %q: write pending, success, failure, error or warning", s.State)
	}
	s.ID, s.By, s.At, s.Name = r.next(), who.Login, time.Now(), cmp.Or(s.Name, "default")
	if len(s.Log) > maxLog {
		s.Log = s.Log[len(s.Log)-maxLog:]
	}
	if s.URL == "" {
		id := strconv.FormatInt(s.ID, 10)
		s.URL = f.url() + Root + name + "/actions/runs/" + id + "/jobs/" + id
	}
	r.Statuses = append(r.Statuses, &s)
	return &s, f.save()
}

// edit changes what an open pull request says, or closes it.
func (f *Forge) edit(p *pull, who person, o gitea.EditPullRequestOption) error {
	if !who.writes && who.Login != p.Author {
		return refuse(http.StatusForbidden, "%s may not change it", who.Name)
	}
	if o.State != nil && p.Merged != "" {
		return refuse(412, "cannot change the state of a pull request that is merged")
	}
	p.Title, p.Base, p.Updated = cmp.Or(o.Title, p.Title), cmp.Or(o.Base, p.Base), time.Now()
	if o.Body != nil {
		p.Body = *o.Body
	}
	if o.State != nil {
		p.Closed = *o.State == gitea.StateClosed
	}
	return f.save()
}
