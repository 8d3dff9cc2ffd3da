package forge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// Reviews implements [Repository]. GitLab has no reviews of its own: there are approvals, the
// reviewers' states, and what people wrote about the whole.
func (g *ofGitLab) Reviews(ctx context.Context, number int) ([]Review, error) {
	approvals, _, err := g.rest.MergeRequestApprovals.GetConfiguration(g.project, int64(number), gitlab.WithContext(ctx))
	if err != nil {
		return nil, g.failed("read the approvals", err)
	}
	reviewers, _, err := g.rest.MergeRequests.GetMergeRequestReviewers(g.project, int64(number), gitlab.WithContext(ctx))
	if err != nil {
		return nil, g.failed("read the reviewers", err)
	}
	notes, err := gitLabPages(func(at gitlab.ListOptions) ([]*gitlab.Note, *gitlab.Response, error) {
		return g.rest.Notes.ListMergeRequestNotes(g.project, int64(number), &gitlab.ListMergeRequestNotesOptions{ListOptions: at, OrderBy: new("created_at"), Sort: new("asc")}, gitlab.WithContext(ctx))
	})
	if err != nil {
		return nil, g.failed("read the comments", err)
	}
	byLogin := map[string]*Review{}
	for _, n := range notes {
		if !n.System && n.Type == "" && n.Author.Username != "" {
			byLogin[n.Author.Username] = &Review{Author: n.Author.Username, Verdict: Commented, Body: n.Body, At: at(n.CreatedAt)}
		}
	}
	// A verdict has no text of its own: people write it as a comment.
	verdict := func(u *gitlab.BasicUser, v Verdict, when *time.Time) {
		login := gitLabLogin(u)
		r := byLogin[login]
		if r == nil {
			r = &Review{Author: login, At: at(when)}
			byLogin[login] = r
		}
		if v == Approved && r.At.Before(at(when)) {
			r.At = at(when)
		}
		r.Verdict = v
	}
	for _, r := range reviewers {
		if r.State == "requested_changes" {
			verdict(r.User, ChangesRequested, r.CreatedAt)
		}
	}
	for _, a := range approvals.ApprovedBy {
		verdict(a.User, Approved, a.ApprovedAt)
	}
	reviews := make([]Review, 0, len(byLogin))
	for _, r := range byLogin {
		reviews = append(reviews, *r)
	}
	slices.SortFunc(reviews, func(a, b Review) int { return a.At.Compare(b.At) })
	return reviews, nil
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Discussions implements [Repository]: what can be resolved. A thread about the whole has no
// path.
func (g *ofGitLab) Discussions(ctx context.Context, number int) ([]Discussion, error) {
	all, err := gitLabPages(func(at gitlab.ListOptions) ([]*gitlab.Discussion, *gitlab.Response, error) {
		return g.rest.Discussions.ListMergeRequestDiscussions(g.project, int64(number), &gitlab.ListMergeRequestDiscussionsOptions{ListOptions: at}, gitlab.WithContext(ctx))
	})
	if err != nil {
		return nil, g.failed("read the review threads", err)
	}
	var out []Discussion
	for _, one := range all {
		if len(one.Notes) == 0 || !one.Notes[0].Resolvable {
			continue
		}
		d := Discussion{ID: one.ID, Resolved: true}
		if p := one.Notes[0].Position; p != nil {
			d.Path, d.Line = p.NewPath, int(p.NewLine)
			d.Path = cmp.Or(d.Path, p.OldPath)
		}
		for _, n := range one.Notes {
			if n.System {
				continue
			}
			d.Resolved = d.Resolved && (n.Resolved || !n.Resolvable)
			d.Comments = append(d.Comments, Comment{n.Author.Username, n.Body})
		}
		out = append(out, d)
	}
	return out, nil
}

func (g *ofGitLab) Reply(ctx context.Context, number int, discussion, text string) error {
	err := checkDiscussion(discussion)
	text = words(text)
	if err == nil {
		_, _, err = g.rest.Discussions.AddMergeRequestDiscussionNote(g.project, int64(number), discussion, &gitlab.AddMergeRequestDiscussionNoteOptions{Body: &text}, gitlab.WithContext(ctx))
	}
	return g.failed("answer in the review thread", err)
}

func (g *ofGitLab) Resolve(ctx context.Context, number int, discussion string) error {
	err := checkDiscussion(discussion)
	if err == nil {
		_, _, err = g.rest.Discussions.ResolveMergeRequestDiscussion(g.project, int64(number), discussion, &gitlab.ResolveMergeRequestDiscussionOptions{Resolved: new(true)}, gitlab.WithContext(ctx))
	}
	return g.failed("resolve the review thread", err)
}

// checkDiscussion refuses what would be another address.
func checkDiscussion(id string) error {
	if checkCommit(id) != nil { // they look alike
		return &Error{Reason: NotFound, Sentence: "The merge request has no such review thread"}
	}
	return nil
}

func (g *ofGitLab) Picture(ctx context.Context, _ int, name string, png []byte) (string, error) {
	at, _, err := g.rest.ProjectMarkdownUploads.UploadProjectMarkdown(g.project, bytes.NewReader(png), name, gitlab.WithContext(ctx))
	if err == nil && at.Markdown == "" {
		err = errors.New("the answer has no Markdown")
	}
	if err != nil {
		return "", g.failed("upload a picture", err)
	}
	return at.Markdown, nil
}

func (g *ofGitLab) Comment(ctx context.Context, number int, text string) error {
	text = words(text)
	_, _, err := g.rest.Notes.CreateMergeRequestNote(g.project, int64(number), &gitlab.CreateMergeRequestNoteOptions{Body: &text}, gitlab.WithContext(ctx))
	return g.failed("comment on the merge request", err)
}
