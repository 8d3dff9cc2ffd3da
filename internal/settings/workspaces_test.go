package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/agent/place"
	"deckhand/internal/workspace"
)

// A project's setup is read as it is written, and one that could not run is refused.
func TestSetup(t *testing.T) {
	t.Parallel()
	with := func(line string) string {
		return strings.Replace(good, "    env: [GOPROXY]\n", "    "+line+"\n", 1)
	}
	c, err := ReadFile(write(t, with("setup: {run: npm ci, files: package-lock.json, timeout: 5m}")))
	if err != nil {
		t.Fatal(err)
	}
	want := workspace.Setup{Run: "npm ci", Files: []string{"package-lock.json"}, Timeout: 5 * time.Minute}
	if diff := cmp.Diff(want, c.Projects["web"].Setup); diff != "" {
		t.Errorf("it is (-want +got):\n%s", diff)
	}
	c, err = ReadFile(write(t, good+"workspaces: {max_age: 720h, max_size: 50GiB, keep: 128MiB}\n"))
	if want := (workspace.Limits{MaxAge: 720 * time.Hour, MaxBytes: 50 << 30, KeepBytes: 128 << 20}); err != nil || c.Workspaces != want {
		t.Errorf("workspaces: %+v, %v", c.Workspaces, err)
	}
	for text, want := range map[string]string{
		with("setup: {files: x}"):              ":5:13: projects.web.setup: a setup says what to run",
		with("setup: {run: x, files: ../x}"):   `:5:13: projects.web.setup: "../x" is no file below the project's folder`,
		with("setup: {run: x, timeout: 100h}"): "write an hour or less",
		strings.Replace(with("setup: {run: x}"), "workspace: worktree", "workspace: shared", 1): "set it up by hand",
		good + "workspaces: {max_age: 10m}\n":                                                   "workspaces.max_age: 10m0s is too short",
		good + "workspaces: {max_size: all}\n":                                                  `workspaces.max_size: "all" is not a size`,
		good + "workspaces: {keep: none}\n":                                                     "workspaces.keep: none is too small",
	} {
		if _, err := ReadFile(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A page is looked at in a sandbox that reaches nothing, at an address of its own.
func TestPreview(t *testing.T) {
	t.Parallel()
	with := func(lines string) string {
		return strings.Replace(good, "    env: [GOPROXY]\n", "    "+lines+"\n", 1)
	}
	c, err := ReadFile(write(t, with("preview: {run: npm start, url: 'http://localhost:3000/shop'}")))
	if err != nil {
		t.Fatal(err)
	}
	if want := (place.Preview{Run: "npm start", URL: "http://localhost:3000/shop"}); c.Projects["web"].Preview != want {
		t.Errorf("it is %+v", c.Projects["web"].Preview)
	}
	for text, want := range map[string]string{
		"preview: {run: npm start}":                                                                    `projects.web.preview: "" is not a page of the sandbox's own; write its address under url, such as http://localhost:3000/`,
		"preview: {url: 'http://localhost:3000/'}":                                                     "it says under run what starts the page",
		"preview: {run: x, url: 'http://example.com/'}":                                                "is not a page of the sandbox's own",
		"preview: {run: x, url: 'http://localhost/'}\n    sandbox: none":                               "sandbox: none is none",
		"preview: {run: x, url: 'http://localhost/'}\n    sandbox: {kind: command, command: [ssh, x]}": "sandbox: command is none",
	} {
		if _, err := ReadFile(write(t, with(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
