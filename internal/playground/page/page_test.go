package page

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inputs are what a build is made from; build/stamp.ts names the same.
var inputs = []string{"build", "index.html", "package-lock.json", "package.json", "public", "src", "tsconfig.json", "vite.config.ts"}

var testSource = regexp.MustCompile(`\.test\.tsx?$`)

func TestDistIsBuiltFromTheSources(t *testing.T) {
	t.Parallel()
	var record struct {
		Sources string `json:"sources"`
		Dist    string `json:"dist"`
	}
	raw, err := os.ReadFile("dist/build.json")
	if err != nil {
		t.Fatalf("read the build's record: %v", err)
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		t.Fatalf("decode the build's record: %v", err)
	}
	here := os.DirFS(".")
	if got := digest(t, here, inputs, func(name string) bool { return !testSource.MatchString(name) }); got != record.Sources {
		t.Errorf("dist is older than its sources (digest %s, built from %s): run npm ci && npm run build in %s", got, record.Sources, "internal/playground/page")
	}
	dist, err := fs.Sub(here, "dist")
	if err != nil {
		t.Fatal(err)
	}
	if got := digest(t, dist, []string{"."}, func(name string) bool { return name != "build.json" }); got != record.Dist {
		t.Errorf("dist was changed after it was built (digest %s, want %s): run npm ci && npm run build", got, record.Dist)
	}
}

// digest is the SHA-256 of a list as sha256sum prints it, in byte order of the names.
func digest(t *testing.T, root fs.FS, from []string, wanted func(string) bool) string {
	t.Helper()
	var lines []string
	for _, start := range from {
		err := fs.WalkDir(root, start, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !wanted(name) {
				return err
			}
			body, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(body), filepath.ToSlash(name)))
			return nil
		})
		if err != nil {
			t.Fatalf("walk %s: %v", start, err)
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

func TestHandlerServesThePage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(Handler())
	t.Cleanup(server.Close)

	index, header := get(t, server.URL+"/", http.StatusOK)
	if got, want := header.Get("Content-Type"), "text/html; charset=utf-8"; got != want {
		t.Errorf("Content-Type of the page = %q, want %q", got, want)
	}
	if got, want := header.Get("Cache-Control"), "no-cache"; got != want {
		t.Errorf("Cache-Control of the page = %q, want %q", got, want)
	}
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(header.Get("Content-Security-Policy"), rule) {
			t.Errorf("Content-Security-Policy lacks %q: %s", rule, header.Get("Content-Security-Policy"))
		}
	}

	assets := regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(index, -1)
	if len(assets) < 3 {
		t.Fatalf("the page names %d assets, want its script, style and icon:\n%s", len(assets), index)
	}
	for _, match := range assets {
		_, header := get(t, server.URL+match[1], http.StatusOK)
		if got, want := header.Get("Content-Type"), contentTypes[path.Ext(match[1])]; got != want {
			t.Errorf("Content-Type of %s = %q, want %q", match[1], got, want)
		}
		if immutable := strings.Contains(header.Get("Cache-Control"), "immutable"); immutable != strings.HasPrefix(match[1], "/assets/") {
			t.Errorf("Cache-Control of %s = %q", match[1], header.Get("Cache-Control"))
		}
	}
	get(t, server.URL+"/assets/", http.StatusNotFound)
	get(t, server.URL+"/nothing", http.StatusNotFound)
	get(t, server.URL+"/index.html/../../page.go", http.StatusNotFound)
}

func TestPermalinksLeadToTheMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to string }{
		{"/archives/C0ENG/p1712345678000100", "/#/c/C0ENG/t/1712345678.000100"},
		{"/archives/C0ENG/p1712345679000200?thread_ts=1712345678.000100&cid=C0ENG", "/#/c/C0ENG/t/1712345678.000100"},
		{"/archives/C0ENG/pnonsense", ""},
		{"/archives/C0ENG/p12", ""},
	} {
		recorder := httptest.NewRecorder()
		Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.from, nil))
		if got := recorder.Header().Get("Location"); got != c.to {
			t.Errorf("%s leads to %q, want %q", c.from, got, c.to)
		}
	}
}

// TestThePageIsSelfContained holds the promise that nothing is loaded from
// elsewhere: no source maps, no foreign scripts, fonts or styles.
func TestThePageIsSelfContained(t *testing.T) {
	t.Parallel()
	files, err := load()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range files {
		total += len(file.body)
		if strings.HasSuffix(file.name, ".map") || strings.Contains(string(file.body), "sourceMappingURL") {
			t.Errorf("%s is or names a source map", file.name)
		}
		if path.Ext(file.name) != ".css" {
			continue
		}
		if match := regexp.MustCompile(`@import|@font-face|url\([^)]*\)`).Find(file.body); match != nil {
			t.Errorf("%s loads a style, font or image: %s", file.name, match)
		}
	}
	if limit := 700_000; total > limit {
		t.Errorf("the built files are %d bytes, more than %d", total, limit)
	}
}

func get(t *testing.T, url string, want int) (string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // nothing to be done about it
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != want {
		t.Fatalf("GET %s = %d, want %d", url, response.StatusCode, want)
	}
	return string(body), response.Header
}
