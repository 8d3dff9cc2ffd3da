package forge

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"
)

func (g *ofGitea) Checks(ctx context.Context, commit string) ([]Check, error) {
	all, err := pages(func(o gitea.ListOptions) ([]*gitea.Status, *gitea.Response, error) {
		return g.api(ctx).ListStatuses(g.owner, g.name, commit, gitea.ListStatusesOption{ListOptions: o})
	})
	if err != nil {
		return nil, failed("read the checks", g.host, err)
	}
	var found newest
	for _, s := range all {
		c := Check{ID: strconv.FormatInt(s.ID, 10), Name: s.Context, URL: s.TargetURL, Summary: s.Description, State: CheckSkipped}
		switch s.State {
		case gitea.StatusPending:
			c.State = CheckPending
		case gitea.StatusSuccess:
			c.State = CheckPassed
		case gitea.StatusFailure, gitea.StatusError:
			c.State = CheckFailed
		case gitea.StatusWarning: // as skipped: no yes, no no
		}
		if root, err := url.Parse(g.root + "/"); err == nil && c.URL != "" {
			if u, err := root.Parse(c.URL); err == nil { // Gitea's own have no host
				c.URL = u.String()
			}
		}
		found.add(c, s.ID)
	}
	return found.all(), nil
}

func (g *ofGitea) FailureLog(ctx context.Context, c Check, limit int) (string, error) {
	// Jobs of Gitea's own: …/owner/name/actions/runs/7/jobs/31. Other checks keep their logs
	// elsewhere.
	of := g.root + "/" + g.owner + "/" + g.name + "/actions/runs/"
	rest, ok := strings.CutPrefix(strings.ToLower(c.URL), strings.ToLower(of))
	_, job, found := strings.Cut(rest, "/jobs/")
	id, err := strconv.ParseInt(job, 10, 64)
	if !ok || !found || err != nil || limit <= 0 {
		return "", nil
	}
	// Before 1.26 the numbers in the address are others than the API's.
	known, _, err := g.api(ctx).GetRepoActionJob(g.owner, g.name, id)
	if err == nil && !strings.HasSuffix(strings.ToLower(known.HTMLURL), "/actions/runs/"+rest) || ReasonOf(err) == NotFound {
		return "", nil
	}
	if err != nil {
		return "", failed("read the job", g.host, err)
	}
	log, _, err := g.api(withTail(ctx, limit)).GetRepoActionJobLogs(g.owner, g.name, id)
	if ReasonOf(err) == NotFound {
		return "", nil
	}
	if err != nil {
		return "", failed("read the log", g.host, err)
	}
	return strings.ToValidUTF8(string(log), ""), nil
}
