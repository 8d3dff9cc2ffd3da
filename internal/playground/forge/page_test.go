package forge

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// served serves a forge with one repository, a branch beside main and a pull request.
func served(t *testing.T) (dir, base string) {
	t.Helper()
	from, dir := t.TempDir(), t.TempDir()
	write(t, from, "quote.js", "export const rate = 2\nexport const days = 3\n")
	sh(t, from, "git init -q -b main && git add . && git commit -qm First && git checkout -qb deckhand/7-mend")
	write(t, from, "quote.js", "export const rate = 2\nexport const days = 4 // <script>alert(1)</script>\n")
	sh(t, from, "git commit -qam 'Count the last day'")
	if err := Make(dir, "boathouse.git", from); err != nil {
		t.Fatal(err)
	}
	base = serve(t, dir)
	post(t, base+"/api/v1/repos/forge/boathouse/pulls", `{"head": "deckhand/7-mend", "base": "main", "title": "Count the last day",
		"body": "The **last day** was free.\n\n- mended in `+"`quote.js`"+`\n\n<img src=x onerror=alert(1)> [here](javascript:alert(1))"}`)
	return dir, base
}

func serve(t *testing.T, dir string) string {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	f, err := New(dir, func() string { return s.URL })
	if err != nil {
		t.Fatal(err)
	}
	f.Register(mux)
	return s.URL
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b.example", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b.example")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

func post(t *testing.T, at, body string) string {
	t.Helper()
	response, err := http.Post(at, "application/json", strings.NewReader(body)) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s: %s: %v: %s", at, response.Status, err, text)
	}
	return string(text)
}

func read(t *testing.T, client *http.Client, at string, form url.Values) string {
	t.Helper()
	response, err := client.Get(at) //nolint:noctx // a test
	if form != nil {
		response, err = client.PostForm(at, form) //nolint:noctx // a test
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func says(t *testing.T, page string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}

// TestThePage: a pull request is read, reviewed, checked and merged by people, and nothing
// that somebody wrote in it runs. All of it is there after a restart.
func TestThePage(t *testing.T) {
	t.Parallel()
	dir, base := served(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	says(t, read(t, client, base+"/forge/", nil), "Count the last day", "/forge/boathouse/pulls/1")
	at := base + "/forge/boathouse/pulls/1"
	page := read(t, client, at, nil)
	says(t, page, "<strong>last day</strong>", "export const days = 4 // &lt;script&gt;", "wants to bring <code>deckhand/7-mend</code>", "?line=2&amp;path=quote.js#review")
	for _, no := range []string{"<script", "<img", "javascript:"} {
		if strings.Contains(page, no) {
			t.Errorf("the page has %q", no)
		}
	}
	page = read(t, client, at, url.Values{"user": {"grace"}, "do": {"changes_requested"}, "body": {"Why <b>4</b>?"}, "path": {"quote.js"}, "line": {"2"}})
	says(t, page, "Changes requested</strong> by Grace Approver", `class="said"`, "Why", `value="grace" selected`)
	says(t, read(t, client, at, url.Values{"user": {"mallory"}, "do": {"merge"}}), "User not allowed to merge PR")
	says(t, read(t, client, at, url.Values{"user": {"grace"}, "do": {"check"}, "name": {"test"}, "state": {"failure"}, "body": {"not ok 3"}}), `class="failure"`, "not ok 3")
	post(t, base+"/_control/forge/checks", `{"branch": "deckhand/7-mend", "name": "test", "state": "success", "log": "ok 3"}`)
	post(t, base+"/_control/forge/reviews", `{"number": 1, "user": "U0GRACE", "verdict": "approved"}`)
	says(t, read(t, client, at, nil), `class="success"`, "Approved</strong> by Grace Approver")
	says(t, post(t, base+"/_control/forge/merge", `{"number": 1, "user": "U0ADA"}`), `"merged":true`, `"login":"ada"`)

	again := serve(t, dir)
	says(t, read(t, client, again+"/forge/boathouse/pulls/1", nil), "merged by Ada Admin", "Why", "ok 3", "days = 4")
	if got := sh(t, filepath.Join(dir, "boathouse.git"), "git log -1 --format='%an: %s' main"); got != "Ada Admin: Merge pull request 'Count the last day' (#1) from deckhand/7-mend into main" {
		t.Errorf("main is at %q", got)
	}
}

// TestTheForgeIsForItsOwnPages: what another site's page sends is refused, and so is a name
// that was rebound to loopback.
func TestTheForgeIsForItsOwnPages(t *testing.T) {
	t.Parallel()
	_, base := served(t)
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		func(r *http.Request) { r.Header.Set("Origin", "https://elsewhere.example") },
		func(r *http.Request) { r.Host = "elsewhere.example" },
	} {
		for _, at := range []string{"/forge/boathouse/pulls/1", "/_control/forge/merge", "/api/v1/repos/forge/boathouse/pulls/1/merge"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+at, strings.NewReader(`{"number": 1, "user": "ada"}`))
			if err != nil {
				t.Fatal(err)
			}
			change(r)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s", at, response.Status)
			}
		}
	}
	for _, name := range []string{"..%2fboathouse", ".git", "boathouse%2f..%2fboathouse", "none"} {
		response, err := http.Get(base + "/api/v1/repos/forge/" + name) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", name, response.Status)
		}
	}
}
