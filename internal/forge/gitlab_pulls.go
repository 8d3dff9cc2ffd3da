package forge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// draftTitle is how the title of a draft begins: GitLab has no other sign of it.
var draftTitle = regexp.MustCompile(`(?i)^\s*(?:(?:\[draft\]|\(draft\)|draft:)\s*)+`)

func (g *ofGitLab) Open(ctx context.Context, p NewPull) (Pull, error) {
	title := draftTitle.ReplaceAllString(p.Title, "")
	if p.Draft {
		title = "Draft: " + title
	}
	body := words(p.Body)
	o := &gitlab.CreateMergeRequestOptions{Title: &title, Description: &body, SourceBranch: &p.Branch, TargetBranch: &p.Base}
	labels, without := g.labels(ctx, p.Labels)
	if len(labels) > 0 {
		o.Labels = (*gitlab.LabelOptions)(&labels)
	}
	ids, unasked := g.reviewers(ctx, p.Reviewers)
	if len(ids) > 0 {
		o.ReviewerIDs = &ids
	}
	mr, _, err := g.rest.MergeRequests.CreateMergeRequest(g.project, o, gitlab.WithContext(ctx))
	if r, e := said(err); r != nil && r.status == http.StatusConflict {
		e.Reason, e.Sentence = Exists, "A merge request from "+p.Branch+" is open already"
	}
	if err = g.whole(mr, err); err != nil {
		return Pull{}, g.failed("open a merge request", err)
	}
	pull := gitLabPull(mr)
	pull.Unasked, pull.Unlabelled = unasked, without
	return pull, nil
}

// quickAction is a line that GitLab would carry out, as /merge or /approve.
var quickAction = regexp.MustCompile(`(?m)^([^\S\n]*)/([A-Za-z_]+)([^\S\n]|$)`)

// words is a text as GitLab shows it, and does nothing by it: what merges takes an approval of its own.
func words(text string) string {
	return quickAction.ReplaceAllString(strings.ReplaceAll(text, "\r", ""), `$1\/$2$3`)
}

// labels are those that there are, and the others, which GitLab would make.
func (g *ofGitLab) labels(ctx context.Context, wanted []string) (there, without []string) {
	if len(wanted) == 0 {
		return nil, nil
	}
	all, err := gitLabPages(func(at gitlab.ListOptions) ([]*gitlab.Label, *gitlab.Response, error) {
		return g.rest.Labels.ListLabels(g.project, &gitlab.ListLabelsOptions{ListOptions: at}, gitlab.WithContext(ctx))
	})
	if err != nil {
		return nil, wanted // it is opened without
	}
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
	}
	return known(wanted, names)
}

// reviewers are the numbers of those whom GitLab knows, and the names of the others. It leaves
// out itself who may not read the project.
func (g *ofGitLab) reviewers(ctx context.Context, names []string) (ids []int64, unasked []string) {
	most := min(len(names), maxReviewers)
	unasked = slices.Clone(names[most:])
	for _, name := range names[:most] {
		users, _, err := g.rest.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
		if err != nil || len(users) != 1 || !strings.EqualFold(users[0].Username, name) {
			unasked = append(unasked, name)
		} else if !slices.Contains(ids, users[0].ID) {
			ids = append(ids, users[0].ID)
		}
	}
	return ids, unasked
}

// whole makes an error of an answer that is no merge request.
func (g *ofGitLab) whole(mr *gitlab.MergeRequest, err error) error {
	if err == nil && (mr == nil || mr.IID == 0 || mr.State == "") {
		err = errors.New("the answer is no merge request")
	}
	return err
}

func (g *ofGitLab) Find(ctx context.Context, branch string) (Pull, error) {
	list, _, err := g.rest.MergeRequests.ListProjectMergeRequests(g.project, &gitlab.ListProjectMergeRequestsOptions{State: new("opened"), SourceBranch: &branch}, gitlab.WithContext(ctx))
	if err != nil {
		return Pull{}, g.failed("look for a merge request", err)
	}
	for _, mr := range list {
		if mr.SourceBranch == branch && mr.SourceProjectID == mr.TargetProjectID {
			return g.Pull(ctx, int(mr.IID)) // a list may tell an old state of merging
		}
	}
	return Pull{}, &Error{Reason: NotFound, Sentence: "No merge request from " + branch + " is open"}
}

func (g *ofGitLab) get(ctx context.Context, number int) (*gitlab.MergeRequest, error) {
	mr, _, err := g.rest.MergeRequests.GetMergeRequest(g.project, int64(number), nil, gitlab.WithContext(ctx))
	return mr, g.failed("read the merge request", g.whole(mr, err))
}

func (g *ofGitLab) Pull(ctx context.Context, number int) (Pull, error) {
	mr, err := g.get(ctx, number)
	if err != nil {
		return Pull{}, err
	}
	return gitLabPull(mr), nil
}

// gitLabPull has the title without the beginning that makes a draft: it is what the others
// call the title, and the first line of a squashed commit.
func gitLabPull(mr *gitlab.MergeRequest) Pull {
	p := Pull{
		Number: int(mr.IID), URL: mr.WebURL, Title: draftTitle.ReplaceAllString(mr.Title, ""), Body: mr.Description,
		State: Open, Draft: mr.Draft, Branch: mr.SourceBranch, Base: mr.TargetBranch, Head: mr.SHA, Author: gitLabLogin(mr.Author),
		Mergeable: MergeBlocked, // which GitLab has many words for
	}
	switch mr.State {
	case "merged":
		p.State, p.MergedCommit = Merged, gitLabCommit(mr)
		if by := mr.MergeUser; by != nil {
			p.MergedBy = by.Username
		}
	case "closed":
		p.State = Closed
	}
	switch mr.DetailedMergeStatus {
	case "mergeable":
		p.Mergeable = MergeClean
	case "conflict":
		p.Mergeable = MergeConflict
	case "", "checking", "unchecked", "preparing", "approvals_syncing":
		p.Mergeable = MergeUnknown
	}
	if mr.HasConflicts && p.State == Open {
		p.Mergeable = MergeConflict
	}
	return p
}

// gitLabCommit is what a merge made: a merge commit, a squashed one, or nothing but a
// fast-forward.
func gitLabCommit(mr *gitlab.MergeRequest) string {
	return cmp.Or(mr.MergeCommitSHA, mr.SquashCommitSHA, mr.SHA)
}

func gitLabLogin(u *gitlab.BasicUser) string {
	if u == nil || u.Username == "" {
		return "ghost" // deleted
	}
	return u.Username
}

func (g *ofGitLab) MarkReady(ctx context.Context, number int) error {
	mr, err := g.get(ctx, number)
	if err != nil || !mr.Draft {
		return err
	}
	title := draftTitle.ReplaceAllString(mr.Title, "")
	mr, _, err = g.rest.MergeRequests.UpdateMergeRequest(g.project, int64(number), &gitlab.UpdateMergeRequestOptions{Title: &title}, gitlab.WithContext(ctx))
	return g.failed("mark the merge request as ready", g.whole(mr, err))
}

// Merge implements [Repository]. Whether there is a merge commit is a setting of the project:
// what is asked must fit it.
func (g *ofGitLab) Merge(ctx context.Context, number int, m NewMerge) (string, error) {
	if err := checkCommit(m.Head); err != nil {
		return "", err
	}
	if m.Method != MergeSquash {
		p, err := g.read(ctx)
		if err != nil {
			return "", err
		}
		if forward := p.MergeMethod == gitlab.FastForwardMerge; forward != (m.Method == MergeRebase) {
			sentence := "The project makes merge commits. Merge with one, or squash"
			if forward {
				sentence = "The project makes no merge commits. Merge by rebase, or squash"
			}
			return "", &Error{Reason: Unsupported, Sentence: sentence}
		}
	}
	squash := m.Method == MergeSquash
	o := &gitlab.AcceptMergeRequestOptions{SHA: &m.Head, Squash: &squash}
	if whole := strings.TrimSpace(m.Title + "\n\n" + m.Message); m.Title != "" && squash {
		o.SquashCommitMessage = &whole
	} else if m.Title != "" {
		o.MergeCommitMessage = &whole
	}
	mr, _, err := g.rest.MergeRequests.AcceptMergeRequest(g.project, int64(number), o, gitlab.WithContext(ctx))
	if err == nil && (mr == nil || mr.State != "merged" || gitLabCommit(mr) == "") {
		err = errors.New("the answer does not say that it is merged")
	}
	if err == nil {
		return gitLabCommit(mr), nil
	}
	if r, e := said(err); r != nil && r.status == http.StatusUnauthorized {
		e.Sentence = g.host + " does not let the account of the token merge into this branch, or does not take the token"
	}
	commit, err := whyNotMerged(ctx, g, number, m.Head, err)
	return commit, g.failed("merge the merge request", err)
}
