// Package pulls has threads' work become pull requests: it opens them, tells sessions and people
// how they stand, merges them, and has what is wrong with them become work again.
//
// What sessions ask for they ask by tools (see [Service.Tools]); people decide by a card that is
// made of [Service.Look]. The bot itself pushes and calls the forge: nothing that opens it is in
// a sandbox. What is known of a pull request is a row of the database. A job for each open one
// asks the forge again and again, on whichever replica; opening is done over where a bot died
// within it, and doubles nothing: a branch that is pushed already is, and one pull request is
// open from a branch.
package pulls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/agent/tools"
	"deckhand/internal/forge"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Store is what is remembered: [*store.Store], which tells what each method does.
type Store interface {
	CallAllowed(ctx context.Context, threadID int64, toolUseID string) (approvals.Approval, error)
	ThreadByID(ctx context.Context, id int64) (threads.Thread, error)
	PullByID(ctx context.Context, id int64) (forges.Pull, error)
	PullOfThread(ctx context.Context, threadID int64, further string) (forges.Pull, error)
	OpenedPull(ctx context.Context, p forges.Pull, due time.Duration, told ...audit.Entry) (forges.Pull, error)
	PullChanged(ctx context.Context, p forges.Pull, changed bool, told ...audit.Entry) error
	MergingPull(ctx context.Context, id int64, approvalID string) error
	WakePull(ctx context.Context, p forges.Pull, most int, uuid, text string) (bool, error)
	Audit(ctx context.Context, entries ...audit.Entry) error
	ApprovalByID(ctx context.Context, id string) (approvals.Approval, error)
	Schedule(ctx context.Context, jobs ...pg.Job) error
	PollPulls(ctx context.Context, project string, numbers []int, commits []string) error
}

// People are those whom a pull request names.
type People interface {
	// NameOf is somebody's name, and LinkTo leads to a thread; empty if nobody knows.
	NameOf(ctx context.Context, user string) string
	LinkTo(k threads.ThreadKey) string
	// AuthorOf is the name and the address of somebody, as their profile has them.
	AuthorOf(ctx context.Context, user string) (name, email string)
	// MayAsk reports whether somebody may give work in a thread now.
	MayAsk(ctx context.Context, user string, t threads.Thread) bool
}

// Pusher has what becomes of a thread at the forge: its branch, and pictures of its page. It is
// [*place.Host], which tells what each method does.
type Pusher interface {
	Push(ctx context.Context, t threads.Thread, p place.Project, token, old, commit string) (pushed string, err error)
	Changed(ctx context.Context, t threads.Thread, p place.Project, base string) ([]string, error)
	Pictures(t threads.Thread) (p place.Pictures, ok bool)
	PicturesShown(t threads.Thread, p place.Pictures) error
}

// Accounts are people's own at forges: [*accounts.Service], which tells what each method does.
type Accounts interface {
	Token(ctx context.Context, team, user, host string) (string, error)
	Client(team, user, host, token string) *http.Client
}

// Config is what a service needs.
type Config struct {
	Store    Store
	People   People
	Pusher   Pusher
	Accounts Accounts
	Projects map[string]place.Project
	// Every is how often the forge is asked about a pull request that has changed lately.
	Every time.Duration
	Show  func(pullID string)
	Wake  func(threadID int64)
	Log   *zap.Logger
}

// Service opens and keeps pull requests. Its methods are safe for concurrent use.
type Service struct {
	Config
	patience time.Duration
	mu       sync.Mutex
	repos    map[[2]string]forge.Repository // by project and repository
}

// New returns a service.
func New(c Config) *Service {
	c.Every = cmp.Or(c.Every, 30*time.Second)
	return &Service{Config: c, patience: patience, repos: map[[2]string]forge.Repository{}}
}

// repository is one of a project's at its forge, by its short name, with the project in it. It remembers answers, and
// is kept.
func (s *Service) repository(project, name string) (place.Project, forge.Repository, error) {
	p, err := s.Projects[project].In(name)
	if err != nil {
		return p, nil, err
	}
	if !p.OpensPulls() {
		what := "project " + project
		if p.Of != "" {
			what = "the repository " + p.Of + " of " + what
		}
		return p, nil, fmt.Errorf("%s has no forge whose pull requests Deckhand can open; write pull_requests in deckhand.yaml", what)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{project, p.Of}
	if r := s.repos[key]; r != nil {
		return p, r, nil
	}
	r, err := p.Repository()
	if err == nil {
		s.repos[key] = r
	}
	return p, r, err
}

// of is a thread with one of its project's repositories.
func (s *Service) of(ctx context.Context, threadID int64, name string) (t threads.Thread, p place.Project, r forge.Repository, err error) {
	if t, err = s.Store.ThreadByID(ctx, threadID); err != nil {
		return t, p, nil, err
	}
	p, r, err = s.repository(t.Project, name)
	return t, p, r, err
}

// as is the thread's project as somebody has it who asks for something: with their own token, if
// they have connected an account, and else the bot's where the project lets it.
func (s *Service) as(ctx context.Context, threadID int64, name, user string) (t threads.Thread, p place.Project, r forge.Repository, token string, err error) {
	if t, p, r, err = s.of(ctx, threadID, name); err != nil {
		return t, p, r, "", err
	}
	host := p.ForgeHost()
	if token, err = s.Accounts.Token(ctx, t.TeamID, user, host); err != nil {
		return t, p, nil, "", fmt.Errorf("nothing was done at the forge for %s: %w", s.People.NameOf(ctx, user), err)
	}
	switch {
	case token != "":
		r, err = p.RepositoryAs(token, s.Accounts.Client(t.TeamID, user, host, token))
	case p.PullRequests.AsPerson:
		err = fmt.Errorf("project %s acts at the forge in people's own names alone, and %s has connected no account at %s. Ask them to write “connect” to Deckhand, and to ask again", p.Name, s.People.NameOf(ctx, user), host)
	}
	return t, p, r, token, err
}

// opening is the input of open_pull_request.
type opening struct {
	Title     string   `json:"title"`
	Body      string   `json:"body"`
	Draft     *bool    `json:"draft"`
	Base      string   `json:"base"`
	Labels    []string `json:"labels"`
	Reviewers []string `json:"reviewers"`
	where
}

// where is the part of a tool's input that names a repository.
type where struct {
	Repository string `json:"repository,omitempty"`
}

// target is where a pull request of the thread would go, or the one that is open.
func (s *Service) target(ctx context.Context, t threads.Thread, p place.Project, r forge.Repository, in opening) (*forges.PushPull, *forge.Pull, error) {
	branch := t.Branch
	open, err := r.Find(ctx, branch)
	switch {
	case err == nil:
		return &forges.PushPull{Number: open.Number, URL: open.URL, Title: open.Title, Branch: branch, Base: open.Base, Draft: open.Draft}, &open, nil
	case forge.ReasonOf(err) != forge.NotFound:
		return nil, nil, err
	}
	if strings.TrimSpace(in.Title) == "" {
		return nil, nil, errors.New("a pull request has a title")
	}
	base := in.Base
	if p.Of == "" {
		base = cmp.Or(base, t.Base)
	}
	base = cmp.Or(base, strings.TrimPrefix(p.Base, "origin/"))
	if base == "" || base == "HEAD" {
		if base, err = r.DefaultBranch(ctx); err != nil {
			return nil, nil, err
		}
	}
	draft := !p.PullRequests.Ready
	if in.Draft != nil {
		draft = *in.Draft
	}
	return &forges.PushPull{Title: in.Title, Branch: branch, Base: base, Draft: draft}, nil, nil
}

// open pushes the thread's branch and opens a pull request from it, or brings the one that is
// open up to date.
func (s *Service) open(ctx context.Context, c tools.Call, in opening) (string, error) {
	a := c.Approval
	t, p, r, token, err := s.as(ctx, c.ThreadID, in.Repository, a.RequestedBy)
	if err != nil {
		return "", err
	}
	to, found, err := s.target(ctx, t, p, r, in)
	if err != nil {
		return "", err
	}
	old, commit := "", "" // where a rule allows it, whatever the thread has
	if a.Push != nil && len(a.Push.Refs) == 1 {
		old, commit = a.Push.Refs[0].Old, a.Push.Refs[0].New
	}
	url := p.Forge[0]
	event := gitway.Event{Push: true, Repository: url, ToolUse: a.ToolUseID, Refs: []gitway.Ref{{Name: "refs/heads/" + to.Branch, Old: old, New: commit}}}
	pushed, err := s.Pusher.Push(ctx, t, p, token, old, commit)
	event.Refs[0].New = cmp.Or(pushed, commit)
	if err != nil {
		event.Refs[0].Refused = err.Error()
	}
	entry := place.GitEntry(t.TeamID, t.ID, event)
	entry.TurnID, entry.ApprovalID = a.TurnID, a.ID
	if audited := s.Store.Audit(ctx, entry); audited != nil {
		return "", audited
	}
	if errors.Is(err, place.ErrMoved) {
		return "", errors.New("the branch has moved since this was approved, in the thread or at the forge: it is another push. Call the tool again, and people are asked about what it is now")
	}
	if err != nil {
		return "", err
	}
	if found != nil {
		return s.remembered(ctx, t, p, r, *found, pushed, "pushed", a)
	}
	var reviewers []string
	if a.Push != nil && a.Push.Pull != nil { // as people were shown, and what they have added
		reviewers = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(a.Push.Pull.Reviewers), in.Reviewers...))))
	} else { // a rule allows it
		files, err := s.Pusher.Changed(ctx, t, p, to.Base)
		if err != nil {
			s.Log.Warn("find out which files a pull request changes", zap.Error(err))
		}
		reviewers = s.reviewers(ctx, r, to.Base, files, in.Reviewers)
	}
	if err := s.Store.Schedule(ctx, pg.Job{Args: forges.PullOpened{ApprovalID: a.ID}, At: time.Now().Add(4 * s.Every)}); err != nil {
		return "", err
	}
	pull, err := r.Open(ctx, forge.NewPull{
		Title: to.Title, Body: s.body(ctx, t, p, r, in.Body, a), Branch: to.Branch, Base: to.Base, Draft: to.Draft,
		Labels: append(in.Labels, p.PullRequests.Labels...), Reviewers: reviewers,
	})
	if forge.ReasonOf(err) == forge.Exists || forge.ReasonOf(err) == forge.Unavailable { // an answer may be lost
		if there, findErr := r.Find(ctx, to.Branch); findErr == nil {
			pull, err = there, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("the branch %s is pushed, and the pull request is not opened: %w. Call the tool again: it goes on from there", to.Branch, err)
	}
	return s.remembered(ctx, t, p, r, pull, pushed, "opened", a)
}

// remembered writes a pull request down, shows it the pictures that it is to have, and says so to
// the model.
func (s *Service) remembered(ctx context.Context, t threads.Thread, p place.Project, r forge.Repository, pull forge.Pull, pushed, act string, a approvals.Approval) (string, error) {
	if err := s.remember(ctx, t, p, pull, pushed, act, a); err != nil {
		return "", err
	}
	pictures := s.pictures(ctx, t, p, r, pull.Number, a)
	if act == "pushed" {
		return fmt.Sprintf("Pull request #%d has the commit %s now: %s", pull.Number, pushed, pull.URL) + pictures, nil
	}
	kind := "Pull request"
	if pull.Draft {
		kind = "Draft pull request"
	}
	said := fmt.Sprintf("%s #%d is open, with the commit %s: %s", kind, pull.Number, pushed, pull.URL)
	if len(pull.Unasked) > 0 {
		said += "\nThe forge did not let these be asked for a review, tell people so: " + plain(strings.Join(pull.Unasked, ", "), 500)
	}
	if len(pull.Unlabelled) > 0 {
		said += "\nThe forge did not put these labels on, mostly since the repository does not have them, tell people so: " + plain(strings.Join(pull.Unlabelled, ", "), 500)
	}
	return said + pictures, nil
}

// pictures shows a pull request the page before and after, if those are the pictures that the
// approval was given for. What came of it is for the model.
func (s *Service) pictures(ctx context.Context, t threads.Thread, project place.Project, r forge.Repository, number int, a approvals.Approval) string {
	to, takes := r.(forge.Pictures)
	p, ok := s.Pusher.Pictures(t)
	switch {
	case !takes || !ok || project.Of != "": // they are of the page of the project's own
		return ""
	case a.Push != nil && a.Push.Pull != nil && a.Push.Pull.Pictures != p.ID():
		return "\nThere are other pictures of the page than when this was approved. They go along the next time."
	}
	text, err := "", error(nil)
	for _, one := range []struct {
		name, commit string
		png          []byte
	}{{"Before", p.Base, p.Before}, {"After", p.Head, p.After}} {
		if err != nil || one.png == nil {
			continue
		}
		var shown string
		shown, err = to.Picture(ctx, number, strings.ToLower(one.name)+".png", one.png)
		text += fmt.Sprintf("**%s**, working tree at %s:\n\n%s\n\n", one.name, one.commit, shown)
	}
	if err == nil {
		err = to.Comment(ctx, number, text)
	}
	if err == nil {
		err = s.Pusher.PicturesShown(t, p)
	}
	if err != nil {
		s.Log.Warn("show a pull request its pictures", zap.Error(err))
		return "\nThe pictures of the page could not be put there: " + plain(sentence(err), 500)
	}
	return "\nIt has the pictures of the page."
}

// remember writes down a pull request that the thread has opened, or pushed to, and shows it.
func (s *Service) remember(ctx context.Context, t threads.Thread, p place.Project, pull forge.Pull, head, act string, a approvals.Approval) error {
	url := p.Forge[0]
	row, err := s.Store.OpenedPull(ctx, forges.Pull{
		ThreadID: t.ID, Project: p.Name, Further: p.Of, Repository: url, Number: pull.Number, URL: pull.URL, Title: plain(pull.Title, 300), Branch: pull.Branch, Base: pull.Base, Head: head,
		State: string(pull.State), Draft: pull.Draft, Mergeable: string(forge.MergeUnknown), OpenedBy: pull.Author, Requester: a.RequestedBy, ApprovedBy: approvers(a),
	}, s.Every, audit.Entry{
		Kind: audit.Pull, TeamID: t.TeamID, Actor: a.RequestedBy, ThreadID: t.ID, TurnID: a.TurnID, ApprovalID: a.ID,
		Details: map[string]any{"act": act, "repository": url, "number": pull.Number, "url": pull.URL, "head": head, "base": pull.Base, "approved_by": approvers(a)},
	})
	if err == nil {
		s.show(row.ID)
	}
	return err
}

// approvers are the people who have allowed a call; none where a rule has.
func approvers(a approvals.Approval) (out []string) {
	for _, v := range a.Votes {
		if v.Allow {
			out = append(out, v.UserID)
		}
	}
	if len(out) == 0 && a.DecidedVia != "rule" && a.DecidedBy != "" {
		out = append(out, a.DecidedBy)
	}
	return out
}

// body is the text of a pull request, with lines at its end that say for whom it is.
func (s *Service) body(ctx context.Context, t threads.Thread, p place.Project, r forge.Repository, text string, a approvals.Approval) string {
	lines := s.trailers(ctx, t, a.RequestedBy, approvers(a))
	if _, takes := r.(forge.Pictures); !takes && p.Of == "" {
		if _, ok := s.Pusher.Pictures(t); ok {
			lines = append(lines, "Pictures of the page before and after: "+s.People.LinkTo(t.Key()))
		}
	}
	return strings.TrimSpace(text) + "\n\n---\n" + strings.Join(lines, "  \n") + "\n"
}

// trailers say whose work it is: who asked, who approved, and where.
func (s *Service) trailers(ctx context.Context, t threads.Thread, requester string, approved []string) []string {
	lines := []string{"Requested-by: " + plainName(s.People.NameOf(ctx, requester))}
	for _, who := range approved {
		lines = append(lines, "Approved-by: "+plainName(s.People.NameOf(ctx, who)))
	}
	if link := s.People.LinkTo(t.Key()); link != "" {
		lines = append(lines, "Deckhand-Thread: "+link)
	}
	return lines
}

// plainName is a name that calls nobody and formats nothing at a forge.
func plainName(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("@#<>[]()`*_~|\\!\u00a0", r)
	}), " ")
}

func (s *Service) show(id int64) { s.Show(fmt.Sprint(id)) }

var errNone = errors.New("this thread has opened no pull request there")
