package forge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

const (
	ofMerge = "PUT :/merge_requests/5/merge"
	ofRead  = "GET :/merge_requests/5"
)

func user(id int, name string) o {
	return o{"id": id, "username": name, "name": strings.ToUpper(name), "state": "active", "avatar_url": "", "web_url": ""}
}

// gitLabSays is what GitLab says where nothing is wrong.
func gitLabSays(operation string, a asked) (int, any) {
	body, _ := a.Body.(o)
	request := o{
		"iid": 5, "state": "opened", "title": "Draft: [Draft] Fix it", "draft": true, "source_branch": "deckhand/1", "target_branch": "main", "source_project_id": 1, "target_project_id": 1,
		"sha": head, "author": user(7, "deckhand"), "detailed_merge_status": "draft_status", "has_conflicts": false, "labels": []any{},
	}
	switch operation {
	case "GET /user":
		return 200, patch(user(7, "deckhand"), o{"bot": true})
	case "GET /users":
		if a.Query["username"] != "ann" {
			return 200, []any{}
		}
		return 200, []any{user(8, "ann")}
	case "GET :":
		return 200, o{"id": 1, "default_branch": "trunk", "merge_method": "merge"}
	case "GET :/labels":
		return 200, []any{o{"name": "bug"}}
	case "POST :/merge_requests":
		return 201, patch(request, o{"title": body["title"], "draft": strings.HasPrefix(body["title"].(string), "Draft:")})
	case "GET :/merge_requests":
		return 200, []any{patch(request, o{"iid": 4, "source_project_id": 2}), request}
	case ofMerge:
		return 200, patch(request, o{"state": "merged", "merge_commit_sha": other})
	case "PUT :/merge_requests/5":
		return 200, patch(request, o{"title": body["title"], "draft": false})
	case "GET :/repository/commits/" + head + "/statuses":
		status := func(id int, name, is string, may bool) o {
			return o{"id": id, "name": name, "status": is, "allow_failure": may, "target_url": "https://gitlab.example/-/jobs/1"}
		}
		return 200, []any{
			status(31, "test", "failed", false), status(30, "test", "success", false), status(32, "lint", "success", false), status(33, "flaky", "failed", true),
			status(34, "deploy", "manual", true), status(35, "slow", "running", false), status(36, "gate", "manual", false), status(37, "old", "canceled", false),
		}
	case "GET :/merge_requests/5/approvals":
		return 200, o{"approved_by": []any{o{"user": user(8, "ann"), "approved_at": "2026-01-02T03:05:00Z"}}}
	case "GET :/merge_requests/5/reviewers":
		return 200, []any{o{"user": user(9, "bob"), "state": "requested_changes"}, o{"user": user(8, "ann"), "state": "approved"}}
	case "GET :/merge_requests/5/notes":
		note := func(id int, who, text string, system bool, kind any) o {
			return o{"id": id, "author": user(1, who), "body": text, "system": system, "type": kind, "created_at": fmt.Sprintf("2026-01-02T03:04:%02dZ", id)}
		}
		return 200, []any{note(1, "bob", "Not so", false, absent), note(2, "cy", "Nice", false, absent), note(3, "cy", "approved this", true, absent), note(4, "dan", "on a line", false, "DiffNote")}
	case "GET :/merge_requests/5/discussions":
		note := func(who, text string, resolvable, resolved bool) o {
			return o{"id": 1, "type": "DiscussionNote", "attachment": nil, "updated_at": "2026-01-02T03:04:05Z", "noteable_id": 1, "noteable_type": "MergeRequest", "noteable_iid": 5, "author": user(1, who), "body": text, "resolvable": resolvable, "resolved": resolved, "system": false, "created_at": "2026-01-02T03:04:05Z"}
		}
		return 200, []any{
			o{"id": "1", "individual_note": true, "notes": []any{note("ann", "All in all", false, false)}},
			o{"id": thread, "individual_note": false, "notes": []any{
				patch(note("ann", "Why?", true, false), o{"position": o{"new_path": "a.go", "new_line": 3}}), note("deckhand", "So.", true, true),
			}},
			o{"id": head, "individual_note": false, "notes": []any{note("bob", "And the docs?", true, true)}},
		}
	case "POST :/merge_requests/5/discussions/" + thread + "/notes":
		return 201, o{"body": body["body"]}
	case "PUT :/merge_requests/5/discussions/" + thread:
		return 200, o{}
	}
	return 200, request
}

// serveFiles answers what is no JSON.
func serveFiles(s *answerer, trace http.HandlerFunc) {
	const files = "GET /api/v4/projects/team%2Fsub%2Fweb/repository/files/"
	missing := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"message":"404 File Not Found"}`)
	}
	for _, name := range []string{"CODEOWNERS", ".gitlab%2Fmerge_request_templates%2FDefault.md"} {
		s.raw[files+strings.ReplaceAll(name, ".", "%2E")+"/raw"] = missing
		s.raw[files+name+"/raw"] = missing
	}
	for name, text := range map[string]string{"docs%2FCODEOWNERS": "* @ann", ".gitlab%2Fmerge_request_templates%2Fdefault.md": "## Why"} {
		serve := func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			s.calls = append(s.calls, asked{Method: r.Method, Path: r.URL.EscapedPath(), Query: map[string]string{"ref": r.URL.Query().Get("ref")}})
			s.mu.Unlock()
			_, _ = io.WriteString(w, text)
		}
		s.raw[files+strings.ReplaceAll(name, ".", "%2E")+"/raw"] = serve
		s.raw[files+name+"/raw"] = serve
	}
	s.raw["GET /api/v4/projects/team%2Fsub%2Fweb/jobs/31/trace"] = func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls = append(s.calls, asked{Method: r.Method, Path: r.URL.EscapedPath()})
		s.mu.Unlock()
		trace(w, r)
	}
}

// What GitLab's JavaScript client asks for the same, and takes for answers.
func TestGitLab(t *testing.T) {
	t.Parallel()
	for _, below := range []string{"", "/git/lab"} {
		s, r := gitLabBelow(t, below, gitLabSays)
		speaksGitLab(t, s, r)
		if site, err := Site(Config{Kind: GitLab, URL: s.URL + below + "/team/sub/web.git", API: s.URL + below + "/api/v4"}); err != nil || site.String() != s.URL+below {
			t.Errorf("its own pages are at %v (%v), want %s", site, err, s.URL+below)
		}
	}
}

func speaksGitLab(t *testing.T, s *answerer, r Repository) {
	const stamp = "2026-01-02T03:04:05.123456Z 00O "
	serveFiles(s, func(w http.ResponseWriter, _ *http.Request) {
		for _, text := range []string{
			"section_start:1:get_sources\r\x1b[0K\x1b[36;1mGetting source\x1b[0;m", "section_end:1:get_sources\r\x1b[0K",
			"section_start:2:step_script\r\x1b[0K\x1b[36;1mExecuting\x1b[0;m", "\x1b[32;1m$ go test\x1b[0;m", "10%\r50%\r  want 1", "section_end:3:step_script\r\x1b[0K",
			"section_start:3:cleanup\r\x1b[0Kremoving", "section_end:4:cleanup\r\x1b[0K", "\x1b[31;1mERROR: Job failed: exit code 1", "",
		} {
			fmt.Fprint(w, stamp+text+"\n")
		}
	})
	ctx := t.Context()
	same(t, "me", must[Account](t)(r.Me(ctx)), Account{ID: 7, Login: "deckhand"})
	same(t, "default branch", must[string](t)(r.DefaultBranch(ctx)), "trunk")
	same(t, "template", must[string](t)(r.Template(ctx)), "## Why")
	same(t, "owners", must[string](t)(r.CodeOwners(ctx, "main")), "* @ann")
	p := must[Pull](t)(r.Open(ctx, NewPull{Title: "Fix it", Body: "It was broken.", Branch: "deckhand/1", Base: "main", Draft: true, Labels: []string{"bug", "none"}, Reviewers: []string{"ann", "team/x", "nobody"}}))
	same(t, "what was asked", s.did("POST", "/merge_requests"), []any{o{
		"title": "Draft: Fix it", "description": "It was broken.", "source_branch": "deckhand/1", "target_branch": "main", "labels": "bug", "reviewer_ids": []any{8.0},
	}})
	want := Pull{
		Number: 5, URL: p.URL, Title: "Fix it", Body: p.Body, State: Open, Draft: true, Branch: "deckhand/1", Base: "main", Head: head, Author: "deckhand", Mergeable: MergeBlocked,
	}
	same(t, "those who could not be asked", p.Unasked, []string{"team/x", "nobody"})
	same(t, "the labels that there are not", p.Unlabelled, []string{"none"})
	p.Unasked, p.Unlabelled = nil, nil
	same(t, "opened", p, want)
	same(t, "found", must[Pull](t)(r.Find(ctx, "deckhand/1")), want)
	if p := must[Pull](t)(r.Open(ctx, NewPull{Title: "draft: Fix it", Branch: "deckhand/1", Base: "main"})); p.Draft {
		t.Error("a title has made a draft")
	}
	must[any](t)(nil, r.MarkReady(ctx, 5))
	same(t, "merged", must[string](t)(r.Merge(ctx, 5, NewMerge{Head: head, Method: MergeSquash})), other)
	same(t, "merged with a commit", must[string](t)(r.Merge(ctx, 5, NewMerge{Head: head, Method: MergeCommit})), other)
	same(t, "the merge", s.did("PUT", "/merge"), []any{o{"sha": head, "squash": true}, o{"sha": head, "squash": false}})
	var got []string
	for _, c := range must[[]Check](t)(r.Checks(ctx, head)) {
		got = append(got, c.ID+" "+c.Name+" "+string(c.State))
	}
	same(t, "checks", got, []string{"34 deploy skipped", "33 flaky skipped", "36 gate pending", "32 lint passed", "37 old skipped", "35 slow pending", "31 test failed"})
	same(t, "log", must[string](t)(r.FailureLog(ctx, Check{ID: "31"}, 1000)), "Executing\n$ go test\n  want 1\nERROR: Job failed: exit code 1")
	var said []string
	for _, one := range must[[]Review](t)(r.Reviews(ctx, 5)) {
		said = append(said, one.Author+" "+string(one.Verdict)+" "+one.Body)
	}
	same(t, "reviews", said, []string{"bob changes_requested Not so", "cy commented Nice", "ann approved "})
	same(t, "discussions", must[[]Discussion](t)(r.Discussions(ctx, 5)), []Discussion{
		{ID: thread, Path: "a.go", Line: 3, Comments: []Comment{{"ann", "Why?"}, {"deckhand", "So."}}},
		{ID: head, Resolved: true, Comments: []Comment{{"bob", "And the docs?"}}},
	})
	must[any](t)(nil, r.Reply(ctx, 5, thread, "Done."))
	must[any](t)(nil, r.Resolve(ctx, 5, thread))
	if err := r.Resolve(ctx, 5, "../../4"); ReasonOf(err) != NotFound {
		t.Errorf("another address: %v", err)
	}
	// The second client asks the same, but for the pages.
	for name, theirs := range s.d.Requests {
		if name == "statuses of a pipeline" || name == "requests of a commit" {
			continue // TestGitLabsMergedResults
		}
		if name == "open" {
			theirs.Body.(o)["reviewer_ids"] = []any{8.0}
		}
		if !s.asked(theirs) {
			t.Errorf("%s: GitLab's own client asks %s %s %v", name, theirs.Method, theirs.Path, theirs.parameters())
		}
	}
}

func (s *answerer) asked(theirs asked) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.calls {
		path := strings.ReplaceAll(a.Path, "%2E", ".")
		if a.Method == theirs.Method && path == theirs.Path && a.parameters().Encode() == theirs.parameters().Encode() {
			return true
		}
	}
	return false
}

// A pipeline of merged results ran for another commit than the head.
func TestGitLabsMergedResults(t *testing.T) {
	t.Parallel()
	s, r := gitLabAPI(t, func(operation string, a asked) (int, any) {
		_, request := gitLabSays(ofRead, a)
		switch operation {
		case "GET :/repository/commits/" + head + "/statuses":
			return 200, []any{}
		case "GET :/repository/commits/" + head + "/merge_requests":
			return 200, []any{request, patch(request, o{"iid": 6, "state": "closed"})}
		case ofRead:
			return 200, patch(request, o{"head_pipeline": o{
				"id": 9, "iid": 1, "project_id": 1, "sha": other, "before_sha": head, "ref": "refs/merge-requests/5/merge", "source": "merge_request_event", "status": "failed", "tag": false, "web_url": "", "duration": 1,
				"created_at": "2026-01-02T03:04:05Z", "started_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z", "finished_at": "2026-01-02T03:04:05Z",
				"user": user(7, "deckhand"), "detailed_status": o{"icon": "", "text": "", "label": "", "group": "", "tooltip": "", "has_details": false, "details_path": "", "favicon": ""},
			}})
		case "GET :/repository/commits/" + other + "/statuses":
			return 200, []any{o{"id": 31, "name": "test", "status": "failed"}}
		}
		return gitLabSays(operation, a)
	})
	checks := must[[]Check](t)(r.Checks(t.Context(), head))
	if len(checks) != 1 || checks[0].State != CheckFailed {
		t.Errorf("%v", checks)
	}
	for _, name := range []string{"statuses of a pipeline", "requests of a commit"} {
		theirs := s.d.Requests[name]
		theirs.Path = strings.ReplaceAll(theirs.Path, head+"/statuses", other+"/statuses")
		if !s.asked(theirs) {
			t.Errorf("%s: GitLab's own client asks %s %s %v", name, theirs.Method, theirs.Path, theirs.parameters())
		}
	}
}

func TestGitLabsRefusals(t *testing.T) {
	t.Parallel()
	merge, open, read := regexp.MustCompile(`/merge$`), regexp.MustCompile(`^POST :/merge_requests$`), regexp.MustCompile(`^GET :/merge_requests/5$`)
	says := func(message any) o { return o{"message": message} }
	ready := o{"draft": false, "detailed_merge_status": "ci_must_pass"}
	plain := func(t *testing.T, r Repository) error {
		_, err := r.Merge(t.Context(), 5, NewMerge{Head: head, Method: MergeRebase})
		return err
	}
	for _, c := range []refusalCase{
		{"head moved", merge, 409, says("SHA does not match HEAD of source branch: " + other), ready, mergeIt, Moved, "new commits since", false},
		{"head moved, and a rule first", merge, 405, says("405 Method Not Allowed"), o{"sha": other}, mergeIt, Moved, "new commits since", false},
		{"not yet", merge, 405, says("405 Method Not Allowed"), ready, mergeIt, Blocked, "does not let it be merged yet", false},
		{"a draft", merge, 405, says("405 Method Not Allowed"), nil, mergeIt, Blocked, "Mark it as ready first", false},
		{"conflict", merge, 422, says("Branch cannot be merged"), o{"draft": false, "detailed_merge_status": "conflict"}, mergeIt, Blocked, "conflicts with main", false},
		{"cannot", merge, 422, says("Branch cannot be merged"), ready, mergeIt, Blocked, "Branch cannot be merged", false},
		{"closed", merge, 405, says("405 Method Not Allowed"), o{"state": "closed"}, mergeIt, Blocked, "is closed", false},
		{"may not merge", merge, 401, says("401 Unauthorized"), nil, mergeIt, Denied, "merge into this branch", false},
		{"half a merge", merge, 200, `{"iid":5,"sta`, nil, mergeIt, Unavailable, "half of one", false},
		{"not merged", merge, 200, `{"iid":5,"state":"opened"}`, nil, mergeIt, Unavailable, "half of one", false},
		{"method", merge, 500, "", nil, plain, Unsupported, "makes merge commits", false},
		{"exists", open, 409, says([]any{"Another open merge request already exists for this source branch: !5"}), nil, openIt, Exists, "open already", false},
		{"invalid", open, 400, says(o{"target_branch": []any{"can't be blank"}}), nil, openIt, Invalid, "can't be blank", false},
		{"scope", open, 403, o{"error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token."}, nil, openIt, Denied, "the scope api", false},
		{"role", open, 403, says("403 Forbidden"), nil, openIt, Denied, "the role Developer", false},
		{"limit", read, 429, "Retry later", nil, readIt, RateLimited, "no more calls", false},
		{"expired", read, 401, o{"error": "invalid_token", "error_description": "Token was revoked."}, nil, readIt, Denied, "give a new one", false},
		{"gone", read, 404, says("404 Project Not Found"), nil, readIt, NotFound, "no such thing", false},
		{"broken", read, 502, "<html>", nil, readIt, Unavailable, "does not work", false},
		{"another thing", read, 200, `{"id":1}`, nil, readIt, Unavailable, "half of one", false},
		{"empty", read, 200, "", nil, readIt, Unavailable, "half of one", false},
	} {
		c.run(t, gitLabAPI, gitLabSays, ofRead)
	}
}

// Nothing is asked a second time without being told to: a merge that was asked twice would
// be two.
func TestGitLabIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(s.Close)
	r, err := New(Config{Kind: GitLab, URL: s.URL + "/below/team/web.git", API: s.URL + "/below/api/v4", Token: func(context.Context) (string, error) { return "canary", nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Pull(t.Context(), 5); ReasonOf(err) != Unavailable || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if got := r.(*ofGitLab).project; got != "team/web" {
		t.Errorf("below a path the project is %s", got)
	}
}

// What GitLab's documentation says of uploads, which its JavaScript client's description here does
// not have: a form with a file, and an answer with the Markdown.
func TestGitLabsPictures(t *testing.T) {
	t.Parallel()
	s, r := gitLabAPI(t, gitLabSays)
	var said []string
	s.raw["POST /api/v4/projects/team%2Fsub%2Fweb/uploads"] = func(w http.ResponseWriter, r *http.Request) {
		file, header, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		b, _ := io.ReadAll(file)
		said = append(said, header.Filename+" "+string(b))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":5,"alt":"before","url":"/uploads/66/before.png","full_path":"/-/project/1/uploads/66/before.png","markdown":"![before](/uploads/66/before.png)"}`)
	}
	s.raw["POST /api/v4/projects/team%2Fsub%2Fweb/merge_requests/5/notes"] = func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		said = append(said, string(b))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":1,"body":"x"}`)
	}
	to := r.(Pictures) //nolint:forcetypeassert // the test is about it
	shown := must[string](t)(to.Picture(t.Context(), 5, "before.png", []byte("pixels")))
	must[any](t)(nil, to.Comment(t.Context(), 5, shown))
	same(t, "said", said, []string{"before.png pixels", `{"body":"![before](/uploads/66/before.png)"}`})
	if _, ok := Repository(&ofGitHub{}).(Pictures); ok {
		t.Error("GitHub takes no pictures by its API")
	}
}

// TestGitLabDoesNothingByWords: a line such as /merge in a text is shown, and not carried out.
func TestGitLabDoesNothingByWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"It works.\n/merge":                "It works.\n\\/merge",
		"/approve\r\n \t/assign @ann\n":    "\\/approve\n \t\\/assign @ann\n",
		"/label ~bug\n\n/unlabel_all":      "\\/label ~bug\n\n\\/unlabel_all",
		"see /merge, /usr/bin\n/usr/bin/x": "see /merge, /usr/bin\n/usr/bin/x",
		"a\r/merge":                        "a/merge",
	} {
		if got := words(text); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	s, r := gitLabAPI(t, gitLabSays)
	must[Pull](t)(r.Open(t.Context(), NewPull{Title: "Fix it", Body: "Fix\n/merge", Branch: "deckhand/1", Base: "main"}))
	must[any](t)(nil, r.Reply(t.Context(), 5, thread, "/merge"))
	for _, path := range []string{"/merge_requests", "/merge_requests/5/discussions/" + thread + "/notes"} {
		if got := fmt.Sprint(s.did("POST", path)); !strings.Contains(got, "\\/merge") {
			t.Errorf("GitLab is told %s", got)
		}
	}
}
