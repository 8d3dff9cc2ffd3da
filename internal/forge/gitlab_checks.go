package forge

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// Checks implements [Repository]. What ran for a commit are the jobs of its pipelines and
// what others reported. A pipeline of merged results ran for another commit, which only the
// merge request knows.
func (g *ofGitLab) Checks(ctx context.Context, commit string) ([]Check, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}
	var found newest
	if err := g.statuses(ctx, commit, 0, &found); err != nil {
		return nil, err
	}
	if len(found.checks) > 0 {
		return found.all(), nil
	}
	requests, _, err := g.rest.Commits.ListMergeRequestsByCommit(g.project, commit, gitlab.WithContext(ctx))
	if err = g.failed("read the checks", err); err != nil && ReasonOf(err) != NotFound {
		return nil, err
	}
	for _, one := range requests {
		if one.SHA != commit || one.State != "opened" {
			continue
		}
		mr, err := g.get(ctx, int(one.IID))
		if err != nil {
			return nil, err
		}
		if mr.SHA == commit && mr.HeadPipeline != nil && mr.HeadPipeline.SHA != commit {
			if err := g.statuses(ctx, mr.HeadPipeline.SHA, mr.HeadPipeline.ID, &found); err != nil {
				return nil, err
			}
		}
	}
	return found.all(), nil
}

// statuses finds what ran for a commit, in one pipeline or in all.
func (g *ofGitLab) statuses(ctx context.Context, commit string, pipeline int64, found *newest) error {
	all, err := gitLabPages(func(at gitlab.ListOptions) ([]*gitlab.CommitStatus, *gitlab.Response, error) {
		o := &gitlab.GetCommitStatusesOptions{ListOptions: at}
		if pipeline != 0 {
			o.PipelineID = &pipeline
		}
		return g.rest.Commits.GetCommitStatuses(g.project, commit, o, gitlab.WithContext(ctx))
	})
	if err != nil {
		return g.failed("read the checks", err)
	}
	for _, s := range all {
		c := Check{ID: strconv.FormatInt(s.ID, 10), Name: s.Name, State: CheckSkipped, URL: s.TargetURL, Summary: firstLine(s.Description)}
		switch s.Status {
		case "success":
			c.State = CheckPassed
		case "failed":
			if c.State = CheckFailed; s.AllowFailure {
				c.State, c.Summary = CheckSkipped, "it failed, and may"
			}
		case "canceled", "canceling", "skipped":
			c.Summary = s.Status
		case "manual":
			if c.Summary = "somebody may start it"; !s.AllowFailure {
				c.State, c.Summary = CheckPending, "somebody has to start it"
			}
		default: // created, preparing, pending, running, scheduled, waiting_for_…
			c.State = CheckPending
		}
		found.add(c, s.ID)
	}
	return nil
}

func (g *ofGitLab) FailureLog(ctx context.Context, c Check, limit int) (string, error) {
	id, err := strconv.ParseInt(c.ID, 10, 64)
	if err != nil {
		return "", &Error{Reason: Invalid, Sentence: "There is no such check", Err: err}
	}
	log, err := g.trace(withTail(ctx, logWindow(limit)), id)
	if err = g.failed("read the log", err); err != nil {
		if ReasonOf(err) == NotFound {
			err = nil // it has none, or none any more
		}
		return "", err
	}
	return logEnd(ownLines(logLines(log)), limit), nil
}

// trace reads the end of a job's log, which may be stored where the credential does not go.
func (g *ofGitLab) trace(ctx context.Context, job int64) ([]byte, error) {
	address := fmt.Sprintf("%s/projects/%s/jobs/%d/trace", g.api, gitlab.PathEscape(g.project), job)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	return download(g.http, request)
}

// ownLines are those of the job's own script, and the runner's last words. What else it did
// (the clone, caches, cleaning up) is in sections with other names.
func ownLines(lines []logLine) []logLine {
	const script = ":step_script\r"
	begin, end := -1, -1
	for i, l := range lines {
		if j := strings.Index(l.text, "section_start:"); j >= 0 && strings.Contains(l.text[j:], script) {
			begin = i
		}
		if j := strings.Index(l.text, "section_end:"); j >= 0 && strings.Contains(l.text[j:], script) {
			end = i
		}
	}
	if end < 0 || begin > end {
		return lines
	}
	own := lines[max(begin, 0):end:end]
	for _, l := range lines[end:] {
		if strings.Contains(l.text, "ERROR: ") {
			own = append(own, l)
		}
	}
	return own
}
