package pulls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/tools"
	"deckhand/internal/forge"
	"deckhand/internal/jobs"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/pg"
)

// roundsMost is how many commits in a row become work by themselves.
const roundsMost = 3

// patience bounds what the forge is asked at once: a job has a minute, and writes down what came of it.
const patience = 40 * time.Second

// showAgain is for how long a change is shown at each look, which costs no call of Slack's where
// it was shown before.
const showAgain = 10 * time.Minute

// reopenable is how long somebody may reopen a pull request, and be followed again.
const reopenable = 7 * 24 * time.Hour

// JobHandlers do the jobs that are scheduled with a pull request.
func (s *Service) JobHandlers() []jobs.Handler {
	return []jobs.Handler{jobs.Handle(s.due), jobs.Handle(s.opened)}
}

// due asks the forge about a pull request, until it is merged, or has been closed for long.
func (s *Service) due(ctx context.Context, j jobs.Job[forges.PullDue]) error {
	p, err := s.Store.PullByID(ctx, j.Args.PullID)
	if errors.Is(err, pg.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if time.Since(p.ChangedAt) < showAgain { // whoever wrote it down may have died before it was shown
		s.show(p.ID)
	}
	if over(p) {
		return nil
	}
	until, err := s.check(ctx, &p)
	if err != nil {
		return err
	}
	return jobs.Again(max(s.pause(p), min(time.Until(until), 24*time.Hour)))
}

// over reports whether nothing becomes of a pull request any more.
func over(p forges.Pull) bool {
	return p.State == string(forge.Merged) || p.State == string(forge.Closed) && time.Since(p.ChangedAt) > reopenable
}

// opened finds a pull request that was opened, and not written down: the bot died meanwhile.
func (s *Service) opened(ctx context.Context, j jobs.Job[forges.PullOpened]) error {
	a, err := s.Store.ApprovalByID(ctx, j.Args.ApprovalID)
	if errors.Is(err, pg.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var in where
	if err := json.Unmarshal(a.ToRun(), &in); err != nil {
		return fmt.Errorf("read which repository it is of: %w", err)
	}
	t, p, r, err := s.of(ctx, a.ThreadID, in.Repository)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if row, err := s.Store.PullOfThread(ctx, t.ID, p.Of); err == nil && row.State == string(forge.Open) || err != nil && !errors.Is(err, pg.ErrNotFound) {
		return err
	}
	pull, err := r.Find(ctx, t.Branch)
	if forge.ReasonOf(err) == forge.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return s.remember(ctx, t, p, pull, pull.Head, "found", a)
}

// pause is how long a pull request is left alone: longer the longer nothing has changed.
func (s *Service) pause(p forges.Pull) time.Duration {
	switch quiet := time.Since(p.ChangedAt); {
	case quiet > 24*time.Hour, p.State == string(forge.Closed):
		return 20 * s.Every
	case quiet > time.Hour:
		return 4 * s.Every
	}
	return s.Every
}

// check asks the forge how a pull request stands, writes down what has changed, shows it, and
// has what is wrong with it become work, if the project wants that. until is when the forge
// wants to be asked again at the earliest.
func (s *Service) check(ctx context.Context, p *forges.Pull) (until time.Time, err error) {
	project, r, err := s.repository(p.Project, p.Further)
	if err != nil {
		return until, err
	}
	was := *p
	asking, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var wake bool
	if err := read(asking, r, p); err != nil {
		s.Log.Warn("ask the forge about a pull request", zap.String("url", p.URL), zap.Error(err))
		*p = was
		p.Problem = "This is how it stood when the forge answered last. " + plain(sentence(err), 500)
		until = forge.UntilOf(err)
	} else if project.PullRequests.Babysit {
		if wake, err = s.wakes(ctx, p); err != nil {
			return until, err
		}
	}
	if !p.IsRed() && !p.WantsChanges() && p.Problem == "" && len(p.Checks) > 0 && !slices.ContainsFunc(p.Checks, pending) {
		p.Rounds = 0 // green
	}
	told := tell(was, *p)
	if was.State != p.State && p.State == string(forge.Merged) {
		by, err := s.mergedBy(ctx, p)
		if err != nil {
			return until, err
		}
		if by.Kind != "" {
			told[len(told)-1] = by
		}
	}
	if was.Merging != "" && p.State == string(forge.Open) && p.Problem == "" {
		if err := s.notMerged(ctx, *p); err != nil {
			return until, err
		}
	}
	changed := fmt.Sprint(was) != fmt.Sprint(*p)
	if err := s.Store.PullChanged(ctx, *p, changed, told...); err != nil {
		return until, err
	}
	if changed {
		p.ChangedAt = time.Now()
		s.show(p.ID)
	}
	if !wake {
		return until, nil
	}
	ok, err := s.Store.WakePull(ctx, *p, roundsMost, uuid.NewString(), byItself+Trouble(*p))
	if ok {
		s.Wake(p.ThreadID)
	}
	return until, err
}

// mergingMost is how long after its approval a merge may still happen whose answer was lost.
const mergingMost = 10 * time.Minute

// notMerged takes back who merges a pull request that is open long after: who merges it then is
// somebody else.
func (s *Service) notMerged(ctx context.Context, p forges.Pull) error {
	a, err := s.Store.ApprovalByID(ctx, p.Merging)
	if err != nil || time.Since(a.DecidedAt) < mergingMost {
		return err
	}
	return s.Store.MergingPull(ctx, p.ID, "")
}

// mergedBy is what the audit is told of a merge that is found, if a call of ours has made it that
// has not written it down yet, or died; a zero entry for every other one. It notes whose it is.
func (s *Service) mergedBy(ctx context.Context, p *forges.Pull) (entry audit.Entry, err error) {
	now, err := s.Store.PullByID(ctx, p.ID) // a call writes it down before it merges
	if err != nil || now.Merging == "" {
		return entry, err
	}
	a, err := s.Store.ApprovalByID(ctx, now.Merging)
	if err != nil {
		return entry, err
	}
	var in merging
	if err := tools.Read(a.ToRun(), &in); err != nil || in.Head != p.Head {
		return entry, nil //nolint:nilerr // it is another's merge
	}
	p.MergedFor = a.RequestedBy
	return merged(*p, a, in.Method), nil
}

// read fills in how a pull request stands at the forge.
func read(ctx context.Context, r forge.Repository, p *forges.Pull) error {
	now, err := r.Pull(ctx, p.Number)
	if err != nil {
		return err
	}
	p.Title, p.Base, p.Head, p.State, p.Draft, p.Mergeable = plain(now.Title, 300), plain(now.Base, 250), now.Head, string(now.State), now.Draft, string(now.Mergeable)
	p.MergedCommit, p.MergedBy, p.Problem = now.MergedCommit, plain(now.MergedBy, 100), ""
	said, err := sayingsOf(ctx, r, now)
	p.Checks, p.Reviews, p.Discussions = checksOf(said.checks), reviewsOf(said.reviews), len(said.threads)
	return err
}

// sayings are what checks and people say of a pull request.
type sayings struct {
	checks  []forge.Check
	reviews []forge.Review
	threads []forge.Discussion // that are open
}

func sayingsOf(ctx context.Context, r forge.Repository, p forge.Pull) (s sayings, err error) {
	if s.checks, err = r.Checks(ctx, p.Head); err != nil {
		return s, err
	}
	if s.reviews, err = r.Reviews(ctx, p.Number); err != nil {
		return s, err
	}
	s.threads, err = r.Discussions(ctx, p.Number)
	s.threads = slices.DeleteFunc(s.threads, func(d forge.Discussion) bool { return d.Resolved })
	return s, err
}

func checksOf(list []forge.Check) []forges.PullCheck {
	out := []forges.PullCheck{}
	for _, c := range list {
		out = append(out, forges.PullCheck{Name: plain(c.Name, 200), State: string(c.State), URL: plain(c.URL, 2000)})
	}
	return out
}

func reviewsOf(list []forge.Review) []forges.PullReview {
	out := []forges.PullReview{}
	for _, r := range list {
		out = append(out, forges.PullReview{Author: plain(r.Author, 100), Verdict: string(r.Verdict), Commit: r.Commit})
	}
	return out
}

func pending(c forges.PullCheck) bool { return c.State == string(forge.CheckPending) }

// tell is what the audit is told of a change.
func tell(was, p forges.Pull) (out []audit.Entry) {
	add := func(act string, more map[string]any) {
		d := map[string]any{"act": act, "repository": p.Repository, "number": p.Number, "url": p.URL, "head": p.Head}
		maps.Copy(d, more)
		out = append(out, audit.Entry{Kind: audit.Pull, TeamID: p.TeamID, ThreadID: p.ThreadID, Details: d})
	}
	for _, c := range p.Checks {
		if c.State == string(forge.CheckFailed) && (p.Head != was.Head || !slices.ContainsFunc(was.Checks, func(o forges.PullCheck) bool { return o.Name == c.Name && o.State == c.State })) {
			add("red", map[string]any{"check": c.Name})
		}
	}
	for _, r := range p.Reviews {
		if !slices.Contains(was.Reviews, r) {
			add("review", map[string]any{"by": r.Author, "verdict": r.Verdict, "of": r.Commit})
		}
	}
	if p.State != was.State {
		act := p.State
		if act == string(forge.Open) {
			act = "reopened"
		}
		add(act, map[string]any{"commit": p.MergedCommit, "by": p.MergedBy})
	}
	return out
}

// wakes reports whether what is wrong with a pull request becomes a prompt by itself: of whoever
// asked for it, who must still be allowed to give work there. If not, people are told why.
func (s *Service) wakes(ctx context.Context, p *forges.Pull) (bool, error) {
	if p.State != string(forge.Open) || !p.IsRed() && !p.WantsChanges() || p.WokenFor == p.Head || slices.ContainsFunc(p.Checks, pending) {
		return false, nil
	}
	if p.Rounds >= roundsMost {
		p.Problem = fmt.Sprintf("Claude has tried %d times in a row to mend this, and does not go on by itself. Press Address these to have it go on.", roundsMost)
		return false, nil
	}
	t, err := s.Store.ThreadByID(ctx, p.ThreadID)
	if err != nil {
		return false, err
	}
	if !s.People.MayAsk(ctx, p.Requester, t) {
		p.Problem = "Claude does not mend this by itself: whoever asked for the pull request may not give work here any more. Somebody who may can press Address these."
		return false, nil
	}
	return true, nil
}

// byItself begins a prompt that nobody has written.
const byItself = "[This comes by itself:]\n"

// Why says in a line why a prompt comes by itself, see [inbox.Prompt].
func Why(prompt string) string {
	why, _, _ := strings.Cut(strings.TrimPrefix(prompt, byItself), ". ")
	return why
}

// Trouble is what a session is asked to mend in a pull request, in our own words; empty if
// nothing is wrong. What others have written it reads by a tool.
func Trouble(p forges.Pull) string {
	var what []string
	if p.IsRed() {
		what = append(what, "checks have failed")
	}
	if p.WantsChanges() {
		what = append(what, "a reviewer has asked for changes")
	} else if p.Discussions > 0 {
		what = append(what, "review threads are open")
	}
	if p.Mergeable == string(forge.MergeConflict) {
		what = append(what, "it has conflicts with the branch "+p.Base)
	}
	if len(what) == 0 {
		return ""
	}
	of := "this thread"
	if p.Further != "" {
		of += " in the repository " + p.Further + " (name it to the tools)"
	}
	return fmt.Sprintf("Pull request #%d of %s: %s. Read it with %s, mend what is wrong, run the checks here, commit, and bring it up to date with %s; answer review threads with %s.",
		p.Number, of, strings.Join(what, ", and "), "read_pull_request", "open_pull_request", "reply_to_review")
}

// Merge is what a session is asked for by whoever wants a pull request merged.
func Merge(p forges.Pull) string {
	return fmt.Sprintf("Merge pull request #%d of this thread: call merge_pull_request with %s.", p.Number, mergeInput(p))
}

// sentence is what people are told of a forge that did not do something.
func sentence(err error) string {
	if e, ok := errors.AsType[*forge.Error](err); ok {
		return e.Sentence
	}
	return "The forge could not be asked. An admin finds more in the bot's log."
}
