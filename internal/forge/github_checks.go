package forge

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"
)

// newest collects checks: the newest run of each name.
type newest struct {
	checks map[string]Check
	at     map[string]int64
}

// add takes a check whose runs are in the order of a number.
func (n *newest) add(c Check, at int64) {
	if n.checks == nil {
		n.checks, n.at = map[string]Check{}, map[string]int64{}
	}
	if before, ok := n.at[c.Name]; !ok || at >= before {
		n.checks[c.Name], n.at[c.Name] = c, at
	}
}

func (n *newest) all() []Check {
	out := make([]Check, 0, len(n.checks))
	for _, c := range n.checks {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Checks implements [Repository]: check runs, which GitHub Actions makes as well, and the
// commit statuses of others.
func (g *ofGitHub) Checks(ctx context.Context, commit string) ([]Check, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}
	var found newest
	runs, err := gitHubPages(func(at github.ListOptions) ([]*github.CheckRun, *github.Response, error) {
		some, response, err := g.rest.Checks.ListCheckRunsForRef(ctx, g.owner, g.name, commit, &github.ListCheckRunsOptions{Filter: new("latest"), ListOptions: at})
		if err != nil {
			return nil, nil, err
		}
		return some.CheckRuns, response, nil
	})
	if err = g.failed("read the checks", err); err != nil {
		if r := refusalOf(err); r == nil || r.status != http.StatusForbidden || ReasonOf(err) != Denied {
			return nil, err
		}
		// A fine-grained token cannot have the right to read check runs, but that to read Actions.
		if err := g.jobs(ctx, commit, &found); err != nil {
			return nil, err
		}
	}
	for _, run := range runs {
		c := Check{ID: "run/" + strconv.FormatInt(run.GetID(), 10), Name: run.GetName(), URL: cmp.Or(run.GetHTMLURL(), run.GetDetailsURL()), Summary: firstLine(run.GetOutput().GetTitle())}
		if m := jobURL.FindStringSubmatch(run.GetDetailsURL()); m != nil && run.GetApp().GetSlug() == "github-actions" {
			c.ID = "job/" + m[1]
		}
		c.State, c.Summary = gitHubState(run.GetStatus(), run.GetConclusion(), c.Summary)
		found.add(c, run.GetID())
	}
	statuses, err := gitHubPages(func(at github.ListOptions) ([]*github.RepoStatus, *github.Response, error) {
		some, response, err := g.rest.Repositories.GetCombinedStatus(ctx, g.owner, g.name, commit, &at)
		if err != nil {
			return nil, nil, err
		}
		return some.Statuses, response, nil
	})
	if err != nil {
		return nil, g.failed("read the checks", err)
	}
	for _, s := range statuses {
		c := Check{ID: "status/" + strconv.FormatInt(s.GetID(), 10), Name: s.GetContext(), State: CheckPending, URL: s.GetTargetURL(), Summary: firstLine(s.GetDescription())}
		switch s.GetState() {
		case "success":
			c.State = CheckPassed
		case "failure", "error":
			c.State = CheckFailed
		}
		found.add(c, s.GetID())
	}
	return found.all(), nil
}

var jobURL = regexp.MustCompile(`/job/(\d+)$`)

// jobs are the jobs of Actions that ran for a commit, the newest run of each workflow.
func (g *ofGitHub) jobs(ctx context.Context, commit string, found *newest) error {
	runs, err := gitHubPages(func(at github.ListOptions) ([]*github.WorkflowRun, *github.Response, error) {
		some, response, err := g.rest.Actions.ListRepositoryWorkflowRuns(ctx, g.owner, g.name, &github.ListWorkflowRunsOptions{HeadSHA: commit, ListOptions: at})
		if err != nil {
			return nil, nil, err
		}
		return some.WorkflowRuns, response, nil
	})
	if err != nil {
		return g.failed("read the checks", err)
	}
	latest := map[string]*github.WorkflowRun{}
	for _, run := range runs {
		key := fmt.Sprint(run.GetWorkflowID(), run.GetEvent())
		if run.GetID() > latest[key].GetID() {
			latest[key] = run
		}
	}
	for _, run := range latest {
		jobs, err := gitHubPages(func(at github.ListOptions) ([]*github.WorkflowJob, *github.Response, error) {
			some, response, err := g.rest.Actions.ListWorkflowJobs(ctx, g.owner, g.name, run.GetID(), &github.ListWorkflowJobsOptions{Filter: "latest", ListOptions: at})
			if err != nil {
				return nil, nil, err
			}
			return some.Jobs, response, nil
		})
		if err != nil {
			return g.failed("read the checks", err)
		}
		for _, job := range jobs {
			c := Check{ID: "job/" + strconv.FormatInt(job.GetID(), 10), Name: job.GetName(), URL: job.GetHTMLURL()}
			c.State, c.Summary = gitHubState(job.GetStatus(), job.GetConclusion(), "")
			found.add(c, job.GetID())
		}
	}
	return nil
}

// gitHubState reads how a check run or a job stands. One that was cancelled has not failed:
// nothing in the code mends it.
func gitHubState(status, conclusion, summary string) (CheckState, string) {
	if status != "completed" {
		return CheckPending, summary
	}
	switch conclusion {
	case "success":
		return CheckPassed, summary
	case "failure", "timed_out", "startup_failure":
		return CheckFailed, summary
	case "action_required": // of a person
		return CheckPending, cmp.Or(summary, "somebody has to do something first")
	}
	return CheckSkipped, cmp.Or(summary, conclusion)
}

// firstLine is the first line of a text.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(text)
}

func (g *ofGitHub) FailureLog(ctx context.Context, c Check, limit int) (string, error) {
	kind, number, _ := strings.Cut(c.ID, "/")
	id, err := strconv.ParseInt(number, 10, 64)
	var text string
	switch {
	case err != nil:
		return "", &Error{Reason: Invalid, Sentence: "There is no such check", Err: err}
	case kind == "job":
		text, err = g.jobLog(ctx, id, limit)
	case kind == "run":
		text, err = g.runOutput(ctx, id, limit)
	}
	if err = g.failed("read the log", err); ReasonOf(err) == NotFound {
		return "", nil // it is not kept for ever
	}
	return text, err
}

// jobLog reads the log of a job of Actions from its failing step on. GitHub keeps it
// elsewhere, where the credential does not go.
func (g *ofGitHub) jobLog(ctx context.Context, id int64, limit int) (string, error) {
	job, _, err := g.rest.Actions.GetWorkflowJobByID(ctx, g.owner, g.name, id)
	if err != nil {
		return "", err
	}
	window := logWindow(limit)
	request, err := g.rest.NewRequest(withTail(ctx, window), http.MethodGet, fmt.Sprintf("repos/%s/%s/actions/jobs/%d/logs", g.owner, g.name, id), nil)
	if err != nil {
		return "", err
	}
	log, err := download(g.http, request)
	if err != nil {
		return "", err
	}
	lines := logLines(log)
	for _, step := range job.Steps {
		if step.GetConclusion() != "failure" && step.GetConclusion() != "timed_out" {
			continue
		}
		from, to := step.GetStartedAt().Truncate(time.Second), step.GetCompletedAt().Truncate(time.Second)
		own := slices.DeleteFunc(slices.Clone(lines), func(l logLine) bool { return l.at.Before(from) || l.at.After(to) })
		if len(own) > 0 {
			lines = own
		}
		break
	}
	return logEnd(lines, limit), nil
}

// runOutput is what another app says of its check run.
func (g *ofGitHub) runOutput(ctx context.Context, id int64, limit int) (string, error) {
	run, _, err := g.rest.Checks.GetCheckRun(ctx, g.owner, g.name, id)
	if err != nil {
		return "", err
	}
	o := run.GetOutput()
	return logEnd(logLines([]byte(strings.Join([]string{o.GetTitle(), o.GetSummary(), o.GetText()}, "\n"))), limit), nil
}
