package forge

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/github.graphql")

type o = map[string]any

// gitHubSays is what GitHub says where nothing is wrong.
func gitHubSays(operation string, a asked) (int, any) {
	own := o{"id": 1, "full_name": "octocat/Hello-World", "owner": o{"login": "octocat"}}
	pull := o{
		"number": 5, "state": "open", "draft": true, "title": "Fix it", "merged": false, "merged_at": nil, "merge_commit_sha": other, "mergeable_state": "unstable",
		"head": o{"ref": "deckhand/1", "sha": head, "repo": own}, "base": o{"ref": "main", "repo": own}, "user": o{"login": "deckhand[bot]"}, "node_id": "PR_5",
		"requested_teams": []any{}, // GitHub's own example does not fit
	}
	run := func(id int, name, conclusion, app string) o {
		return o{"id": id, "name": name, "status": "completed", "conclusion": conclusion, "details_url": fmt.Sprintf("https://github.com/octocat/Hello-World/actions/runs/1/job/%d", id), "app": o{"slug": app}}
	}
	const R = " /repos/{owner}/{repo}"
	switch operation {
	case "GET" + R:
		own["default_branch"], own["source"], own["language"] = "trunk", absent, "Go" // its own does not fit
		return 200, own
	case "GET" + R + "/pulls":
		delete(pull, "merged")
		delete(pull, "mergeable_state")
		return 200, []any{patch(pull, o{"number": 4, "head": o{"repo": o{"id": 9}}}), pull}
	case "GET" + R + "/pulls/{pull_number}":
		return 200, pull
	case "POST" + R + "/pulls":
		return 201, pull
	case "PUT" + R + "/pulls/{pull_number}/merge":
		return 200, o{"sha": other, "merged": true}
	case "POST" + R + "/pulls/{pull_number}/requested_reviewers":
		if strings.Contains(fmt.Sprint(a.Body), "stranger") {
			return 422, o{"message": "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator."}
		}
		return 201, o{"requested_teams": []any{}}
	case "GET" + R + "/labels":
		return 200, []any{o{"name": "bug"}, o{"name": "Good first issue"}}
	case "POST" + R + "/issues/{issue_number}/labels":
		return 200, []any{o{"name": "bug"}}
	case "GET" + R + "/commits/{ref}/check-runs":
		return 200, o{"total_count": 5, "check_runs": []any{
			run(31, "test", "failure", "github-actions"), run(30, "test", "success", "github-actions"), run(32, "lint", "success", "other"), run(33, "old", "cancelled", "github-actions"),
			patch(run(34, "slow", "", "github-actions"), o{"status": "in_progress", "conclusion": nil, "completed_at": nil}),
		}}
	case "GET" + R + "/check-runs/{check_run_id}":
		return 200, o{"output": o{"title": "2 findings", "summary": "main.go:3 is odd", "text": nil}}
	case "GET" + R + "/commits/{ref}/status":
		return 200, o{"statuses": []any{o{"id": 8, "context": "ci/other", "state": "error", "description": "It broke"}}}
	case "GET" + R + "/actions/runs":
		return 200, o{"workflow_runs": []any{o{"id": 2, "workflow_id": 7, "event": "push"}, o{"id": 1, "workflow_id": 7, "event": "push"}}}
	case "GET" + R + "/actions/runs/{run_id}/jobs":
		return 200, o{"jobs": []any{o{"id": 31, "name": "test", "status": "completed", "conclusion": "failure", "created_at": "2026-01-02T03:04:00Z"}}}
	case "GET" + R + "/actions/jobs/{job_id}":
		step := func(name, conclusion, from, to string) o {
			return o{"name": name, "conclusion": conclusion, "started_at": "2026-01-02T03:04:" + from + "Z", "completed_at": "2026-01-02T03:04:" + to + "Z"}
		}
		return 200, o{"created_at": "2026-01-02T03:04:00Z", "steps": []any{step("Set up", "success", "00", "04"), step("Test", "failure", "05", "07"), step("Clean up", "success", "09", "10")}}
	case "GET" + R + "/pulls/{pull_number}/reviews":
		review := func(id int, who, state, body string) o {
			return o{"id": id, "user": o{"login": who}, "state": state, "body": body, "submitted_at": fmt.Sprintf("2026-01-02T03:04:%02dZ", id), "commit_id": head}
		}
		return 200, []any{
			review(1, "ann", "CHANGES_REQUESTED", "Not so"), review(2, "bob", "APPROVED", ""), review(3, "ann", "COMMENTED", "see there"),
			review(4, "bob", "DISMISSED", ""), review(5, "cy", "COMMENTED", ""), review(6, "dan", "COMMENTED", "Nice"),
		}
	}
	return 200, gitHubGraph(a)
}

// gitHubGraph answers by GraphQL.
func gitHubGraph(a asked) string {
	query := a.Body.(o)["query"].(string)
	for part, answer := range map[string]string{
		"viewer":               `{"viewer":{"databaseId":77,"login":"deckhand[bot]"}}`,
		"pullRequestTemplates": `{"repository":{"pullRequestTemplates":[{"filename":"other.md","body":"no"},{"filename":"PULL_REQUEST_TEMPLATE.md","body":"## Why"}]}}`,
		"object(":              `{"repository":{"a":null,"b":{"text":"* @ann","isTruncated":false},"c":{"text":"* @bob","isTruncated":false}}}`,
		"markPullRequestReady": `{"markPullRequestReadyForReview":{"pullRequest":{"isDraft":false}}}`,
		"node(":                `{"repository":{"nameWithOwner":"octocat/Hello-World"},"node":{"pullRequest":{"number":5,"repository":{"nameWithOwner":"octocat/Hello-World"}}}}`,
		"ThreadReply":          `{"addPullRequestReviewThreadReply":{"comment":{"id":"C1"}}}`,
		"resolveReviewThread":  `{"resolveReviewThread":{"thread":{"isResolved":true}}}`,
	} {
		if strings.Contains(query, part) {
			return `{"data":` + answer + `}`
		}
	}
	node := `{"id":"T1","path":"a.go","line":3,"isResolved":false,"comments":{"nodes":[{"author":{"__typename":"User","login":"ann"},"body":"Why?"},{"author":{"__typename":"Bot","login":"deckhand"},"body":"So."}]}}`
	page := `{"hasNextPage":true,"endCursor":"X"}`
	if a.Body.(o)["variables"].(o)["after"] != nil {
		node = `{"id":"T2","path":"b.go","line":null,"isResolved":true,"comments":{"nodes":[{"author":null,"body":"Gone"}]}}`
		page = `{"hasNextPage":false,"endCursor":null}`
	}
	return `{"data":{"repository":{"pullRequest":{"reviewThreads":{"nodes":[` + node + `],"pageInfo":` + page + `}}}}}`
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Errorf("%v, reason %q", err, ReasonOf(err))
		}
		return v
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// What GitHub's description lets us ask, and what becomes of its answers.
func TestGitHub(t *testing.T) {
	t.Parallel()
	s, r := gitHubAPI(t, gitHubSays)
	logs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the credential goes to where logs are kept")
		}
		for i, text := range []string{"checkout", "\x1b[36;1mgo test\x1b[0m", "  want 1\x1b]0;title\a", "##[error]Process completed with exit code 1.", "removing"} {
			fmt.Fprintf(w, "2026-01-02T03:04:%02d.1234567Z %s\n", []int{3, 5, 6, 7, 9}[i], text)
		}
	}))
	t.Cleanup(logs.Close)
	s.raw["GET /api/v3/repos/octocat/Hello-World/actions/jobs/31/logs"] = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, logs.URL+"/log?sig=secret", http.StatusFound)
	}
	ctx := t.Context()
	same(t, "me", must[Account](t)(r.Me(ctx)), Account{ID: 77, Login: "deckhand[bot]"})
	same(t, "default branch", must[string](t)(r.DefaultBranch(ctx)), "trunk")
	same(t, "template", must[string](t)(r.Template(ctx)), "## Why")
	same(t, "owners", must[string](t)(r.CodeOwners(ctx, "trunk")), "* @ann")
	p := must[Pull](t)(r.Open(ctx, NewPull{Title: "Fix it", Body: "It broke.", Branch: "deckhand/1", Base: "main", Draft: true, Labels: []string{"Bug", "none"}, Reviewers: []string{"ann", "octo/team", "stranger"}}))
	same(t, "labels", s.did("POST", "/labels"), []any{[]any{"bug"}})
	same(t, "reviewers", s.did("POST", "/requested_reviewers"), []any{
		o{"reviewers": []any{"ann", "stranger"}, "team_reviewers": []any{"team"}}, o{"reviewers": []any{"ann"}}, o{"team_reviewers": []any{"team"}}, o{"reviewers": []any{"stranger"}},
	})
	want := Pull{
		Number: 5, URL: p.URL, Title: "Fix it", Body: p.Body, State: Open, Draft: true, Branch: "deckhand/1", Base: "main", Head: head, Author: "deckhand[bot]", Mergeable: MergeClean,
	}
	same(t, "those who could not be asked", p.Unasked, []string{"stranger"})
	same(t, "the labels that there are not", p.Unlabelled, []string{"none"})
	p.Unasked, p.Unlabelled = nil, nil
	same(t, "opened", p, want)
	same(t, "found", must[Pull](t)(r.Find(ctx, "deckhand/1")), want)
	if _, err := r.Find(ctx, "deckhand/2"); ReasonOf(err) != NotFound {
		t.Errorf("another branch: %v", err)
	}
	must[any](t)(nil, r.MarkReady(ctx, 5))
	same(t, "merged", must[string](t)(r.Merge(ctx, 5, NewMerge{Head: head, Method: MergeSquash, Title: "Fix it (#5)", Message: "Requested-by: Ann"})), other)
	same(t, "the merge", s.did("PUT", "/merge"), []any{o{"sha": head, "merge_method": "squash", "commit_title": "Fix it (#5)", "commit_message": "Requested-by: Ann"}})
	checks := must[[]Check](t)(r.Checks(ctx, head))
	var got []string
	for _, c := range checks {
		got = append(got, c.ID+" "+c.Name+" "+string(c.State))
	}
	same(t, "checks", got, []string{"status/8 ci/other failed", "run/32 lint passed", "job/33 old skipped", "job/34 slow pending", "job/31 test failed"})
	same(t, "log", must[string](t)(r.FailureLog(ctx, Check{ID: "job/31"}, 1000)), "go test\n  want 1\n##[error]Process completed with exit code 1.")
	same(t, "its end", must[string](t)(r.FailureLog(ctx, Check{ID: "job/31"}, 50)), "##[error]Process completed with exit code 1.")
	same(t, "output", must[string](t)(r.FailureLog(ctx, Check{ID: "run/32"}, 1000)), "2 findings\nmain.go:3 is odd")
	same(t, "of a status", must[string](t)(r.FailureLog(ctx, Check{ID: "status/8"}, 1000)), "")
	var said []string
	for _, one := range must[[]Review](t)(r.Reviews(ctx, 5)) {
		said = append(said, one.Author+" "+string(one.Verdict)+" "+one.Body)
	}
	same(t, "reviews", said, []string{"ann changes_requested Not so", "dan commented Nice"})
	same(t, "discussions", must[[]Discussion](t)(r.Discussions(ctx, 5)), []Discussion{
		{ID: "T1", Path: "a.go", Line: 3, Comments: []Comment{{"ann", "Why?"}, {"deckhand[bot]", "So."}}},
		{ID: "T2", Path: "b.go", Resolved: true, Comments: []Comment{{"ghost", "Gone"}}},
	})
	must[any](t)(nil, r.Reply(ctx, 5, "T1", "Done."))
	must[any](t)(nil, r.Resolve(ctx, 5, "T1"))
	for what, err := range map[string]error{"answered": r.Reply(ctx, 6, "T1", "Done."), "resolved": r.Resolve(ctx, 6, "T1")} {
		if ReasonOf(err) != NotFound {
			t.Errorf("a thread of another pull request is %s: %v", what, err)
		}
	}
	// Each was held against GitHub's schema of GraphQL once: testdata/README.md.
	known, err := os.ReadFile("testdata/github.graphql")
	if err != nil && !*update {
		t.Fatal(err)
	}
	var all []string
	for _, path := range []string{"/api/graphql"} {
		for _, body := range s.did("POST", path) {
			query := body.(o)["query"].(string)
			if !strings.Contains(strings.Join(all, "\n"), query) {
				all = append(all, query)
			}
		}
	}
	if text := strings.Join(all, "\n") + "\n"; *update {
		if err := os.WriteFile("testdata/github.graphql", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	} else {
		same(t, "queries", text, string(known))
	}
}

// A fine-grained token cannot read check runs: then the jobs of Actions are asked for.
func TestGitHubsChecksWithoutTheRightToCheckRuns(t *testing.T) {
	t.Parallel()
	_, r := gitHubAPI(t, func(operation string, a asked) (int, any) {
		if strings.HasSuffix(operation, "/check-runs") {
			return 403, o{"message": "Resource not accessible by personal access token"}
		}
		return gitHubSays(operation, a)
	})
	var got []string
	for _, c := range must[[]Check](t)(r.Checks(t.Context(), head)) {
		got = append(got, c.ID+" "+c.Name+" "+string(c.State))
	}
	same(t, "checks", got, []string{"status/8 ci/other failed", "job/31 test failed"})
}

// A private repository may have no drafts, and a merge whose answer was lost has happened.
func TestGitHubTheSecondTime(t *testing.T) {
	t.Parallel()
	merged := o{"state": "closed", "merged": true, "merged_at": "2026-01-02T03:04:05Z", "mergeable_state": "unknown", "merged_by": o{"login": "ann"}}
	s, r := gitHubAPI(t, func(operation string, a asked) (int, any) {
		status, usual := gitHubSays(operation, a)
		switch {
		case strings.HasPrefix(operation, "POST") && strings.HasSuffix(operation, "/pulls"):
			if a.Body.(o)["draft"] == true {
				return 422, o{"message": "Draft pull requests are not supported in this repository.", "documentation_url": "https://docs.github.com"}
			}
			return status, patch(usual, o{"draft": false})
		case strings.HasSuffix(operation, "/merge"):
			return 405, o{"message": "Pull Request is not mergeable"}
		case strings.HasSuffix(operation, "/pulls/{pull_number}"):
			return status, patch(usual, merged)
		}
		return status, usual
	})
	if p := must[Pull](t)(r.Open(t.Context(), NewPull{Title: "Fix it", Branch: "deckhand/1", Base: "main", Draft: true})); p.Draft {
		t.Error("it is a draft")
	}
	same(t, "opened", len(s.did("POST", "/pulls")), 2)
	same(t, "merged", must[string](t)(r.Merge(t.Context(), 5, NewMerge{Head: head, Method: MergeCommit})), other)
	if _, err := r.Merge(t.Context(), 5, NewMerge{Head: other, Method: MergeCommit}); ReasonOf(err) != Moved {
		t.Errorf("another commit: %v", err)
	}
	if _, err := r.Merge(t.Context(), 5, NewMerge{Head: "", Method: MergeCommit}); ReasonOf(err) != Invalid {
		t.Errorf("no commit: %v", err)
	}
	p := must[Pull](t)(r.Pull(t.Context(), 5))
	same(t, "state", [3]any{p.State, p.MergedCommit, p.MergedBy}, [3]any{Merged, other, "ann"})
}

// refusal is an answer of a forge, and what we make of it.
type refusalCase struct {
	name      string
	operation *regexp.Regexp
	status    int
	body      any // text as it is, else JSON
	now       any // how the pull request is then, if that matters
	call      func(t *testing.T, r Repository) error
	want      Reason
	sentence  string
	until     bool
}

func mergeIt(t *testing.T, r Repository) error {
	_, err := r.Merge(t.Context(), 5, NewMerge{Head: head, Method: MergeSquash})
	return err
}

func openIt(t *testing.T, r Repository) error {
	_, err := r.Open(t.Context(), NewPull{Title: "Fix it", Branch: "deckhand/1", Base: "main"})
	return err
}

func readIt(t *testing.T, r Repository) error {
	_, err := r.Pull(t.Context(), 5)
	return err
}

func resolveIt(t *testing.T, r Repository) error { return r.Resolve(t.Context(), 5, thread) }

func (c refusalCase) run(t *testing.T, serve func(*testing.T, func(string, asked) (int, any)) (*answerer, Repository), says func(string, asked) (int, any), pull string) {
	t.Run(c.name, func(t *testing.T) {
		t.Parallel()
		_, r := serve(t, func(operation string, a asked) (int, any) {
			if c.operation.MatchString(operation) {
				return c.status, c.body
			}
			status, usual := says(operation, a)
			if operation == pull && c.now != nil {
				usual = patch(usual, c.now)
			}
			return status, usual
		})
		err := c.call(t, r)
		var e *Error
		if !errors.As(err, &e) || e.Reason != c.want || !strings.Contains(e.Sentence, c.sentence) || !strings.Contains(err.Error(), e.Sentence) || UntilOf(err).IsZero() == c.until {
			t.Errorf("%v\nreason %q until %v, want %q, %q, %v", err, ReasonOf(err), UntilOf(err), c.want, c.sentence, c.until)
		}
	})
}

func graphError(kind, message string) string {
	b, _ := json.Marshal(o{"data": nil, "errors": []any{o{"type": kind, "message": message}}})
	return string(b)
}

func TestGitHubsRefusals(t *testing.T) {
	t.Parallel()
	merge, open, read, graph := regexp.MustCompile(`^PUT .*/merge$`), regexp.MustCompile(`^POST .*/pulls$`), regexp.MustCompile(`^GET .*/pulls/`), regexp.MustCompile(`GRAPHQL`)
	says := func(message string) o { return o{"message": message, "documentation_url": "https://docs.github.com"} }
	invalid := func(details ...any) o { return patch(says("Validation Failed"), o{"errors": details}).(o) }
	ready := o{"draft": false}
	for _, c := range []refusalCase{
		{"head moved", merge, 409, says("Head branch was modified. Review and try the merge again."), ready, mergeIt, Moved, "new commits since", false},
		{"head moved, and a rule first", merge, 405, says("Required status check \"test\" is expected."), o{"head": o{"sha": other}}, mergeIt, Moved, "new commits since", false},
		{"base moved", merge, 405, says("Base branch was modified. Review and try the merge again."), ready, mergeIt, Blocked, "Try again", false},
		{"a check is missing", merge, 405, says("Required status check \"test\" is expected."), ready, mergeIt, Blocked, `Required status check "test" is expected.`, false},
		{"a rule", merge, 405, says("Repository rule violations found\n\nChanges must be made through a pull request."), ready, mergeIt, Blocked, "rule violations", false},
		{"a rule as 422", merge, 422, invalid(o{"resource": "PullRequest", "code": "custom", "message": "Repository rule violations found"}), ready, mergeIt, Blocked, "rule violations", false},
		{"a draft", merge, 405, says("Pull Request is still a draft"), nil, mergeIt, Blocked, "Mark it as ready first", false},
		{"conflict", merge, 405, says("Pull Request is not mergeable"), o{"draft": false, "mergeable_state": "dirty"}, mergeIt, Blocked, "conflicts with main", false},
		{"closed", merge, 405, says("Pull Request is not mergeable"), o{"draft": false, "state": "closed"}, mergeIt, Blocked, "is closed", false},
		{"method", merge, 405, says("Squash merges are not allowed on this repository."), ready, mergeIt, Invalid, "Choose another", false},
		{"invalid", merge, 422, invalid(o{"resource": "PullRequest", "field": "sha", "code": "invalid"}), ready, mergeIt, Invalid, "sha invalid", false},
		{"may not merge", merge, 403, says("Resource not accessible by integration"), ready, mergeIt, Denied, "Grant it Contents and Pull requests: read and write", false},
		{"not there", merge, 404, says("Not Found"), nil, mergeIt, NotFound, "no such thing", false},
		{"merge without answer", merge, 502, "<html>", nil, mergeIt, Unavailable, "does not work", false},
		{"half a merge", merge, 200, `{"sha":"bb`, nil, mergeIt, Unavailable, "half of one", false},
		{"no merge", merge, 200, `{}`, nil, mergeIt, Unavailable, "half of one", false},
		{"exists", open, 422, invalid(o{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for octocat:deckhand/1."}), nil, openIt, Exists, "open already", false},
		{"no commits", open, 422, invalid(o{"resource": "PullRequest", "code": "custom", "message": "No commits between main and deckhand/1"}), nil, openIt, Invalid, "Commit something first", false},
		{"no base", open, 422, invalid(o{"resource": "PullRequest", "field": "base", "code": "invalid"}), nil, openIt, Invalid, "base invalid", false},
		{"SSO", open, 403, says("Resource protected by organization SAML enforcement. You must grant your OAuth token access to this organization."), nil, openIt, Denied, "single sign-on", false},
		{"secondary limit", open, 403, says("You have exceeded a secondary rate limit. Please wait a few minutes before you try again."), nil, openIt, RateLimited, "no more calls", true},
		{"limit", read, 429, says("API rate limit exceeded for installation ID 1."), nil, readIt, RateLimited, "no more calls", true},
		{"expired", read, 401, says("Bad credentials"), nil, readIt, Denied, "give a new one", false},
		{"suspended", read, 403, says("This installation has been suspended"), nil, readIt, Denied, "suspended", false},
		{"empty", read, 200, "", nil, readIt, Unavailable, "half of one", false},
		{"another thing", read, 200, `{"id":1}`, nil, readIt, Unavailable, "half of one", false},
		{"GraphQL: not found", graph, 200, graphError("NOT_FOUND", "Could not resolve to a node"), nil, resolveIt, NotFound, "no such thing", false},
		{"GraphQL: may not", graph, 200, graphError("FORBIDDEN", "Resource not accessible by integration"), nil, resolveIt, Denied, "Grant it", false},
		{"GraphQL: limit", graph, 200, graphError("RATE_LIMITED", "API rate limit exceeded"), nil, resolveIt, RateLimited, "no more calls", true},
		{"GraphQL: wrong", graph, 200, graphError("UNPROCESSABLE", "It is resolved"), nil, resolveIt, Invalid, "It is resolved", false},
		{"GraphQL: broken", graph, 200, graphError("", "Something went wrong while executing your query."), nil, resolveIt, Unavailable, "does not work", false},
		{"GraphQL: nothing", graph, 200, `{}`, nil, resolveIt, Unavailable, "half of one", false},
	} {
		c.run(t, gitHubAPI, gitHubSays, "GET /repos/{owner}/{repo}/pulls/{pull_number}")
	}
}
