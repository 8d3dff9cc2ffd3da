package forge

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// contract is what each world must keep.
func contract(t *testing.T, w world) {
	for name, check := range map[string]func(*testing.T, *site){
		"open": openCase, "files": filesCase, "checks": checksCase, "reviews": reviewsCase, "discussions": discussionsCase, "pictures": picturesCase,
		"merge": mergeCase, "conflict": conflictCase, "protected": protectedCase, "rights": rightsCase, "renamed": renamedCase, "faults": faultsCase,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, w.site(t))
		})
	}
}

func openCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	me, err := r.Me(t.Context())
	if err != nil || me.Login != "deckhand" || me.ID == 0 {
		t.Errorf("me: %+v, %v", me, err)
	}
	admin, owner, name := s.sdk(t, "ada")
	if _, _, err := admin.CreateLabel(owner, name, gitea.CreateLabelOption{Name: "bug", Color: "#00aabb"}); err != nil {
		t.Fatal(err)
	}
	head := s.push(t, "deckhand/7-mend", map[string]string{"a.txt": "one\n2\nthree\n"})
	_, err = r.Find(t.Context(), "deckhand/7-mend")
	want(t, "find none", err, NotFound)
	p, err := r.Open(t.Context(), NewPull{
		Title: "Mend <b>it</b>", Body: "Asked by *Ada*.\n\n</textarea>", Branch: "deckhand/7-mend", Base: "main", Draft: true,
		Labels: []string{"bug", "no such label", "Bug", "no such label"}, Reviewers: []string{"nobody", "grace"},
	})
	if err != nil {
		t.Fatal(err)
	}
	expected := Pull{
		Number: p.Number, URL: p.URL, Title: "Mend <b>it</b>", Body: "Asked by *Ada*.\n\n</textarea>", State: Open, Draft: true,
		Branch: "deckhand/7-mend", Base: "main", Head: head, Author: "deckhand", Mergeable: MergeUnknown, Unasked: []string{"nobody"}, Unlabelled: []string{"no such label"},
	}
	if d := cmp.Diff(expected, p); d != "" || p.Number == 0 || !strings.HasPrefix(p.URL, "http") {
		t.Errorf("opened: %s\n%+v", d, p)
	}
	_, err = r.Open(t.Context(), NewPull{Title: "Again", Branch: "deckhand/7-mend", Base: "main"})
	want(t, "open again", err, Exists)
	expected.Unasked, expected.Unlabelled = nil, nil
	found, err := r.Find(t.Context(), "deckhand/7-mend")
	if d := cmp.Diff(expected, found); err != nil || d != "" {
		t.Errorf("found: %v %s", err, d)
	}
	client, _, _ := s.sdk(t, "deckhand")
	raw, _, err := client.GetPullRequest(owner, name, int64(p.Number))
	if err != nil || len(raw.Labels) != 1 || raw.Labels[0].Name != "bug" || len(raw.RequestedReviewers) != 1 || raw.RequestedReviewers[0].UserName != "grace" {
		t.Errorf("%v: labels %+v, reviewers %+v", err, raw.Labels, raw.RequestedReviewers)
	}
	for range 2 { // the second changes nothing
		if err := r.MarkReady(t.Context(), p.Number); err != nil {
			t.Fatal(err)
		}
	}
	if p = becomes(t, r, p.Number, MergeClean); p.Draft || p.Title != "Mend <b>it</b>" {
		t.Errorf("ready: %+v", p)
	}
	_, err = r.Open(t.Context(), NewPull{Title: "None", Branch: "no/such-branch", Base: "main"})
	want(t, "open from no branch", err, NotFound)
	_, err = r.Pull(t.Context(), 4711)
	want(t, "a pull request that is not there", err, NotFound)
}

func filesCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	template, err := r.Template(t.Context())
	owners, err2 := r.CodeOwners(t.Context(), "main")
	if template != "" || owners != "" || err != nil || err2 != nil {
		t.Errorf("there is none: %q, %v, %q, %v", template, err, owners, err2)
	}
	s.push(t, "main", map[string]string{
		"docs/CODEOWNERS": "src/.* @grace\n", ".gitea/pull_request_template.md": "---\nname: Ours\n---\n## Why\n",
	})
	template, err = r.Template(t.Context())
	owners, err2 = r.CodeOwners(t.Context(), "main")
	if template != "## Why\n" || owners != "src/.* @grace\n" || err != nil || err2 != nil {
		t.Errorf("%q, %v, %q, %v", template, err, owners, err2)
	}
	_, err = r.CodeOwners(t.Context(), "no/such-branch")
	want(t, "the owners of no branch", err, NotFound)
	if branch, err := r.DefaultBranch(t.Context()); branch != "main" || err != nil {
		t.Errorf("%q, %v", branch, err)
	}
}

func checksCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	head := s.push(t, "x", map[string]string{"b.txt": "b\n"})
	if checks, err := r.Checks(t.Context(), head); len(checks) != 0 || err != nil {
		t.Errorf("none: %+v, %v", checks, err)
	}
	client, owner, name := s.sdk(t, "grace")
	set := func(check string, state gitea.StatusState) {
		t.Helper()
		_, _, err := client.CreateStatus(owner, name, head, gitea.CreateStatusOption{State: state, Context: check, Description: "says " + string(state), TargetURL: "https://ci.example/" + check})
		if err != nil {
			t.Fatal(err)
		}
	}
	set("test", gitea.StatusPending)
	set("lint", gitea.StatusSuccess)
	set("test", gitea.StatusFailure)
	set("odd", gitea.StatusWarning)
	set("slow", gitea.StatusPending)
	checks, err := r.Checks(t.Context(), head)
	expected := []Check{
		{Name: "lint", State: CheckPassed, URL: "https://ci.example/lint", Summary: "says success"},
		{Name: "odd", State: CheckSkipped, URL: "https://ci.example/odd", Summary: "says warning"},
		{Name: "slow", State: CheckPending, URL: "https://ci.example/slow", Summary: "says pending"},
		{Name: "test", State: CheckFailed, URL: "https://ci.example/test", Summary: "says failure"},
	}
	if d := cmp.Diff(expected, checks, cmpopts.IgnoreFields(Check{}, "ID")); err != nil || d != "" {
		t.Fatalf("%v %s", err, d)
	}
	if log, err := r.FailureLog(t.Context(), checks[3], 100); log != "" || err != nil {
		t.Errorf("a log that is elsewhere: %q, %v", log, err)
	}
	if s.log != nil {
		s.log(t, s, "x", strings.Repeat("fine\n", 1000)+"not ok 3\n")
		checks, err := r.Checks(t.Context(), head)
		if err != nil || checks[3].State != CheckFailed {
			t.Fatalf("%+v, %v", checks, err)
		}
		if log, err := r.FailureLog(t.Context(), checks[3], 14); log != "fine\nnot ok 3\n" || err != nil {
			t.Errorf("log: %q, %v", log, err)
		}
	}
	set("test", gitea.StatusSuccess)
	if checks, err = r.Checks(t.Context(), head); err != nil || len(checks) != 4 || checks[3].State != CheckPassed {
		t.Errorf("mended: %+v, %v", checks, err)
	}
}

func (s *site) review(t *testing.T, login string, p Pull, o gitea.CreatePullReviewOptions) {
	t.Helper()
	client, owner, name := s.sdk(t, login)
	if _, _, err := client.CreatePullReview(owner, name, int64(p.Number), o); err != nil {
		t.Fatal(err)
	}
}

func reviewsCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	head := s.push(t, "x", map[string]string{"b.txt": "b\n"})
	p := open(t, r, "x")
	s.review(t, "grace", p, gitea.CreatePullReviewOptions{State: gitea.ReviewStateApproved})
	s.review(t, "ada", p, gitea.CreatePullReviewOptions{State: gitea.ReviewStateComment, Body: "Hm."})
	s.review(t, "grace", p, gitea.CreatePullReviewOptions{State: gitea.ReviewStateRequestChanges, Body: "Not yet.\nSee b.txt."})
	s.review(t, "grace", p, gitea.CreatePullReviewOptions{State: gitea.ReviewStateComment, Body: "That is all."})
	reviews, err := r.Reviews(t.Context(), p.Number)
	expected := []Review{
		{Author: "ada", Verdict: Commented, Body: "Hm.", Commit: head},
		{Author: "grace", Verdict: ChangesRequested, Body: "Not yet.\nSee b.txt.", Commit: head},
	}
	// Gitea's times are whole seconds, and of the same second any may be first.
	byAuthor := cmpopts.SortSlices(func(a, b Review) bool { return a.Author < b.Author })
	if d := cmp.Diff(expected, reviews, cmpopts.IgnoreFields(Review{}, "At"), byAuthor); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	_, err = r.Reviews(t.Context(), 4711)
	want(t, "reviews of nothing", err, NotFound)
}

func picturesCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	s.push(t, "x", map[string]string{"b.txt": "b\n"})
	p := open(t, r, "x")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	to, ok := r.(Pictures)
	if !ok {
		t.Fatal("this forge takes pictures")
	}
	shown, err := to.Picture(t.Context(), p.Number, "before.png", picture.Bytes())
	address, ok := strings.CutPrefix(strings.TrimSuffix(shown, ")"), "![before.png](")
	if err != nil || !ok {
		t.Fatalf("%q, %v", shown, err)
	}
	answer, err := http.Get(address) //nolint:noctx,gosec // a test
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read
	got, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Equal(got, picture.Bytes()) || answer.Header.Get("Content-Type") != "image/png" {
		t.Errorf("%s is %s of %d bytes, %v", address, answer.Header.Get("Content-Type"), len(got), err)
	}
	if err := to.Comment(t.Context(), p.Number, "Before: "+shown); err != nil {
		t.Error(err)
	}
	_, err = to.Picture(t.Context(), 4711, "x.png", picture.Bytes())
	want(t, "a picture of nothing", err, NotFound)
	// Gitea says 500 to a comment on nothing.
	if err := to.Comment(t.Context(), 4711, "x"); ReasonOf(err) != NotFound && ReasonOf(err) != Unavailable {
		t.Errorf("a comment on nothing: %v", err)
	}
}

func discussionsCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	s.push(t, "x", map[string]string{"a.txt": "one\n2\n3\n"})
	p := open(t, r, "x")
	s.review(t, "grace", p, gitea.CreatePullReviewOptions{State: gitea.ReviewStateComment, Comments: []gitea.CreatePullReviewComment{
		{Path: "a.txt", Body: "Why 2?", NewLineNum: 2}, {Path: "a.txt", Body: "Why 3?", NewLineNum: 3},
	}})
	of := func() map[string]Discussion {
		t.Helper()
		all, err := r.Discussions(t.Context(), p.Number)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]Discussion{}
		for _, d := range all {
			found[d.Comments[0].Body] = d
		}
		return found
	}
	expected := map[string]Discussion{
		"Why 2?": {Path: "a.txt", Line: 2, Comments: []Comment{{Author: "grace", Body: "Why 2?"}}},
		"Why 3?": {Path: "a.txt", Line: 3, Comments: []Comment{{Author: "grace", Body: "Why 3?"}}},
	}
	opts := cmpopts.IgnoreFields(Discussion{}, "ID")
	before := of()
	if d := cmp.Diff(expected, before, opts); d != "" {
		t.Fatal(d)
	}
	two := before["Why 2?"].ID
	if err := r.Reply(t.Context(), p.Number, two, "It is shorter."); err != nil {
		t.Fatal(err)
	}
	one := expected["Why 2?"]
	one.Comments = append(one.Comments, Comment{Author: "deckhand", Body: "It is shorter."})
	one.Resolved = true
	expected["Why 2?"] = one
	if err := r.Resolve(t.Context(), p.Number, two); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(expected, of(), opts); d != "" {
		t.Error(d)
	}
	if after := of()["Why 2?"].ID; after != two {
		t.Errorf("the thread %s is called %s now", two, after)
	}
	want(t, "reply to nothing", r.Reply(t.Context(), p.Number, "4711", "What?"), NotFound)
	want(t, "resolve nothing", r.Resolve(t.Context(), p.Number, "4711"), NotFound)
	if reviews, err := r.Reviews(t.Context(), p.Number); len(reviews) != 0 || err != nil {
		t.Errorf("comments on lines are no reviews: %+v, %v", reviews, err)
	}
}

func mergeCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	for _, method := range []MergeMethod{MergeCommit, MergeSquash, MergeRebase} {
		branch := string(method)
		head := s.push(t, branch, map[string]string{branch + ".txt": "b\n"})
		p := becomes(t, r, open(t, r, branch).Number, MergeClean)
		moved := s.push(t, branch, map[string]string{branch + ".txt": "c\n"})
		_, err := r.Merge(t.Context(), p.Number, NewMerge{Head: head, Method: method})
		if want(t, "merge what was there before", err, Moved); err == nil {
			return
		}
		until(t, "the new head", func() bool {
			p, err = r.Pull(t.Context(), p.Number)
			return err == nil && p.Head == moved && p.Mergeable == MergeClean
		})
		commit, err := r.Merge(t.Context(), p.Number, NewMerge{Head: moved, Method: method})
		if err != nil || commit == "" {
			t.Fatalf("%s: %q, %v", method, commit, err)
		}
		s.git(t, "fetch", "--quiet")
		if main := s.git(t, "rev-parse", "origin/main"); main != commit || s.git(t, "show", "origin/main:"+branch+".txt") != "c" {
			t.Errorf("%s: main is at %s, merged was %s", method, main, commit)
		}
		if parents := len(strings.Fields(s.git(t, "log", "-1", "--format=%P", commit))); (parents == 2) != (method == MergeCommit) {
			t.Errorf("%s made a commit with %d parents", method, parents)
		}
		p, err = r.Pull(t.Context(), p.Number)
		if err != nil || p.State != Merged || p.MergedCommit != commit || p.MergedBy != "deckhand" || p.Head != moved {
			t.Errorf("%s: %+v, %v", method, p, err)
		}
		_, err = r.Merge(t.Context(), p.Number, NewMerge{Head: moved, Method: method})
		want(t, "merge again", err, Blocked)
	}
	head := s.push(t, "closed", map[string]string{"d.txt": "d\n"})
	p := open(t, r, "closed")
	client, owner, name := s.sdk(t, "grace")
	state := gitea.StateClosed
	if _, _, err := client.EditPullRequest(owner, name, int64(p.Number), gitea.EditPullRequestOption{State: &state}); err != nil {
		t.Fatal(err)
	}
	if p, err := r.Pull(t.Context(), p.Number); err != nil || p.State != Closed {
		t.Errorf("%+v, %v", p, err)
	}
	_, err := r.Merge(t.Context(), p.Number, NewMerge{Head: head, Method: MergeCommit})
	if err == nil {
		t.Error("what is closed was merged")
	}
	_, err = r.Find(t.Context(), "closed")
	want(t, "find what is closed", err, NotFound)
}

func conflictCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	head := s.push(t, "x", map[string]string{"a.txt": "one\nhere\nthree\n"})
	p := open(t, r, "x")
	s.push(t, "main", map[string]string{"a.txt": "one\nthere\nthree\n"})
	becomes(t, r, p.Number, MergeConflict)
	_, err := r.Merge(t.Context(), p.Number, NewMerge{Head: head, Method: MergeCommit})
	want(t, "merge a conflict", err, Blocked)
}

func protectedCase(t *testing.T, s *site) {
	r := s.as(t, "deckhand")
	admin, owner, name := s.sdk(t, "ada")
	if _, _, err := admin.CreateBranchProtection(owner, name, gitea.CreateBranchProtectionOption{
		RuleName: "main", RequiredApprovals: 1, EnableStatusCheck: true, StatusCheckContexts: []string{"test"},
	}); err != nil {
		t.Fatal(err)
	}
	head := s.push(t, "x", map[string]string{"b.txt": "b\n"})
	p := becomes(t, r, open(t, r, "x").Number, MergeBlocked)
	_, err := r.Merge(t.Context(), p.Number, NewMerge{Head: head, Method: MergeCommit})
	want(t, "merge without an approval", err, Blocked)
	s.review(t, "grace", p, gitea.CreatePullReviewOptions{State: gitea.ReviewStateApproved})
	becomes(t, r, p.Number, MergeBlocked) // by the check
	client, _, _ := s.sdk(t, "grace")
	if _, _, err := client.CreateStatus(owner, name, head, gitea.CreateStatusOption{State: gitea.StatusSuccess, Context: "test"}); err != nil {
		t.Fatal(err)
	}
	becomes(t, r, p.Number, MergeClean)
	if _, err := r.Merge(t.Context(), p.Number, NewMerge{Head: head, Method: MergeCommit}); err != nil {
		t.Error(err)
	}
}

func rightsCase(t *testing.T, s *site) {
	head := s.push(t, "x", map[string]string{"b.txt": "b\n"})
	p := becomes(t, s.as(t, "deckhand"), open(t, s.as(t, "deckhand"), "x").Number, MergeClean)
	_, err := s.by(t, Config{Token: fixed("0123456789abcdef0123456789abcdef01234567")}).Me(t.Context())
	want(t, "a wrong token", err, Denied)
	_, err = s.as(t, "mallory").Merge(t.Context(), p.Number, NewMerge{Head: head, Method: MergeCommit})
	want(t, "mallory merges", err, Denied)
	want(t, "mallory changes its title", func() error {
		client, owner, name := s.sdk(t, "mallory")
		_, _, err := client.EditPullRequest(owner, name, int64(p.Number), gitea.EditPullRequestOption{Title: "Mine"})
		return err
	}(), Denied)
	elsewhere := strings.Replace(s.url, pathOf(t, s.url), "/nobody/nothing.git", 1)
	_, err = s.by(t, Config{URL: elsewhere, Token: fixed(s.token("deckhand"))}).DefaultBranch(t.Context())
	want(t, "no repository", err, NotFound)
	refused := errors.New("the token could not be renewed")
	_, err = s.by(t, Config{Token: func(context.Context) (string, error) { return "", refused }}).Me(t.Context())
	if !errors.Is(err, refused) || ReasonOf(err) == "" {
		t.Errorf("no token: %v", err)
	}
}

// renamedCase: the forge says where a repository is now, and calls go there.
func renamedCase(t *testing.T, s *site) {
	s.push(t, "x", map[string]string{"b.txt": "b\n"})
	r := s.as(t, "deckhand")
	was := pathOf(t, s.url)
	is := strings.Replace(was, ".git", "-2.git", 1)
	admin, owner, name := s.sdk(t, "ada")
	newName := name + "-2"
	if _, _, err := admin.EditRepo(owner, name, gitea.EditRepoOption{Name: &newName}); ReasonOf(err) == NotFound || refusalOf(err) != nil {
		// The playground has no new names: something in front of it does.
		front := s.front(t, func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, name+"-2") {
				r.URL.Path = strings.Replace(r.URL.Path, name+"-2", name, 1)
				return false
			}
			http.Redirect(w, r, strings.Replace(r.URL.RequestURI(), name, newName, 1), http.StatusMovedPermanently)
			return true
		})
		r = s.by(t, Config{API: front, Token: fixed(s.token("deckhand"))})
	} else if err != nil {
		t.Fatal(err)
	}
	s.url = strings.Replace(s.url, was, is, 1)
	p := open(t, r, "x")
	if found, err := r.Find(t.Context(), "x"); err != nil || found.Number != p.Number {
		t.Errorf("%+v, %v", found, err)
	}
}

func faultsCase(t *testing.T, s *site) {
	s.push(t, "x", map[string]string{"b.txt": "b\n"})
	var fault atomic.Pointer[string]
	api := s.front(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch now := fault.Load(); {
		case now == nil:
			return false
		case *now == "429":
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		case *now == "502":
			http.Error(w, "<html>Bad gateway", http.StatusBadGateway)
		case *now == "half":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `[{"number": 1`)
		}
		return true
	})
	r := s.by(t, Config{API: api, Token: fixed(s.token("deckhand"))})
	for name, reason := range map[string]Reason{"429": RateLimited, "502": Unavailable, "half": Unavailable} {
		fault.Store(&name)
		_, err := r.Find(t.Context(), "x")
		want(t, "find: "+name, err, reason)
		if (name == "429") != (time.Until(UntilOf(err)) > 0) {
			t.Errorf("%s: until %v", name, UntilOf(err))
		}
		_, err = r.Open(t.Context(), NewPull{Title: "T", Branch: "x", Base: "main"})
		want(t, "open: "+name, err, reason)
		_, err = r.Merge(t.Context(), 1, NewMerge{Method: MergeCommit})
		want(t, "merge: "+name, err, reason)
	}
	fault.Store(nil)
	open(t, r, "x")
}
