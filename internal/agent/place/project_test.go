package place

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/workspace"
)

// A session works in the project's subfolder, where that is a folder still.
func TestTheFolderOfASession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "services/web"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.Symlink("services", filepath.Join(dir, "inside")), os.Symlink("/etc", filepath.Join(dir, "outside"))); err != nil {
		t.Fatal(err)
	}
	for subdir, want := range map[string]string{"": "", "services/web": "services/web", "services/api": "", "file": "", "outside": "", "inside/web": ""} {
		if got := (Project{Subdir: subdir}).Folder(dir); got != filepath.Join(dir, want) {
			t.Errorf("%q: %s", subdir, got)
		}
	}
}

// What git, the forge or the machine says of a branch is for the log; people get a sentence of ours.
func TestWhyNoWorkStartsFromABranch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", "src"},
		{"-C", "src", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--allow-empty", "--message", "first"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	forge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "secret-word: no such tenant", http.StatusForbidden)
	}))
	t.Cleanup(forge.Close)
	src := filepath.Join(dir, "src")
	for name, tt := range map[string]struct {
		p            Project
		branch, want string
		inLog        string
	}{
		"there":              {p: Project{Dir: src}, branch: "main"},
		"there, by address":  {p: Project{Repo: src}, branch: "main"},
		"none":               {p: Project{Dir: src}, branch: "mian", want: "Project web has no branch “mian”."},
		"none, by address":   {p: Project{Repo: src}, branch: "mian", want: "Project web has no branch “mian”."},
		"below another":      {p: Project{Dir: src}, branch: "main/sub", want: "Project web has no branch “main/sub”."},
		"no name":            {p: Project{Dir: src}, branch: "a//b", want: "a plain name"},
		"a thread's":         {p: Project{Dir: src}, branch: "deckhand/1", want: "not below deckhand/"},
		"a forge that is no": {p: Project{Repo: forge.URL + "/team/web.git"}, branch: "main", want: "cannot be looked up now. If that stays so, an admin finds the reason by bot doctor.", inLog: "403"},
		"no repository":      {p: Project{Dir: dir}, branch: "main", want: "cannot be looked up now", inLog: dir},
		"shared":             {p: Project{Dir: src, Workspace: workspace.Shared}, branch: "main", want: "no branches of their own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tt.p
			if p.Name = "web"; p.Workspace == "" {
				p.Workspace = workspace.Worktree
			}
			refused, err := p.CheckBranch(t.Context(), tt.branch)
			if !strings.Contains(refused, tt.want) || (refused == "") != (tt.want == "") {
				t.Errorf("people are told %q", refused)
			}
			if (err == nil) != (tt.inLog == "") || err != nil && !strings.Contains(err.Error(), tt.inLog) {
				t.Errorf("the log gets %v", err)
			}
			for _, no := range []string{dir, forge.URL, "secret-word", "403", "fatal", "git "} {
				if strings.Contains(refused, no) {
					t.Errorf("people are told %q", refused)
				}
			}
		})
	}
}
