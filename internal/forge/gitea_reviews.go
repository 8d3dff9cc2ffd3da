package forge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"code.gitea.io/sdk/gitea"
)

// reviews returns the reviews of a pull request that count, the oldest first.
func (g *ofGitea) reviews(ctx context.Context, number int) ([]*gitea.PullReview, error) {
	all, err := pages(func(o gitea.ListOptions) ([]*gitea.PullReview, *gitea.Response, error) {
		return g.api(ctx).ListPullReviews(g.owner, g.name, int64(number), gitea.ListPullReviewsOptions{ListOptions: o})
	})
	if err != nil {
		return nil, failed("read the reviews", g.host, err)
	}
	all = slices.DeleteFunc(all, func(r *gitea.PullReview) bool { return r.Dismissed })
	slices.SortStableFunc(all, func(a, b *gitea.PullReview) int { return a.Submitted.Compare(b.Submitted) })
	return all, nil
}

func (g *ofGitea) Reviews(ctx context.Context, number int) ([]Review, error) {
	all, err := g.reviews(ctx, number)
	if err != nil {
		return nil, err
	}
	verdicts := map[gitea.ReviewStateType]Verdict{
		gitea.ReviewStateApproved: Approved, gitea.ReviewStateRequestChanges: ChangesRequested, gitea.ReviewStateComment: Commented,
	}
	var reviews []Review
	for _, r := range all {
		verdict, ok := verdicts[r.State]
		if !ok || verdict == Commented && r.Body == "" { // one that only holds comments on lines
			continue
		}
		reviews = append(reviews, Review{Author: login(r.Reviewer), Verdict: verdict, Body: r.Body, Commit: r.CommitID, At: r.Submitted})
	}
	return lastOfEach(reviews), nil
}

// lastOfEach returns the last verdict of each reviewer, or of who gave none the last comment:
// a comment does not take a verdict back. The reviews are the oldest first, and stay so.
func lastOfEach(reviews []Review) []Review {
	last := map[string]int{}
	for i, r := range reviews {
		if before, ok := last[r.Author]; !ok || r.Verdict != Commented || reviews[before].Verdict == Commented {
			last[r.Author] = i
		}
	}
	var kept []Review
	for i, r := range reviews {
		if last[r.Author] == i {
			kept = append(kept, r)
		}
	}
	return kept
}

// line is where a comment stands: Gitea's own page shows what is said there as one thread.
type line struct {
	path     string
	now, old uint64
}

// talk is a review thread, and what Gitea knows it by.
type talk struct {
	Discussion
	at    line
	first int64
}

func (g *ofGitea) Discussions(ctx context.Context, number int) ([]Discussion, error) {
	talks, err := g.talks(ctx, number)
	if err != nil {
		return nil, err
	}
	discussions := make([]Discussion, len(talks))
	for i, t := range talks {
		discussions[i] = t.Discussion
	}
	return discussions, nil
}

func (g *ofGitea) talks(ctx context.Context, number int) ([]*talk, error) {
	all, err := g.reviews(ctx, number)
	if err != nil {
		return nil, err
	}
	var comments []*gitea.PullReviewComment
	for _, r := range all {
		if r.CodeCommentsCount == 0 || r.State == gitea.ReviewStatePending {
			continue
		}
		some, _, err := g.api(ctx).ListPullReviewComments(g.owner, g.name, int64(number), r.ID)
		if err != nil {
			return nil, failed("read the comments", g.host, err)
		}
		comments = append(comments, some...)
	}
	slices.SortFunc(comments, func(a, b *gitea.PullReviewComment) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	byLine := map[line]*talk{}
	var talks []*talk
	for _, c := range comments {
		at := line{c.Path, c.LineNum, c.OldLineNum}
		t := byLine[at]
		if t == nil {
			t = &talk{at: at, first: c.ID, Discussion: Discussion{ID: strconv.FormatInt(c.ID, 10), Path: c.Path, Line: int(c.LineNum)}}
			byLine[at] = t
			talks = append(talks, t)
		}
		t.Resolved = t.Resolved || c.Resolver != nil
		t.Comments = append(t.Comments, Comment{Author: login(c.Reviewer), Body: c.Body})
	}
	return talks, nil
}

func (g *ofGitea) talk(ctx context.Context, number int, discussion string) (*talk, error) {
	talks, err := g.talks(ctx, number)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(talks, func(t *talk) bool { return t.ID == discussion }); i >= 0 {
		return talks[i], nil
	}
	return nil, &Error{Reason: NotFound, Sentence: "This review thread is not there any more"}
}

func (g *ofGitea) Reply(ctx context.Context, number int, discussion, text string) error {
	t, err := g.talk(ctx, number, discussion)
	if err != nil {
		return err
	}
	_, _, err = g.api(ctx).CreatePullReviewCommentReply(g.owner, g.name, int64(number), t.first, gitea.CreatePullReviewCommentReplyOptions{Body: text})
	if r := refusalOf(err); r == nil || r.status != http.StatusNotFound && r.status != http.StatusMethodNotAllowed {
		return failed("answer in the review thread", g.host, err)
	}
	// Up to 1.26 nothing can be replied to; a comment on the same line stands in the same thread.
	_, _, err = g.api(ctx).CreatePullReview(g.owner, g.name, int64(number), gitea.CreatePullReviewOptions{
		State:    gitea.ReviewStateComment,
		Comments: []gitea.CreatePullReviewComment{{Path: t.at.path, Body: text, NewLineNum: int64(t.at.now), OldLineNum: oldOnly(t.at)}},
	})
	return failed("answer in the review thread", g.host, err)
}

func oldOnly(at line) int64 {
	if at.now > 0 {
		return 0
	}
	return int64(at.old)
}

func (g *ofGitea) Resolve(ctx context.Context, number int, discussion string) error {
	t, err := g.talk(ctx, number, discussion)
	if err != nil {
		return err
	}
	_, err = g.api(ctx).ResolvePullReviewComment(g.owner, g.name, t.first)
	if r := refusalOf(err); r != nil && (r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed) {
		err = &Error{Reason: Unsupported, Sentence: "This version of Gitea has no way to resolve a review thread over its API. Resolve it on its page", Err: err}
	}
	return failed("resolve the review thread", g.host, err)
}

func (g *ofGitea) Picture(ctx context.Context, number int, name string, png []byte) (string, error) {
	at, _, err := g.api(ctx).CreateIssueAttachment(g.owner, g.name, int64(number), bytes.NewReader(png), name)
	if err == nil && at.DownloadURL == "" {
		err = errors.New("the answer names no address")
	}
	if err != nil {
		return "", failed("upload a picture", g.host, err)
	}
	return "![" + name + "](" + at.DownloadURL + ")", nil
}

func (g *ofGitea) Comment(ctx context.Context, number int, text string) error {
	_, _, err := g.api(ctx).CreateIssueComment(g.owner, g.name, int64(number), gitea.CreateIssueCommentOption{Body: text})
	return failed("comment on the pull request", g.host, err)
}
