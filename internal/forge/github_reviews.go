package forge

import (
	"context"
	"slices"
	"strings"

	"github.com/google/go-github/v92/github"
	"github.com/shurcooL/githubv4"
)

func (g *ofGitHub) Reviews(ctx context.Context, number int) ([]Review, error) {
	all, err := gitHubPages(func(at github.ListOptions) ([]*github.PullRequestReview, *github.Response, error) {
		return g.rest.PullRequests.ListReviews(ctx, g.owner, g.name, number, &at)
	})
	if err != nil {
		return nil, g.failed("read the reviews", err)
	}
	var said []Review
	for _, r := range all { // the oldest first
		one := Review{Author: gitHubLogin(r.GetUser()), Body: r.GetBody(), Commit: r.GetCommitID(), At: r.GetSubmittedAt().Time}
		switch strings.ToUpper(r.GetState()) {
		case "APPROVED":
			one.Verdict = Approved
		case "CHANGES_REQUESTED":
			one.Verdict = ChangesRequested
		case "DISMISSED": // and those before it do not come back
			said = slices.DeleteFunc(said, func(before Review) bool { return before.Author == one.Author && before.Verdict != Commented })
			continue
		case "COMMENTED":
			if one.Verdict = Commented; one.Body == "" {
				continue // it is about comments in review threads
			}
		default: // pending: not said yet
			continue
		}
		said = append(said, one)
	}
	return lastOfEach(said), nil
}

// Discussions implements [Repository]. Of a review thread it reads the first 100 comments.
func (g *ofGitHub) Discussions(ctx context.Context, number int) ([]Discussion, error) {
	var q struct {
		Repository struct {
			PullRequest struct {
				ReviewThreads struct {
					Nodes []struct {
						ID         string
						Path       string
						Line       *int
						IsResolved bool
						Comments   struct {
							Nodes []struct {
								Author *struct {
									Typename string `graphql:"__typename"`
									Login    string
								}
								Body string
							}
						} `graphql:"comments(first: 100)"`
					}
					PageInfo struct {
						HasNextPage bool
						EndCursor   *githubv4.String
					}
				} `graphql:"reviewThreads(first: 50, after: $after)"`
			} `graphql:"pullRequest(number: $number)"`
		} `graphql:"repository(owner: $owner, name: $name)"`
	}
	v := g.variables()
	v["number"], v["after"] = githubv4.Int(number), (*githubv4.String)(nil) //nolint:gosec // a number of GitHub's
	var out []Discussion
	for range maxPages {
		threads := &q.Repository.PullRequest.ReviewThreads
		threads.Nodes = nil
		if err := g.graph.Query(ctx, &q, v); err != nil {
			return nil, g.failed("read the review threads", err)
		}
		for _, t := range threads.Nodes {
			d := Discussion{ID: t.ID, Path: t.Path, Resolved: t.IsResolved}
			if t.Line != nil {
				d.Line = *t.Line
			}
			for _, c := range t.Comments.Nodes {
				login := "ghost"
				if c.Author != nil {
					if login = c.Author.Login; c.Author.Typename == "Bot" {
						login += "[bot]" // as REST calls it
					}
				}
				d.Comments = append(d.Comments, Comment{login, c.Body})
			}
			out = append(out, d)
		}
		if !threads.PageInfo.HasNextPage {
			break
		}
		v["after"] = threads.PageInfo.EndCursor
	}
	return out, nil
}

// checkThread refuses a review thread of another pull request: its id would reach any that
// the credential does.
func (g *ofGitHub) checkThread(ctx context.Context, number int, id string) error {
	var q struct {
		Repository struct{ NameWithOwner string } `graphql:"repository(owner: $owner, name: $name)"`
		Node       *struct {
			Thread struct {
				PullRequest struct {
					Number     int
					Repository struct{ NameWithOwner string }
				}
			} `graphql:"... on PullRequestReviewThread"`
		} `graphql:"node(id: $id)"`
	}
	v := g.variables()
	v["id"] = githubv4.ID(id)
	if err := g.graph.Query(ctx, &q, v); err != nil {
		return err
	}
	if q.Node != nil {
		pr := q.Node.Thread.PullRequest
		if pr.Number == number && pr.Repository.NameWithOwner == q.Repository.NameWithOwner {
			return nil
		}
	}
	return &Error{Reason: NotFound, Sentence: "The pull request has no such review thread"}
}

func (g *ofGitHub) Reply(ctx context.Context, number int, discussion, text string) error {
	var m struct {
		AddPullRequestReviewThreadReply struct {
			Comment struct{ ID string }
		} `graphql:"addPullRequestReviewThreadReply(input: $input)"`
	}
	err := g.checkThread(ctx, number, discussion)
	if err == nil {
		err = g.graph.Mutate(ctx, &m, githubv4.AddPullRequestReviewThreadReplyInput{PullRequestReviewThreadID: discussion, Body: githubv4.String(text)}, nil)
	}
	return g.failed("answer in the review thread", err)
}

func (g *ofGitHub) Resolve(ctx context.Context, number int, discussion string) error {
	var m struct {
		ResolveReviewThread struct {
			Thread struct{ IsResolved bool }
		} `graphql:"resolveReviewThread(input: $input)"`
	}
	err := g.checkThread(ctx, number, discussion)
	if err == nil {
		err = g.graph.Mutate(ctx, &m, githubv4.ResolveReviewThreadInput{ThreadID: discussion}, nil)
	}
	return g.failed("resolve the review thread", err)
}
