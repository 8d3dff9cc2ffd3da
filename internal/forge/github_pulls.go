package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-github/v92/github"
	"github.com/shurcooL/githubv4"
)

// Open implements [Repository]. Once the pull request is open, nothing fails it any more:
// labels and reviewers that GitHub does not take are left out.
func (g *ofGitHub) Open(ctx context.Context, p NewPull) (Pull, error) {
	want := github.CreatePullRequest{Title: &p.Title, Body: &p.Body, Head: p.Branch, Base: p.Base, Draft: &p.Draft}
	pr, _, err := g.rest.PullRequests.Create(ctx, g.owner, g.name, want)
	if r, _ := said(err); p.Draft && r != nil && r.status == http.StatusUnprocessableEntity && strings.Contains(strings.ToLower(r.message), "draft") {
		want.Draft = new(bool) // a private repository of a plan that has none
		pr, _, err = g.rest.PullRequests.Create(ctx, g.owner, g.name, want)
	}
	if r, e := said(err); r != nil && r.status == http.StatusUnprocessableEntity {
		switch words := strings.ToLower(r.message); {
		case strings.Contains(words, "already exists"):
			e.Reason, e.Sentence = Exists, "A pull request from "+p.Branch+" is open already"
		case strings.Contains(words, "no commits between"):
			e.Sentence = p.Branch + " has no commits that " + p.Base + " has not. Commit something first"
		}
	}
	if err = g.whole(pr, err); err != nil {
		return Pull{}, g.failed("open a pull request", err)
	}
	pull := gitHubPull(pr)
	pull.Unlabelled = g.label(ctx, pr.GetNumber(), p.Labels)
	pull.Unasked = g.askReviewers(ctx, pr.GetNumber(), p.Reviewers)
	return pull, nil
}

// label puts on the labels that there are, and returns those that it did not: GitHub would make them.
func (g *ofGitHub) label(ctx context.Context, number int, wanted []string) (without []string) {
	if len(wanted) == 0 {
		return nil
	}
	all, err := gitHubPages(func(at github.ListOptions) ([]*github.Label, *github.Response, error) {
		return g.rest.Issues.ListLabels(ctx, g.owner, g.name, &at)
	})
	if err != nil {
		return wanted
	}
	var names []string
	for _, l := range all {
		names = append(names, l.GetName())
	}
	labels, without := known(wanted, names)
	if len(labels) > 0 {
		if _, _, err := g.rest.Issues.AddLabelsToIssue(ctx, g.owner, g.name, number, labels); err != nil {
			return wanted
		}
	}
	return without
}

// maxReviewers is how many GitHub takes.
const maxReviewers = 15

// askReviewers asks for reviews, and returns who could not be asked. GitHub refuses all where
// one cannot review: then each is asked alone.
func (g *ofGitHub) askReviewers(ctx context.Context, number int, reviewers []string) (unasked []string) {
	ask := func(names ...string) error {
		var want github.ReviewersRequest
		for _, name := range names {
			if _, team, ok := strings.Cut(name, "/"); ok {
				want.TeamReviewers = append(want.TeamReviewers, team)
			} else {
				want.Reviewers = append(want.Reviewers, name)
			}
		}
		_, _, err := g.rest.PullRequests.RequestReviewers(ctx, g.owner, g.name, number, want)
		return err
	}
	most := min(len(reviewers), maxReviewers)
	reviewers, unasked = reviewers[:most], slices.Clone(reviewers[most:])
	if len(reviewers) == 0 || ask(reviewers...) == nil {
		return unasked
	}
	for _, name := range reviewers {
		if len(reviewers) == 1 || ask(name) != nil {
			unasked = append(unasked, name)
		}
	}
	return unasked
}

// whole makes an error of an answer that is no pull request.
func (g *ofGitHub) whole(pr *github.PullRequest, err error) error {
	if err == nil && (pr.GetNumber() == 0 || pr.GetHead().GetSHA() == "") {
		err = errors.New("the answer is no pull request")
	}
	return err
}

func (g *ofGitHub) Find(ctx context.Context, branch string) (Pull, error) {
	r, err := g.repository(ctx) // its owner may have another name by now
	if err != nil {
		return Pull{}, err
	}
	list, _, err := g.rest.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{State: "open", Head: r.GetOwner().GetLogin() + ":" + branch})
	if err != nil {
		return Pull{}, g.failed("look for a pull request", err)
	}
	for _, pr := range list {
		if pr.GetHead().GetRef() == branch && pr.GetHead().GetRepo().GetID() == r.GetID() {
			return g.Pull(ctx, pr.GetNumber()) // a list does not say whether it can be merged
		}
	}
	return Pull{}, &Error{Reason: NotFound, Sentence: "No pull request from " + branch + " is open"}
}

func (g *ofGitHub) Pull(ctx context.Context, number int) (Pull, error) {
	pr, _, err := g.rest.PullRequests.Get(ctx, g.owner, g.name, number)
	if err = g.failed("read the pull request", g.whole(pr, err)); err != nil {
		return Pull{}, err
	}
	return gitHubPull(pr), nil
}

func gitHubPull(pr *github.PullRequest) Pull {
	p := Pull{
		Number: pr.GetNumber(), URL: pr.GetHTMLURL(), Title: pr.GetTitle(), Body: pr.GetBody(),
		State: Open, Draft: pr.GetDraft(), Branch: pr.GetHead().GetRef(), Base: pr.GetBase().GetRef(),
		Head: pr.GetHead().GetSHA(), Author: gitHubLogin(pr.GetUser()), Mergeable: MergeUnknown,
	}
	switch {
	case pr.GetMerged() || pr.MergedAt != nil:
		p.State, p.MergedCommit, p.MergedBy = Merged, pr.GetMergeCommitSHA(), pr.GetMergedBy().GetLogin()
	case pr.GetState() == "closed":
		p.State = Closed
	}
	switch pr.GetMergeableState() {
	case "clean", "has_hooks", "unstable": // unstable: checks that are not required
		p.Mergeable = MergeClean
	case "dirty":
		p.Mergeable = MergeConflict
	case "blocked", "behind", "draft":
		p.Mergeable = MergeBlocked
	}
	return p
}

func gitHubLogin(u *github.User) string { return cmp.Or(u.GetLogin(), "ghost") } // deleted

func (g *ofGitHub) MarkReady(ctx context.Context, number int) error {
	pr, _, err := g.rest.PullRequests.Get(ctx, g.owner, g.name, number)
	if err = g.failed("read the pull request", g.whole(pr, err)); err != nil || !pr.GetDraft() {
		return err
	}
	var m struct {
		MarkPullRequestReadyForReview struct {
			PullRequest struct{ IsDraft bool }
		} `graphql:"markPullRequestReadyForReview(input: $input)"`
	}
	return g.failed("mark the pull request as ready", g.graph.Mutate(ctx, &m, githubv4.MarkPullRequestReadyForReviewInput{PullRequestID: pr.GetNodeID()}, nil))
}

func (g *ofGitHub) Merge(ctx context.Context, number int, m NewMerge) (string, error) {
	if err := checkCommit(m.Head); err != nil {
		return "", err
	}
	done, _, err := g.rest.PullRequests.Merge(ctx, g.owner, g.name, number, m.Message, &github.PullRequestOptions{SHA: m.Head, MergeMethod: string(m.Method), CommitTitle: m.Title})
	if err == nil && (!done.GetMerged() || done.GetSHA() == "") {
		err = errors.New("the answer does not say that it is merged")
	}
	if err == nil {
		return done.GetSHA(), nil
	}
	commit, err := whyNotMerged(ctx, g, number, m.Head, err)
	return commit, g.failed("merge the pull request", err)
}

var commitID = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// checkCommit refuses what is no whole commit id: a merge without one would merge anything.
func checkCommit(id string) error {
	if !commitID.MatchString(id) {
		return &Error{Reason: Invalid, Sentence: "A commit is named by its whole id", Err: fmt.Errorf("%q is none", id)}
	}
	return nil
}

// whyNotMerged returns why a forge did not merge, by its words and by how the pull request
// is now; or the commit, if it was merged before by a call whose answer was lost.
func whyNotMerged(ctx context.Context, r Repository, number int, head string, err error) (string, error) {
	answer, e := said(err)
	if answer == nil {
		return "", err
	}
	switch answer.status {
	case http.StatusMethodNotAllowed, http.StatusConflict, http.StatusNotAcceptable, http.StatusUnprocessableEntity:
	default:
		return "", err
	}
	now, errNow := r.Pull(ctx, number)
	words := strings.ToLower(answer.message)
	switch {
	case errNow == nil && now.State == Merged && now.Head == head && now.MergedCommit != "":
		return now.MergedCommit, nil
	case errNow == nil && now.Head != head, strings.Contains(words, "head branch was modified"), strings.Contains(words, "does not match head"):
		e.Reason, e.Sentence = Moved, "The pull request has new commits since. Look at them first"
	case strings.Contains(words, "base branch was modified"):
		e.Reason, e.Sentence = Blocked, "The base branch has just moved. Try again"
	case strings.Contains(words, "are not allowed on this repository"):
		e.Reason, e.Sentence = Invalid, "The repository does not allow this way of merging. Choose another"
	case errNow == nil && now.State == Closed:
		e.Reason, e.Sentence = Blocked, "The pull request is closed. Open it again first"
	case errNow == nil && now.Draft:
		e.Reason, e.Sentence = Blocked, "The pull request is a draft. Mark it as ready first"
	case errNow == nil && now.Mergeable == MergeConflict:
		e.Reason, e.Sentence = Blocked, "The pull request conflicts with "+now.Base+". Resolve the conflict first"
	case answer.status != http.StatusUnprocessableEntity, strings.Contains(words, "rule"), strings.Contains(words, "cannot be merged"):
		e.Reason, e.Sentence = Blocked, "The forge does not let it be merged yet"
		if words != "" && words != "405 method not allowed" {
			e.Sentence += ": " + answer.message
		}
	}
	return "", err
}
