package forge

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"code.gitea.io/sdk/gitea"
)

const (
	maxPages = 20 // of 50
	// settling is how long Gitea may take to find out whether branches conflict: until then it
	// says of both that they cannot be merged.
	settling = 5 * time.Second
	// checking is what it says then to whoever merges, also when the base has just moved.
	checking = "Please try again later"
	// mergeTries is how often a merge is tried while it says so, with a fifth of settling between.
	mergeTries = 30
	// wip begins the title of a draft: Gitea has no other sign of it.
	wip = "WIP: "
)

// ofGitea is a repository at Gitea or Forgejo.
type ofGitea struct {
	client      *http.Client
	root        string // the API's address, without /api/v1
	host        string
	owner, name string

	mu        sync.Mutex
	unmerged  map[int]unmerged
	settledIn time.Duration
}

// unmerged is since when a pull request with these commits cannot be merged.
type unmerged struct {
	head, base string
	since      time.Time
}

func newGitea(c Config) (Repository, error) {
	at, err := locate(c)
	if err != nil {
		return nil, err
	}
	return &ofGitea{
		client: newClient(c, at.api), root: strings.TrimSuffix(at.api.String(), "/api/v1"), host: at.api.Host, owner: at.path[0], name: at.path[1],
		unmerged: map[int]unmerged{}, settledIn: settling,
	}, nil
}

// api returns the client of one call. The versions that it could look for are those of
// Gitea; Forgejo's are its own.
func (g *ofGitea) api(ctx context.Context) *gitea.Client {
	api, err := gitea.NewClient(g.root, gitea.SetContext(ctx), gitea.SetHTTPClient(g.client), gitea.SetGiteaVersion(""))
	if err != nil {
		panic(err) // it makes no call without a version to look for
	}
	return api
}

// pages calls for page after page, until the last.
func pages[T any](call func(gitea.ListOptions) ([]T, *gitea.Response, error)) ([]T, error) {
	var all []T
	for page := 1; page <= maxPages; {
		some, response, err := call(gitea.ListOptions{Page: page, PageSize: 50})
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if response.NextPage <= page {
			break
		}
		page = response.NextPage
	}
	return all, nil
}

func (g *ofGitea) Me(ctx context.Context) (Account, error) {
	user, _, err := g.api(ctx).GetMyUserInfo()
	if err != nil {
		return Account{}, failed("ask whose credential it is", g.host, err)
	}
	return Account{ID: user.ID, Login: user.UserName}, nil
}

func (g *ofGitea) DefaultBranch(ctx context.Context) (string, error) {
	repository, _, err := g.api(ctx).GetRepo(g.owner, g.name)
	if err != nil {
		return "", failed("read the repository", g.host, err)
	}
	return repository.DefaultBranch, nil
}

func (g *ofGitea) Template(ctx context.Context) (string, error) {
	branch, err := g.DefaultBranch(ctx)
	if err != nil {
		return "", err
	}
	var files []string
	for _, dir := range []string{"", ".gitea", ".forgejo", ".github"} {
		files = append(files, path.Join(dir, "PULL_REQUEST_TEMPLATE.md"), path.Join(dir, "pull_request_template.md"))
	}
	text, err := g.first(ctx, branch, files)
	if rest, ok := strings.CutPrefix(text, "---\n"); ok { // a title and a description for Gitea's own page
		if _, after, ok := strings.Cut(rest, "\n---\n"); ok {
			text = after
		}
	}
	return text, err
}

func (g *ofGitea) CodeOwners(ctx context.Context, branch string) (string, error) {
	if _, _, err := g.api(ctx).GetRepoBranch(g.owner, g.name, branch); err != nil {
		return "", failed("read the branch", g.host, err)
	}
	return g.first(ctx, branch, []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS", ".github/CODEOWNERS"})
}

// first returns the first of the files that a branch has, empty if it has none.
func (g *ofGitea) first(ctx context.Context, branch string, files []string) (string, error) {
	for _, file := range files {
		text, _, err := g.api(ctx).GetFile(g.owner, g.name, branch, file)
		if err == nil {
			return string(text), nil
		}
		if ReasonOf(err) != NotFound {
			return "", failed("read "+file, g.host, err)
		}
	}
	return "", nil
}

func (g *ofGitea) Open(ctx context.Context, p NewPull) (Pull, error) {
	already, err := g.Find(ctx, p.Branch)
	if err == nil {
		return Pull{}, exists(already.Number, p.Branch, nil)
	}
	if ReasonOf(err) != NotFound {
		return Pull{}, err
	}
	labels, without, err := g.labels(ctx, p.Labels)
	if err != nil {
		return Pull{}, err
	}
	title := p.Title
	if p.Draft && !isDraft(title) {
		title = wip + title
	}
	opened, _, err := g.api(ctx).CreatePullRequest(g.owner, g.name, gitea.CreatePullRequestOption{
		Title: title, Body: p.Body, Head: p.Branch, Base: p.Base, Labels: labels,
	})
	if r := refusalOf(err); r != nil && r.status == http.StatusConflict {
		return Pull{}, exists(0, p.Branch, err)
	}
	if err != nil {
		return Pull{}, failed("open a pull request", g.host, err)
	}
	pull := g.pull(opened)
	pull.Unlabelled = without
	for _, reviewer := range p.Reviewers {
		o := gitea.PullReviewRequestOptions{Reviewers: []string{reviewer}}
		if _, team, ok := strings.Cut(reviewer, "/"); ok {
			o = gitea.PullReviewRequestOptions{TeamReviewers: []string{team}}
		}
		// It is open by now, whatever the reason.
		if _, err := g.api(ctx).CreateReviewRequests(g.owner, g.name, opened.Index, o); err != nil {
			pull.Unasked = append(pull.Unasked, reviewer)
		}
	}
	return pull, nil
}

func exists(number int, branch string, err error) error {
	sentence := "There is an open pull request from " + branch + " already"
	if number > 0 {
		sentence += fmt.Sprintf(": #%d", number)
	}
	return &Error{Reason: Exists, Sentence: sentence, Err: err}
}

// labels returns the ids of the labels that the repository has, and the names of the others.
func (g *ofGitea) labels(ctx context.Context, wanted []string) (ids []int64, without []string, err error) {
	if len(wanted) == 0 {
		return nil, nil, nil
	}
	all, err := pages(func(o gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return g.api(ctx).ListRepoLabels(g.owner, g.name, gitea.ListLabelsOptions{ListOptions: o})
	})
	if err != nil {
		return nil, nil, failed("read the labels", g.host, err)
	}
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
	}
	there, without := known(wanted, names)
	for _, l := range all {
		if slices.Contains(there, l.Name) {
			ids = append(ids, l.ID)
		}
	}
	return ids, without, nil
}

func (g *ofGitea) Find(ctx context.Context, branch string) (Pull, error) {
	open, err := pages(func(o gitea.ListOptions) ([]*gitea.PullRequest, *gitea.Response, error) {
		return g.api(ctx).ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{ListOptions: o, State: gitea.StateOpen})
	})
	if err != nil {
		return Pull{}, failed("look for the pull request", g.host, err)
	}
	for _, p := range open {
		if p.Head != nil && p.Base != nil && p.Head.Ref == branch && p.Head.RepoID == p.Base.RepoID {
			return g.pull(p), nil
		}
	}
	return Pull{}, &Error{Reason: NotFound, Sentence: "There is no open pull request from " + branch}
}

func (g *ofGitea) Pull(ctx context.Context, number int) (Pull, error) {
	got, _, err := g.api(ctx).GetPullRequest(g.owner, g.name, int64(number))
	if err != nil {
		return Pull{}, failed("read the pull request", g.host, err)
	}
	p := g.pull(got)
	if p.Mergeable == MergeClean {
		blocked, err := g.blocked(ctx, p)
		if err != nil {
			return Pull{}, err
		}
		if blocked {
			p.Mergeable = MergeBlocked
		}
	}
	return p, nil
}

// blocked looks at what a protected branch requires, as far as Gitea tells those who may not
// administer it.
func (g *ofGitea) blocked(ctx context.Context, p Pull) (bool, error) {
	base, _, err := g.api(ctx).GetRepoBranch(g.owner, g.name, p.Base)
	if err != nil {
		return false, failed("read the branch", g.host, err)
	}
	if !base.UserCanMerge {
		return true, nil
	}
	if base.RequiredApprovals > 0 {
		reviews, err := g.reviews(ctx, p.Number)
		if err != nil {
			return false, err
		}
		approvals := map[string]bool{}
		for _, r := range reviews {
			if r.Official && r.Reviewer != nil && (r.State == gitea.ReviewStateApproved || r.State == gitea.ReviewStateRequestChanges) {
				approvals[r.Reviewer.UserName] = r.State == gitea.ReviewStateApproved
			}
		}
		granted := int64(0)
		for _, yes := range approvals {
			if yes {
				granted++
			}
		}
		if granted < base.RequiredApprovals {
			return true, nil
		}
	}
	if !base.EnableStatusCheck {
		return false, nil
	}
	checks, err := g.Checks(ctx, p.Head)
	if err != nil {
		return false, err
	}
	required := func(c Check, pattern string) bool {
		ok, err := path.Match(pattern, c.Name)
		return c.Name == pattern || ok && err == nil
	}
	for _, pattern := range base.StatusCheckContexts {
		if !slices.ContainsFunc(checks, func(c Check) bool { return required(c, pattern) }) {
			return true, nil
		}
	}
	return slices.ContainsFunc(checks, func(c Check) bool {
		counts := len(base.StatusCheckContexts) == 0 || slices.ContainsFunc(base.StatusCheckContexts, func(p string) bool { return required(c, p) })
		return counts && (c.State == CheckFailed || c.State == CheckPending)
	}), nil
}

// pull turns Gitea's words into ours. Its title is without the beginning that makes a draft, as the others' are.
func (g *ofGitea) pull(p *gitea.PullRequest) Pull {
	ours := Pull{
		Number: int(p.Index), URL: p.HTMLURL, Title: readyTitle(p.Title), Body: p.Body,
		State: Open, Draft: p.Draft || isDraft(p.Title), Author: login(p.Poster),
	}
	if p.Head != nil {
		ours.Branch, ours.Head = p.Head.Ref, p.Head.Sha
	}
	if p.Base != nil {
		ours.Base = p.Base.Ref
	}
	switch {
	case p.HasMerged:
		ours.State, ours.MergedBy = Merged, login(p.MergedBy)
		if p.MergedCommitID != nil {
			ours.MergedCommit = *p.MergedCommitID
		}
	case p.State == gitea.StateClosed:
		ours.State = Closed
	}
	ours.Mergeable = g.mergeable(p, ours)
	return ours
}

// mergeable tells a conflict from what Gitea has not found out yet, by time.
func (g *ofGitea) mergeable(p *gitea.PullRequest, ours Pull) Mergeable {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ours.State != Open || p.Mergeable || ours.Draft || p.Base == nil {
		delete(g.unmerged, ours.Number)
		if ours.State == Open && p.Mergeable {
			return MergeClean
		}
		return MergeUnknown // of a draft it does not tell
	}
	seen := g.unmerged[ours.Number]
	if seen.head != ours.Head || seen.base != p.Base.Sha {
		seen = unmerged{head: ours.Head, base: p.Base.Sha, since: time.Now()}
		g.unmerged[ours.Number] = seen
	}
	if time.Since(seen.since) < g.settledIn {
		return MergeUnknown
	}
	return MergeConflict
}

func (g *ofGitea) MarkReady(ctx context.Context, number int) error {
	got, _, err := g.api(ctx).GetPullRequest(g.owner, g.name, int64(number))
	if err != nil {
		return failed("read the pull request", g.host, err)
	}
	title := readyTitle(got.Title)
	if title == got.Title {
		return nil
	}
	_, _, err = g.api(ctx).EditPullRequest(g.owner, g.name, int64(number), gitea.EditPullRequestOption{Title: title})
	return failed("mark the pull request as ready", g.host, err)
}

// isDraft goes by the beginnings of a title that Gitea has in its settings, unless somebody
// changed them.
func isDraft(title string) bool {
	title = strings.ToUpper(title)
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// readyTitle is a title without what makes a draft.
func readyTitle(title string) string {
	for isDraft(title) {
		title = strings.TrimSpace(title[strings.IndexAny(title, ":]")+1:])
	}
	return title
}

func (g *ofGitea) Merge(ctx context.Context, number int, m NewMerge) (string, error) {
	for tries := 1; ; tries++ { // its own calls may take longer than the waits between them
		commit, err := g.merge(ctx, number, m)
		if r := refusalOf(err); r == nil || r.message != checking || tries == mergeTries {
			return commit, err
		}
		now, lookErr := g.Pull(ctx, number)
		if lookErr != nil || now.State != Open || now.Head != m.Head || now.Mergeable == MergeConflict {
			return commit, err
		}
		select {
		case <-time.After(g.settledIn / 5):
		case <-ctx.Done():
			return commit, err
		}
	}
}

func (g *ofGitea) merge(ctx context.Context, number int, m NewMerge) (string, error) {
	_, _, err := g.api(ctx).MergePullRequest(g.owner, g.name, int64(number), gitea.MergePullRequestOption{
		Style: gitea.MergeStyle(m.Method), HeadCommitId: m.Head, Title: m.Title, Message: m.Message,
	})
	if r := refusalOf(err); r != nil {
		e := &Error{Err: err}
		switch {
		case r.status == http.StatusConflict && strings.Contains(r.message, "head out of date"):
			e.Reason, e.Sentence = Moved, "The branch has other commits by now. Look at them first"
		case r.status == http.StatusConflict:
			e.Reason, e.Sentence = Blocked, "The branches conflict, or the base moved meanwhile. Bring the branch up to date, and merge then"
		case r.status == http.StatusMethodNotAllowed && strings.Contains(r.message, "not allowed to merge"):
			e.Reason, e.Sentence = Denied, "The account of this credential may not merge at "+g.host
		case r.status == http.StatusMethodNotAllowed:
			e.Reason, e.Sentence = Blocked, g.host+" does not let it be merged"
			if r.message != "" {
				e.Sentence += ": " + r.message
			}
			// It looks at its own rules first; who named another commit hears that.
			if now, lookErr := g.Pull(ctx, number); lookErr == nil && now.State == Open && now.Head != m.Head {
				e.Reason, e.Sentence = Moved, "The branch has other commits by now. Look at them first"
			}
		default:
			return "", failed("merge the pull request", g.host, err)
		}
		return "", failed("merge the pull request", g.host, e)
	}
	if err != nil {
		return "", failed("merge the pull request", g.host, err)
	}
	merged, err := g.Pull(ctx, number)
	return merged.MergedCommit, err
}

func login(u *gitea.User) string {
	if u == nil {
		return ""
	}
	return u.UserName
}
