package pulls

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/tools"
	"deckhand/internal/forge"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
)

// TestTheForgeFailsWhileItIsOpened: whatever is lost between push, pull request and its record,
// one pull request comes of it, and the model hears what is there.
func TestTheForgeFailsWhileItIsOpened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		fault  map[string]any
		lost   bool
		fails  string // what the model hears, empty if it goes well
		exists int    // pull requests after that
	}{
		{"not done", map[string]any{"method": "POST", "path": "/pulls", "status": 502, "times": 1}, false, "is pushed, and the pull request is not opened", 0},
		{"half an answer", map[string]any{"method": "POST", "path": "/pulls", "half": true, "times": 1}, false, "", 1},
		{"done, and the answer lost", map[string]any{"method": "POST", "path": "/pulls", "status": 502, "after": true, "times": 1}, false, "", 1},
		{"the token is revoked after the push", map[string]any{"method": "POST", "path": "/api/", "status": 401, "times": 1}, false, "may have expired or been revoked", 0},
		{"too many calls", map[string]any{"method": "POST", "path": "/pulls", "status": 429, "retry": "30", "times": 1}, false, "takes no more calls for a while", 0},
		{"the bot dies before it is written down", map[string]any{"path": "/nowhere"}, true, "context canceled", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			th := b.thread("two.txt", "two\n")
			b.fault(c.fault)
			b.lost = c.lost
			said, err := b.open(t.Context(), tools.Call{ThreadID: th.ID, Approval: b.approval(th)}, opening{Title: "A title"})
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Fatal(said, err)
			}
			if n := b.pulls(); n != c.exists {
				t.Fatalf("the forge has %d pull requests", n)
			}
			b.lost = false
			if c.exists == 1 && c.lost { // the job that was written before finds it
				if err := b.opened(t.Context(), job(forges.PullOpened{ApprovalID: "a"})); err != nil {
					t.Fatal(err)
				}
				if b.shows() != 1 || b.acts() != "found" || b.row(th).Requester != "U0LINUS" {
					t.Errorf("it is not shown: %s, %+v", b.acts(), b.row(th))
				}
			}
			p := b.opens(th) // asked again
			if b.pulls() != 1 || p.State != "open" || p.Head != b.git("rev-parse", "HEAD") {
				t.Errorf("%d pull requests, %+v", b.pulls(), p)
			}
			if err := b.opened(t.Context(), job(forges.PullOpened{ApprovalID: "a"})); err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(b.acts(), "pushed", ""); strings.TrimSpace(got) != "opened" && strings.TrimSpace(got) != "found" {
				t.Errorf("the audit has %s", b.acts())
			}
			var n int
			if err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'pull_due'`).Scan(&n); err != nil || n != 1 {
				t.Errorf("%d jobs ask about it: %v", n, err)
			}
		})
	}
}

// TestTheForgeFailsWhileItIsMerged: a merge happens once, and is never said to have happened
// where it did not.
func TestTheForgeFailsWhileItIsMerged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault map[string]any
		lost  bool
		fails string
		after string // the state at the next poll
		acts  string
	}{
		{"done, and the answer lost", map[string]any{"path": "/merge", "status": 502, "after": true}, false, "", "merged", "opened merged"},
		{"half an answer", map[string]any{"path": "/merge", "half": true}, false, "", "merged", "opened merged"},
		{"not done", map[string]any{"path": "/merge", "status": 503}, false, "does not work at the moment", "open", "opened"},
		{"no right", map[string]any{"path": "/merge", "status": 403}, false, "may not do this", "open", "opened"},
		{"the bot dies before it is written down", map[string]any{"path": "/nowhere"}, true, "context canceled", "merged", "opened merged"},
		{"a poll sees it first", map[string]any{"path": "/merge", "after": true, "delay": "1s"}, false, "", "merged", "opened merged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			th := b.thread("two.txt", "two\n")
			p := b.opens(th)
			b.fault(c.fault)
			b.lost = c.lost
			if c.name == "a poll sees it first" {
				polled := make(chan struct{})
				go func() {
					defer close(polled)
					for row := p; row.State == "open"; {
						if _, err := b.check(t.Context(), &row); err != nil {
							t.Error(err)
							return
						}
					}
				}()
				defer func() { <-polled }()
			}
			said, err := b.merge(t.Context(), tools.Call{ThreadID: th.ID, Approval: b.approval(th)}, merging{Head: p.Head, Method: "merge"})
			if c.fails == "" && (err != nil || !strings.Contains(said, "is merged as")) || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Fatal(said, err)
			}
			b.lost = false
			b.shows()
			if b.row(th).State == "open" {
				p, _ = b.polls(th)
			} else {
				p = b.row(th)
			}
			if p.State != c.after || b.acts() != c.acts {
				t.Errorf("%s, audit %s", p.State, b.acts())
			}
			if p.State == "merged" && (p.MergedFor != "U0LINUS" || b.allowedBy() != "a a") {
				t.Errorf("merged for %q, by the approvals %q", p.MergedFor, b.allowedBy())
			}
			if c.lost { // asked again by a session that goes on, it is told
				if said, err := b.merge(t.Context(), tools.Call{ThreadID: th.ID, Approval: b.approval(th)}, merging{Head: p.Head, Method: "merge"}); err == nil || !strings.Contains(err.Error(), "is merged at the forge already") {
					t.Error(said, err)
				}
				if b.shows() == 0 {
					t.Error("the post does not say it")
				}
			}
			if n := b.git("--git-dir", b.bare(), "rev-list", "--count", "--merges", "main"); (n == "1") != (c.after == "merged") {
				t.Errorf("%s merges", n)
			}
		})
	}
}

// TestSomebodyElseMerges: a merge by hand is not booked by an approval of before whose merge has
// failed.
func TestSomebodyElseMerges(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"an answer is lost": 503, "the base has moved": 409, "another refusal": 403} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			th := b.thread("two.txt", "two\n")
			p := b.opens(th)
			b.fault(map[string]any{"path": "/merge", "status": status})
			if said, err := b.merge(t.Context(), tools.Call{ThreadID: th.ID, Approval: b.approval(th)}, merging{Head: p.Head, Method: "merge"}); err == nil {
				t.Fatal(said)
			}
			b.heals()
			b.decided = time.Hour
			if p, _ = b.polls(th); p.State != "open" {
				t.Fatal(p.State)
			}
			b.control("POST", "merge", map[string]any{"number": p.Number, "user": "ada"})
			if p, _ = b.polls(th); p.State != "merged" || p.MergedFor != "" || p.MergedBy != "ada" || strings.HasSuffix(b.allowedBy(), "a a") {
				t.Errorf("%s by %s for %q, by the approvals %q", p.State, p.MergedBy, p.MergedFor, b.allowedBy())
			}
		})
	}
}

// TestTheForgeCannotBeAsked: whatever is wrong with it is said once, costs few calls, loses
// nothing that is known, and ends by itself.
func TestTheForgeCannotBeAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault map[string]any
		says  string
		until bool
	}{
		{"a wrong or expired token", map[string]any{"status": 401}, "does not take the credential", false},
		{"a right that was taken", map[string]any{"status": 403}, "may not do this", false},
		{"a repository that is gone", map[string]any{"status": 404}, "has no such thing", false},
		{"too many calls", map[string]any{"status": 429, "retry": "300"}, "takes no more calls for a while", true},
		{"a broken gateway", map[string]any{"status": 502}, "does not work at the moment", false},
		{"half an answer", map[string]any{"half": true}, "gave no answer, or half of one", false},
		{"slow", map[string]any{"delay": "1h"}, "gave no answer, or half of one", false},
		{"half of it works", map[string]any{"path": "/reviews", "status": 500}, "does not work at the moment", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			th := b.thread("two.txt", "two\n")
			b.opens(th)
			b.checkIs(th, "lint", "success")
			before, _ := b.polls(th)
			b.shows()
			if c.fault["path"] == nil {
				c.fault["path"] = "/api/"
			}
			b.fault(c.fault)
			if c.fault["delay"] != nil {
				b.patience = 200 * time.Millisecond
			}
			for range 3 {
				p, until := b.polls(th)
				if !strings.Contains(p.Problem, c.says) || p.State != "open" || len(p.Checks) != 1 || p.Head != before.Head {
					t.Fatalf("%+v", p)
				}
				if c.until != (time.Until(until) > 250*time.Second) {
					t.Errorf("the next time is %s", until)
				}
			}
			if n := b.shows(); n != 1 {
				t.Errorf("it was shown %d times", n)
			}
			if n := b.seen(); n > 4*3 {
				t.Errorf("%d calls failed at three polls", n)
			}
			if acts := b.acts(); acts != "opened" {
				t.Errorf("the audit has %s", acts)
			}
			b.heals()
			b.patience = waittest.Limit
			if p, _ := b.polls(th); p.Problem != "" || b.shows() != 1 {
				t.Errorf("it does not recover: %q", p.Problem)
			}
		})
	}
}

// TestARepositoryIsRenamed: the forge says where it is, for reading, pushing and merging.
func TestARepositoryIsRenamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	th := b.thread("two.txt", "two\n")
	b.opens(th)
	b.fault(map[string]any{"path": "/repos/forge/web/pulls/1", "method": "GET", "renamed": "web", "times": 1})
	if p, _ := b.polls(th); p.Problem != "" || b.seen() != 1 {
		t.Errorf("a question that was sent on: %q", p.Problem)
	}
	b.heals()
	b.fault(map[string]any{"path": "/merge", "method": "POST", "renamed": "web", "times": 1})
	if said, err := b.merge(t.Context(), tools.Call{ThreadID: th.ID, Approval: b.approval(th)}, merging{Head: b.row(th).Head, Method: "merge"}); err != nil || b.seen() != 1 {
		t.Errorf("a merge that was sent on: %s %v", said, err)
	}
}

// TestTheBranchIsNotOurs: a branch of somebody else's is left alone and nobody is asked; one that
// the forge protects is said to be; a branch that moved after the card is another push.
func TestTheBranchIsNotOurs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	th := b.thread("two.txt", "two\n")
	branch := th.Branch
	mine := b.git("rev-parse", "HEAD")
	b.git("push", "-q", "origin", "main:refs/heads/"+branch)
	b.git("checkout", "-q", "--detach", "main")
	theirs := b.commit("theirs.txt", "theirs\n")
	b.git("push", "-q", "origin", "HEAD:refs/heads/"+branch)

	input := []byte(`{"title": "A title", "body": ""}`)
	push := &forges.Push{Refs: []forges.PushRef{{Name: "refs/heads/" + branch, Old: theirs, New: mine, Commits: forges.PushCommits{Count: 1}, Lost: forges.PushCommits{Count: 1}}}}
	if _, err := b.Look(t.Context(), th.ID, "U1", policy.Call{Tool: tools.Prefix + "open_pull_request", Input: input}, push); err == nil || !strings.Contains(err.Error(), "has commits that this thread does not have") {
		t.Errorf("people are asked to push over somebody's branch: %v", err)
	}
	for name, old := range map[string]string{"taken before the card": theirs, "taken after it": strings.Repeat("0", 40), "allowed by a rule": ""} {
		a := b.approval(th)
		if old != "" {
			a.Push = &forges.Push{Refs: []forges.PushRef{{Old: old, New: mine}}}
		}
		if said, err := b.open(t.Context(), tools.Call{ThreadID: th.ID, Approval: a}, opening{Title: "A title"}); err == nil || !strings.Contains(err.Error(), "has moved since this was approved") {
			t.Errorf("%s: %s %v", name, said, err)
		}
	}
	if now := b.git("--git-dir", b.bare(), "rev-parse", branch); now != theirs || b.pulls() != 0 {
		t.Errorf("the branch is %s, with %d pull requests", now, b.pulls())
	}

	other := b.thread("three.txt", "three\n")
	hook := filepath.Join(b.bare(), "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'protected branch <!channel>' >&2\nexit 1\n"), 0o755); err != nil { //nolint:gosec // a hook is a program
		t.Fatal(err)
	}
	said, err := b.open(t.Context(), tools.Call{ThreadID: other.ID, Approval: b.approval(other)}, opening{Title: "A title"})
	if err == nil || !strings.Contains(err.Error(), "pre-receive hook declined") {
		t.Errorf("a branch that the forge protects: %s %v", said, err)
	}
	if _, err := b.PullOfThread(t.Context(), other.ID, ""); !errors.Is(err, pg.ErrNotFound) || b.pulls() != 0 {
		t.Error("it is written down", err)
	}
}

// TestPeopleActAtTheForge: what somebody closes, reopens or merges there is followed, and is
// nobody's here.
func TestPeopleActAtTheForge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	th := b.thread("two.txt", "two\n")
	p := b.opens(th)
	again := func(want bool) {
		t.Helper()
		err := b.due(t.Context(), job(forges.PullDue{PullID: p.ID}))
		if (err != nil) != want {
			t.Errorf("asked again: %v, and not %v: %v", err != nil, want, err)
		}
	}
	of := "/api/v1/repos/forge/web/pulls/1"
	b.call("PATCH", of, "ada", map[string]any{"state": "closed"})
	again(true)
	if p := b.row(th); p.State != "closed" {
		t.Fatal(p.State)
	}
	if said, err := b.merge(t.Context(), tools.Call{ThreadID: th.ID, Approval: b.approval(th)}, merging{Head: p.Head, Method: "merge"}); err == nil || !strings.Contains(err.Error(), "is closed at the forge already") {
		t.Error(said, err)
	}
	b.call("PATCH", of, "ada", map[string]any{"state": "open"})
	again(true)
	if p := b.row(th); p.State != "open" {
		t.Fatal("one that was reopened is", p.State)
	}
	b.control("POST", "merge", map[string]any{"number": 1, "user": "ada"})
	if said, err := b.merge(t.Context(), tools.Call{ThreadID: th.ID, Approval: b.approval(th)}, merging{Head: p.Head, Method: "merge"}); err == nil || !strings.Contains(err.Error(), "is merged at the forge already, and this call has done nothing") {
		t.Error(said, err)
	}
	again(false)
	if b.shows(); b.row(th).ID != p.ID {
		t.Fatal("another pull request")
	}
	again(false) // as if whoever wrote it down had died before it was shown
	if b.shows() != 1 {
		t.Error("the last word is not shown again")
	}
	if p := b.row(th); p.State != "merged" || p.MergedBy != "ada" || p.MergedFor != "" || b.acts() != "opened closed reopened merged" {
		t.Errorf("%s by %s for %s; %s", p.State, p.MergedBy, p.MergedFor, b.acts())
	}
	again(false)
	if _, err := b.Look(t.Context(), th.ID, "U1", policy.Call{Tool: tools.Prefix + "merge_pull_request", Input: []byte(`{"head":"` + p.Head + `","method":"merge"}`)}, nil); err == nil || !strings.Contains(err.Error(), "is merged") {
		t.Error("people are asked about it:", err)
	}
}

// TestTwoThreadsAndOneBase: both open, the first merges, the second is in conflict: that is said,
// nothing is merged, and once the base is taken in it is. So it is where the base is forced.
func TestTwoThreadsAndOneBase(t *testing.T) {
	t.Parallel()
	for _, forced := range []bool{false, true} {
		b := newBench(t)
		one, two := b.thread("same.txt", "one\n"), b.thread("same.txt", "two\n")
		first, second := b.opens(one), b.opens(two)
		if forced {
			b.git("checkout", "-q", "--orphan", "anew")
			b.commit("same.txt", "another history\n")
			b.git("push", "-q", "--force", "origin", "HEAD:main")
		} else if said, err := b.merge(t.Context(), tools.Call{ThreadID: one.ID, Approval: b.approval(one)}, merging{Head: first.Head, Method: "merge"}); err != nil {
			t.Fatal(said, err)
		}
		said, err := b.merge(t.Context(), tools.Call{ThreadID: two.ID, Approval: b.approval(two)}, merging{Head: second.Head, Method: "merge"})
		if err == nil || !strings.Contains(err.Error(), "has conflicts with main") {
			t.Fatal(said, err)
		}
		if by := b.row(two).Merging; by != "" {
			t.Errorf("whoever merges it next does it by the approval %q", by)
		}
		pull, err := b.settledOf(two)
		if err != nil || pull.Mergeable != forge.MergeConflict {
			t.Fatal(pull.Mergeable, err)
		}
		p, _ := b.polls(two)
		if !strings.Contains(Trouble(p), "it has conflicts with the branch main") {
			t.Errorf("the session is asked to mend %q", Trouble(p))
		}
		input := []byte(`{"head":"` + second.Head + `","method":"merge"}`)
		if _, err := b.Look(t.Context(), two.ID, "U1", policy.Call{Tool: tools.Prefix + "merge_pull_request", Input: input}, nil); err == nil || !strings.Contains(err.Error(), "has conflicts with main, and is not merged: fetch") {
			t.Error("people are asked about it:", err)
		}
		b.git("fetch", "-q", "origin")
		b.git("checkout", "-q", two.Branch)
		b.git("merge", "-q", "-X", "ours", "--allow-unrelated-histories", "-m", "take in main", "origin/main")
		if p = b.opens(two); p.Head != b.git("rev-parse", "HEAD") || b.pulls() != 2 {
			t.Errorf("%+v", p)
		}
		if said, err := b.merge(t.Context(), tools.Call{ThreadID: two.ID, Approval: b.approval(two)}, merging{Head: p.Head, Method: "merge"}); err != nil {
			t.Error(said, err)
		}
	}
}

// settledOf is a pull request once the forge has found out whether it conflicts.
func (b *bench) settledOf(t threads.Thread) (forge.Pull, error) {
	_, _, r, err := b.of(context.Background(), t.ID, "")
	if err != nil {
		return forge.Pull{}, err
	}
	return b.settled(context.Background(), r, b.row(t).Number)
}

// TestAProjectOfPeopleAlone: where the bot does nothing in its own name, nobody is asked about what
// it could not do, and nothing is done for whoever has connected no account.
func TestAProjectOfPeopleAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := b.Projects["web"]
	p.PullRequests.AsPerson = true
	b.Projects["web"] = p
	th := b.thread("mended.txt", "Mended.")
	for name, do := range map[string]func() (any, error){
		"look": func() (any, error) {
			return b.Look(t.Context(), th.ID, "U1", policy.Call{Tool: tools.Prefix + "open_pull_request", Input: []byte(`{"title":"T","body":"B"}`)}, &forges.Push{Refs: []forges.PushRef{{}}})
		},
		"open": func() (any, error) {
			return b.open(t.Context(), tools.Call{ThreadID: th.ID, Approval: b.approval(th)}, opening{Title: "T"})
		},
	} {
		if _, err := do(); err == nil || !strings.Contains(err.Error(), "has connected no account at") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheForgeIsChecked: bot doctor says what of pull requests the credential may not read.
func TestTheForgeIsChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.Projects["web"].CheckForge(t.Context()); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/forge/web/pulls", "/status"} {
		b.fault(map[string]any{"path": path, "status": 403})
		if err := b.Projects["web"].CheckForge(t.Context()); err == nil || !strings.Contains(err.Error(), "does not tell of pull requests and their checks") || !strings.Contains(err.Error(), "may not") {
			t.Errorf("%s: %v", path, err)
		}
		b.heals()
	}
}
