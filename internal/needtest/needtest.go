// Package needtest finds what tests need of the machine that they run on. What is not there
// skips the test; make test, which sets DECKHAND_TEST_REQUIRE=1, fails it.
package needtest

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Required reports whether a test must not be skipped.
func Required() bool { return os.Getenv("DECKHAND_TEST_REQUIRE") == "1" }

// Missing skips the test, or fails it where everything is required. why says what is missing and
// how to install it.
func Missing(tb testing.TB, why string) {
	tb.Helper()
	if Required() {
		tb.Fatal(why)
	}
	tb.Skip(why)
}

// Programs are the paths of programs, all of which the test needs.
func Programs(tb testing.TB, names ...string) []string {
	tb.Helper()
	paths := make([]string, len(names))
	for i, name := range names {
		path, err := exec.LookPath(name)
		switch {
		case err != nil && name == "strace" && runtime.GOOS != "linux":
			tb.Skip("only Linux has strace")
		case err != nil:
			Missing(tb, name+" is not installed: .ci/setup test")
		}
		paths[i] = path
	}
	return paths
}

// Program is the path of a program that the test needs.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	return Programs(tb, name)[0]
}

// Chromium is the path of the browser that a preview would find in PATH: see preview.sh.
func Chromium(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(tb, "no Chromium is in PATH: .ci/setup test")
	return ""
}

// Claude is the path of the Claude Code that DECKHAND_TEST_CLAUDE names, or of the pinned one.
func Claude(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv("DECKHAND_TEST_CLAUDE"); path != "" {
		return path
	}
	return ClaudeOf(tb, PinnedClaude(tb))
}

// ClaudeOf is the path of a version of Claude Code, such as 2.1.276.
func ClaudeOf(tb testing.TB, version string) string {
	tb.Helper()
	path, ok := CachedClaude(version)
	if !ok {
		Missing(tb, "Claude Code "+version+" is not in the cache: run deploy/claude/install.sh "+version)
	}
	return path
}

// CachedClaude finds a version of Claude Code in the cache of deploy/claude/install.sh.
func CachedClaude(version string) (path string, ok bool) {
	cache := os.Getenv("DECKHAND_CACHE")
	if cache == "" {
		base := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(os.Getenv("HOME"), ".cache"))
		cache = filepath.Join(base, "deckhand")
	}
	dir := filepath.Join(cache, "claude", version)
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	found, _ := filepath.Glob(filepath.Join(dir, "node_modules/@anthropic-ai", "claude-code-"+runtime.GOOS+"-"+arch+"*", "claude")) // the pattern is right
	for _, path := range append(found, filepath.Join(dir, "claude")) {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// PinnedClaude is the version that deploy/claude/package.json pins.
func PinnedClaude(tb testing.TB) string {
	tb.Helper()
	up := "deploy/claude/package.json" // of the module's folder, above the package's
	for range 8 {
		if _, err := os.Stat(up); err == nil {
			break
		}
		up = filepath.Join("..", up)
	}
	b, err := os.ReadFile(up)
	if err != nil {
		tb.Fatal(err)
	}
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(b, &p); err != nil {
		tb.Fatal(err)
	}
	version := p.Dependencies["@anthropic-ai/claude-code"]
	if version == "" || strings.ContainsAny(version, "^~*") {
		tb.Fatalf("%s pins no Claude Code", up)
	}
	return version
}
