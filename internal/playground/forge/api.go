package forge

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
)

// owner is whose repositories they are: the address /forge/boathouse.git is the forge's.
const owner = "forge"

const maxBody = 8 << 20

// call is one call of the API: of whom, about which repository.
type call struct {
	*http.Request
	who  person
	name string
	repo *repository
	pull *pull
}

type answers func(*call) (any, error)

// Register serves the repositories, the API, the page and the control calls.
func (f *Forge) Register(mux *http.ServeMux) {
	mux.Handle(Root, f.faulty(f.git))
	of := "/api/v1/repos/" + owner + "/{repo}"
	for pattern, h := range map[string]answers{
		"GET /api/v1/version": func(*call) (any, error) { return map[string]string{"version": "1.26.0+playground"}, nil },
		"GET /api/v1/user":    func(c *call) (any, error) { return c.who.user(), nil },

		"GET /api/v1/user/emails": func(c *call) (any, error) {
			return []gitea.Email{{Email: c.who.Login + "@boathouse.example", Verified: true, Primary: true}}, nil
		},

		"GET " + of:                                               f.getRepo,
		"GET " + of + "/raw/{path...}":                            f.getFile,
		"GET " + of + "/branches/{branch...}":                     f.getBranch,
		"POST " + of + "/branch_protections":                      with(f.protect),
		"GET " + of + "/labels":                                   func(c *call) (any, error) { return append([]*gitea.Label{}, c.repo.Labels...), nil },
		"POST " + of + "/labels":                                  with(f.addLabel),
		"GET " + of + "/pulls":                                    f.listPulls,
		"POST " + of + "/pulls":                                   with(f.postPull),
		"GET " + of + "/pulls/{number}":                           func(c *call) (any, error) { return c.pull.PullRequest, nil },
		"PATCH " + of + "/pulls/{number}":                         with(f.patchPull),
		"POST " + of + "/pulls/{number}/merge":                    with(f.postMerge),
		"GET " + of + "/pulls/{number}/reviews":                   f.listReviews,
		"POST " + of + "/pulls/{number}/reviews":                  with(f.postReview),
		"GET " + of + "/pulls/{number}/reviews/{review}/comments": f.listComments,
		"POST " + of + "/pulls/{number}/requested_reviewers":      with(f.requestReview),
		"POST " + of + "/issues/{number}/assets":                  f.postPicture,
		"POST " + of + "/issues/{number}/comments":                with(f.postComment),
		"POST " + of + "/pulls/comments/{id}/resolve":             f.resolve,
		"POST " + of + "/statuses/{sha}":                          with(f.postStatus),
		"GET " + of + "/commits/{sha}/statuses":                   f.listStatuses,
		"GET " + of + "/actions/jobs/{id}":                        f.getJob,
		"GET " + of + "/actions/jobs/{id}/logs":                   f.getLog,
	} {
		mux.Handle(pattern, local(f.faulty(f.answering(h))))
	}
	for pattern, h := range map[string]answers{
		"GET /_control/forge/pulls":     f.listPulls,
		"POST /_control/forge/checks":   with(f.controlCheck),
		"POST /_control/forge/reviews":  with(f.controlReview),
		"POST /_control/forge/merge":    with(f.controlMerge),
		"GET /_control/forge/faults":    f.getFaults,
		"POST /_control/forge/faults":   with(f.postFaults),
		"DELETE /_control/forge/faults": f.deleteFaults,
	} {
		mux.Handle(pattern, local(f.answering(h)))
	}
	mux.Handle("GET "+pictures+"{id}", local(http.HandlerFunc(f.getPicture)))
	f.pages(mux)
}

// local keeps out other sites' pages, and names that were rebound to loopback.
func local(h http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			name = r.Host
		}
		if ip := net.ParseIP(strings.Trim(name, "[]")); name != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "the forge answers only to loopback addresses", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		h.ServeHTTP(w, r)
	}))
}

// answering serves one kind of call: who calls, about what, and the answer with its ETag.
func (f *Forge) answering(h answers) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := strings.HasPrefix(r.URL.Path, "/_control/")
		f.mu.Lock()
		defer f.mu.Unlock()
		c, err := f.about(r, control)
		var answer any
		if err == nil {
			answer, err = h(c)
		}
		status, said := http.StatusOK, "message"
		if err != nil {
			status = http.StatusInternalServerError
			if p, ok := errors.AsType[*problem](err); ok {
				status = p.status
			}
			if control {
				status, said = http.StatusBadRequest, "error"
			}
			answer = map[string]string{said: err.Error()}
		}
		raw, isText := answer.([]byte)
		if isText {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
		} else {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			if raw, err = json.Marshal(answer); err != nil {
				status, raw = http.StatusInternalServerError, nil
			}
		}
		if r.Method == http.MethodGet && status == http.StatusOK {
			etag := fmt.Sprintf(`"%x"`, sha256.Sum256(raw))
			if w.Header().Set("ETag", etag); r.Header.Get("If-None-Match") == etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		w.WriteHeader(status)
		_, _ = w.Write(raw)
	})
}

func (f *Forge) about(r *http.Request, control bool) (*call, error) {
	c := &call{Request: r, who: people[0], name: r.PathValue("repo")}
	if fields := strings.Fields(r.Header.Get("Authorization")); len(fields) > 0 {
		login, ok := strings.CutPrefix(fields[len(fields)-1], tokenPrefix)
		who, err := personOf(login)
		if !ok || err != nil {
			return nil, refuse(401, "user does not exist, or the token is wrong")
		}
		c.who = who
	}
	if control {
		c.name = "boathouse"
		if given := r.URL.Query().Get("repo"); given != "" {
			c.name = given
		}
	}
	if c.name == "" {
		return c, nil
	}
	var err error
	if c.repo, err = f.repo(c.name); err != nil {
		return nil, err
	}
	if r.PathValue("number") != "" {
		if c.pull, err = c.repo.pull(number(r.PathValue("number"))); err == nil {
			err = f.look(c.name, c.pull)
		}
	}
	return c, err
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // nothing has the number 0
	return n
}

// with hands a call's JSON to what answers it.
func with[T any](h func(*call, T) (any, error)) answers {
	return func(c *call) (any, error) {
		var o T
		if err := json.NewDecoder(c.Body).Decode(&o); err != nil {
			return nil, refuse(422, "the body is not the JSON that is expected: %v", err)
		}
		return h(c, o)
	}
}

func (f *Forge) getRepo(c *call) (any, error) {
	branch, err := f.in(c.name, "symbolic-ref", "--short", "HEAD")
	return &gitea.Repository{
		ID: 1, Name: c.name, FullName: owner + "/" + c.name, Owner: &gitea.User{UserName: owner}, DefaultBranch: branch,
		HTMLURL: f.url() + Root + c.name, CloneURL: f.url() + Root + c.name + ".git",
		Permissions: &gitea.Permission{Pull: true, Push: c.who.writes, Admin: c.who.admin},
	}, err
}

func (f *Forge) getFile(c *call) (any, error) {
	at, err := f.commit(c.name, c.URL.Query().Get("ref"))
	if err != nil {
		return nil, err
	}
	text, err := output(nil, "-C", f.path(c.name), "cat-file", "blob", at+":"+c.PathValue("path"))
	if err != nil {
		return nil, refuse(404, "there is no file %q", c.PathValue("path"))
	}
	return []byte(text), nil
}

func (f *Forge) getBranch(c *call) (any, error) {
	branch := c.PathValue("branch")
	at, err := f.commit(c.name, branch)
	rule, protected := c.repo.Rules[branch]
	return &gitea.Branch{
		Name: branch, Commit: &gitea.PayloadCommit{ID: at}, Protected: protected, RequiredApprovals: rule.Approvals,
		EnableStatusCheck: rule.StatusChecks, StatusCheckContexts: rule.Contexts, UserCanPush: c.who.writes, UserCanMerge: c.who.writes,
	}, err
}

func (f *Forge) protect(c *call, o gitea.CreateBranchProtectionOption) (any, error) {
	if !c.who.admin {
		return nil, refuse(403, "%s may not protect branches", c.who.Name)
	}
	if c.repo.Rules == nil {
		c.repo.Rules = map[string]rule{}
	}
	c.repo.Rules[o.RuleName] = rule{o.RequiredApprovals, o.EnableStatusCheck, o.StatusCheckContexts}
	return &gitea.BranchProtection{RuleName: o.RuleName}, f.save()
}

func (f *Forge) addLabel(c *call, o gitea.CreateLabelOption) (any, error) {
	if !c.who.writes {
		return nil, refuse(403, "%s may not make labels", c.who.Name)
	}
	l := &gitea.Label{ID: c.repo.next(), Name: o.Name, Color: strings.TrimPrefix(o.Color, "#")}
	c.repo.Labels = append(c.repo.Labels, l)
	return l, f.save()
}

func (f *Forge) listPulls(c *call) (any, error) {
	list, state := []*gitea.PullRequest{}, c.URL.Query().Get("state")
	for _, p := range slices.Backward(c.repo.Pulls) {
		if state == "open" && p.State != gitea.StateOpen || state == "closed" && p.State == gitea.StateOpen {
			continue
		}
		if err := f.look(c.name, p); err != nil {
			return nil, err
		}
		list = append(list, p.PullRequest)
	}
	return list, nil
}

func (f *Forge) postPull(c *call, o gitea.CreatePullRequestOption) (any, error) {
	p, err := f.openPull(c.name, c.repo, c.who, o)
	if err != nil {
		return nil, err
	}
	return p.PullRequest, f.save()
}

func (f *Forge) patchPull(c *call, o gitea.EditPullRequestOption) (any, error) {
	if err := f.edit(c.pull, c.who, o); err != nil {
		return nil, err
	}
	return c.pull.PullRequest, f.look(c.name, c.pull)
}

func (f *Forge) postMerge(c *call, o gitea.MergePullRequestOption) (any, error) {
	return []byte{}, f.merge(c.name, c.repo, c.pull, c.who, o)
}

func (f *Forge) listReviews(c *call) (any, error) {
	list := []*gitea.PullReview{}
	for _, v := range c.pull.Reviews {
		list = append(list, v.PullReview)
	}
	return list, nil
}

func (f *Forge) postReview(c *call, o gitea.CreatePullReviewOptions) (any, error) {
	return f.addReview(c.name, c.repo, c.pull, c.who, o)
}

func (f *Forge) listComments(c *call) (any, error) {
	for _, v := range c.pull.Reviews {
		if v.ID == number(c.PathValue("review")) {
			return append([]*gitea.PullReviewComment{}, v.Comments...), nil
		}
	}
	return nil, refuse(404, "there is no such review")
}

func (f *Forge) requestReview(c *call, o gitea.PullReviewRequestOptions) (any, error) {
	for _, login := range o.Reviewers {
		who, err := personOf(login)
		if err != nil || login == c.pull.Poster.UserName {
			return nil, refuse(422, "%s cannot review it", login)
		}
		if !slices.ContainsFunc(c.pull.RequestedReviewers, func(u *gitea.User) bool { return u.UserName == login }) {
			c.pull.RequestedReviewers = append(c.pull.RequestedReviewers, who.user())
		}
	}
	return []any{}, f.save()
}

func (f *Forge) resolve(c *call) (any, error) {
	for _, p := range c.repo.Pulls {
		for _, v := range p.Reviews {
			for _, m := range v.Comments {
				if m.ID == number(c.PathValue("id")) {
					m.Resolver = c.who.user()
					return []byte{}, f.save()
				}
			}
		}
	}
	return nil, refuse(404, "there is no such comment")
}

// pictures is where those are that were uploaded for pull requests.
const pictures = "/attachments/"

func (f *Forge) picture(id string) string { return filepath.Join(f.dir, "attachments", id) }

func (f *Forge) postPicture(c *call) (any, error) {
	if !c.who.writes {
		return nil, refuse(403, "%s may not upload pictures", c.who.Name)
	}
	file, header, err := c.FormFile("attachment")
	if err != nil {
		return nil, refuse(422, "there is no attachment: %v", err)
	}
	defer file.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(file)
	if err == nil && http.DetectContentType(raw) != "image/png" {
		err = refuse(422, "it is no PNG")
	}
	id := rand.Text()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(f.picture(id)), 0o700)
	}
	if err == nil {
		err = os.WriteFile(f.picture(id), raw, 0o600)
	}
	return &gitea.Attachment{ID: c.repo.next(), Name: header.Filename, Size: int64(len(raw)), UUID: id, DownloadURL: f.url() + pictures + id}, err
}

func (f *Forge) getPicture(w http.ResponseWriter, r *http.Request) {
	raw, err := os.ReadFile(f.picture(filepath.Base(r.PathValue("id"))))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(raw)
}

func (f *Forge) postComment(c *call, o gitea.CreateIssueCommentOption) (any, error) {
	m := &gitea.Comment{ID: c.repo.next(), Poster: c.who.user(), Body: o.Body, Created: time.Now()}
	c.pull.Talk = append(c.pull.Talk, m)
	return m, f.save()
}

func (f *Forge) postStatus(c *call, o gitea.CreateStatusOption) (any, error) {
	return f.addStatus(c.name, c.repo, c.who, c.PathValue("sha"), "", o)
}

func (f *Forge) listStatuses(c *call) (any, error) {
	list := []*gitea.Status{}
	for _, s := range slices.Backward(c.repo.Statuses) { // each run of each check, as Gitea
		if s.Commit == c.PathValue("sha") {
			list = append(list, s.Status)
		}
	}
	return list, nil
}

// job returns the check of a call: those that have a log are jobs, as of Gitea's own.
func (f *Forge) job(c *call) (*status, error) {
	for _, s := range c.repo.Statuses {
		if s.ID == number(c.PathValue("id")) && s.Log != "" {
			return s, nil
		}
	}
	return nil, refuse(404, "there is no such job")
}

func (f *Forge) getJob(c *call) (any, error) {
	s, err := f.job(c)
	if err != nil {
		return nil, err
	}
	return &gitea.ActionWorkflowJob{ID: s.ID, RunID: s.ID, Name: s.Context, HeadSha: s.Commit, HTMLURL: f.url() + s.TargetURL}, nil
}

func (f *Forge) getLog(c *call) (any, error) {
	s, err := f.job(c)
	if err != nil {
		return nil, err
	}
	return []byte(s.Log), nil
}

// The control calls are in the name of the person that they say.

func (f *Forge) controlCheck(c *call, o checked) (any, error) {
	at, err := f.commit(c.name, o.Branch)
	if err != nil {
		return nil, err
	}
	return f.addStatus(c.name, c.repo, people[1], at, o.Log, gitea.CreateStatusOption{State: gitea.StatusState(o.State), Context: o.Name, Description: o.Summary})
}

// checked is what a control call says of a check.
type checked struct{ Branch, Name, State, Summary, Log string }

// controlled is what the control calls say of a pull request.
type controlled struct {
	Number                    int64
	User, Verdict, Body, Path string
	Line                      int64
}

func (f *Forge) controlled(c *call, o controlled) (err error) {
	if c.who, err = personOf(o.User); err == nil {
		c.pull, err = c.repo.pull(o.Number)
	}
	return err
}

func (f *Forge) controlReview(c *call, o controlled) (any, error) {
	if err := f.controlled(c, o); err != nil {
		return nil, err
	}
	return f.addReview(c.name, c.repo, c.pull, c.who, reviewOf(o))
}

// reviewOf is a review as people give it: its text is about a line, if one is said.
func reviewOf(o controlled) gitea.CreatePullReviewOptions {
	r := gitea.CreatePullReviewOptions{State: map[string]gitea.ReviewStateType{
		"approved": gitea.ReviewStateApproved, "changes_requested": gitea.ReviewStateRequestChanges, "commented": gitea.ReviewStateComment,
	}[o.Verdict], Body: o.Body}
	if r.State == "" {
		r.State = gitea.ReviewStateType(strings.ToUpper(o.Verdict))
	}
	if o.Path != "" {
		r.Body, r.Comments = "", []gitea.CreatePullReviewComment{{Path: o.Path, Body: o.Body, NewLineNum: o.Line}}
	}
	return r
}

func (f *Forge) controlMerge(c *call, o controlled) (any, error) {
	if err := f.controlled(c, o); err != nil {
		return nil, err
	}
	return c.pull.PullRequest, f.merge(c.name, c.repo, c.pull, c.who, gitea.MergePullRequestOption{Style: gitea.MergeStyleMerge})
}
