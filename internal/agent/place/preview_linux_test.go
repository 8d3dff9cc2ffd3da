package place

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/needtest"
	"deckhand/internal/sandbox"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
	"deckhand/internal/workspace"
)

// answer is how long a page or a browser has: a browser that hangs is started three times within
// a test's limit.
const answer = waittest.Limit / 15

// page is a project with a page in a repository, and a thread of it.
type page struct {
	*Host
	Project
	t      *testing.T
	thread threads.Thread
	outer  string // a listener that no sandbox reaches
}

func newPage(t *testing.T, kind sandbox.Kind, files map[string]string) *page {
	t.Helper()
	needtest.Chromium(t)
	needtest.Program(t, map[sandbox.Kind]string{sandbox.Bwrap: "bwrap", sandbox.GVisor: "runsc"}[kind])
	home, err := os.UserHomeDir() // the folder for temporary files is a sandbox's own
	must(t, err)
	dir, err := os.MkdirTemp(home, ".deckhand-preview-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	self, err := os.Executable()
	must(t, err)
	server := filepath.Join(dir, "page-server")
	binary, err := os.ReadFile(self)
	must(t, err)
	must(t, os.WriteFile(server, binary, 0o755))
	outer, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	must(t, err)
	t.Cleanup(func() { _ = outer.Close() })

	p := &page{t: t, outer: outer.Addr().String(), Host: &Host{
		DataDir: filepath.Join(dir, "data"), Replica: "r", Hidden: []string{filepath.Join(dir, "data")}, Keeper: &workspace.Keeper{DataDir: filepath.Join(dir, "data")}, Answer: answer,
	}}
	p.Project = Project{
		Name: "web", Dir: filepath.Join(dir, "web"), Workspace: workspace.Worktree,
		Sandbox: sandbox.Spec{Kind: kind, See: []string{server}, Caches: []string{"kept"}, Network: sandbox.Open},
		Preview: Preview{Run: "echo x >>~/kept/runs; exec env " + pageVariable + "=" + p.outer + " " + server, URL: "http://localhost:3000/shop?a=1#b"},
	}
	must(t, os.MkdirAll(p.Dir, 0o755))
	p.git(p.Dir, "init", "--quiet", "--initial-branch=main")
	p.write(p.Dir, files)
	p.git(p.Dir, "add", ".")
	p.git(p.Dir, "commit", "--quiet", "-m", "first")
	p.thread = threads.Thread{ID: 7, Branch: "deckhand/7-shop"}
	p.thread.Workspace, _, err = p.Host.Workspace(t.Context(), p.thread, p.Project)
	must(t, err)
	return p
}

func (p *page) git(dir string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@y"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatal(err, string(out))
	}
	return strings.TrimSpace(string(out))
}

func (p *page) write(dir string, files map[string]string) {
	p.t.Helper()
	for name, text := range files {
		must(p.t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(p.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

func (p *page) look() (Pictures, error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), waittest.Limit)
	defer cancel()
	got, err := p.Look(ctx, p.thread, p.Project)
	if why := cmp.Or(got.Why, fmt.Sprint(err)); p.Sandbox.Kind == sandbox.GVisor && strings.HasPrefix(why, unseen[95]) {
		p.t.Skipf("Chromium hangs in gVisor now and then, as docs/troubleshooting.md says: %s", why)
	}
	if err == nil {
		must(p.t, p.KeepPictures(p.thread, got))
	}
	return got, err
}

// is holds that a picture is of the fixed size, and of a colour.
func (p *page) is(what string, picture []byte, want string) {
	p.t.Helper()
	img, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		p.t.Fatalf("%s is no picture: %v", what, err)
	}
	c, _ := color.NRGBAModel.Convert(img.At(640, 400)).(color.NRGBA)
	if got := fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B); got != want || img.Bounds().Dx() != 1280 || img.Bounds().Dy() != 800 {
		p.t.Errorf("%s is %s of %s, want %s", what, got, img.Bounds(), want)
	}
}

// started is how often the page was started.
func (p *page) started() int {
	b, _ := os.ReadFile(filepath.Join(p.DataDir, "caches/web/kept/runs"))
	return strings.Count(string(b), "x")
}

// alive are the processes that serve the page.
func (p *page) alive() (out []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if b, _ := os.ReadFile(file); bytes.Contains(b, []byte(filepath.Dir(p.DataDir))) {
			out = append(out, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}

// TestAPageIsSeenBeforeAndAfter: the page of the base, with what the thread has installed, and of
// the workspace as it is; neither reaches this machine, whatever the session's network; the picture
// of the base is taken once; nothing of it is left.
func TestAPageIsSeenBeforeAndAfter(t *testing.T) {
	t.Parallel()
	for _, kind := range []sandbox.Kind{sandbox.Bwrap, sandbox.GVisor} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			seesAPage(t, newPage(t, kind, map[string]string{".gitignore": "node_modules\n"}))
		})
	}
}

// TestAPageOfASubfolder: it is started there, with what is installed there.
func TestAPageOfASubfolder(t *testing.T) {
	t.Parallel()
	p := newPage(t, sandbox.Bwrap, map[string]string{"shop/.gitignore": "node_modules\n", "readme": "x"})
	p.Subdir = "shop"
	p.write(p.thread.Workspace, map[string]string{"shop/node_modules/colour": "#102030", "shop/colour": "#405060"})
	got, err := p.look()
	must(t, err)
	p.is("before", got.Before, "#102030")
	p.is("after", got.After, "#405060")
}

func seesAPage(t *testing.T, p *page) {
	p.write(p.thread.Workspace, map[string]string{"node_modules/colour": "#102030"})
	p.write(p.thread.Workspace, map[string]string{"colour": "#405060"})
	first, err := p.look()
	must(t, err)
	p.is("before", first.Before, "#102030")
	p.is("after", first.After, "#405060")
	if base := p.git(p.Dir, "rev-parse", "main"); first.Base != base || first.Head != base || first.Why != "" {
		t.Errorf("the pictures are %+v of base %s", first, base)
	}
	p.git(p.thread.Workspace, "add", ".")
	p.git(p.thread.Workspace, "commit", "--quiet", "-m", "Another colour")
	p.write(p.thread.Workspace, map[string]string{"colour": "#708090"})
	second, err := p.look()
	must(t, err)
	p.is("after", second.After, "#708090")
	if !bytes.Equal(second.Before, first.Before) || second.Base != first.Base || second.Head == first.Head || p.started() != 3 {
		t.Errorf("the page was started %d times, and the base is %s", p.started(), second.Base)
	}
	kept, ok := p.Pictures(p.thread)
	if !ok || kept.ID() != second.ID() || kept.ID() == first.ID() {
		t.Errorf("kept is %s", kept.ID())
	}
	must(t, p.PicturesShown(p.thread, kept))
	if _, ok := p.Pictures(p.thread); ok {
		t.Error("the pictures would be shown twice")
	}
	if left := p.alive(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	left, err := filepath.Glob(filepath.Join(p.DataDir, "scratch", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}

// TestAPageThatIsNotThere: what cannot be seen is said with what was printed last, and a base
// without the page leaves the picture of now.
func TestAPageThatIsNotThere(t *testing.T) {
	t.Parallel()
	p := newPage(t, sandbox.Bwrap, map[string]string{"readme": "x"})
	serve := p.Preview.Run
	p.write(p.thread.Workspace, map[string]string{"colour": "#405060"})
	for run, want := range map[string]string{
		"echo no such script; exit 3": "has ended\nWhat was printed last:\nno such script", "exit 0": "has not answered", "sleep 1000 & sleep 1000": "has not answered",
		"ln -s /etc/services ~/page.png; " + serve: "took no picture\nWhat was printed last:\nserving from",
	} {
		p.Preview.Run = run
		p.Answer = answer
		if strings.Contains(want, "answered") {
			p.Answer = time.Second // and all of it has eleven, in which a busy machine may not have begun
		}
		if _, err := p.look(); err == nil || !strings.Contains(err.Error(), want) && (p.Answer != time.Second || !strings.Contains(err.Error(), "it took more than 11s")) {
			t.Errorf("%s: %v", run, err)
		}
	}
	p.Answer = answer
	p.Preview.Run = "test -f colour || { echo no colour; exit 1; }; " + serve
	got, err := p.look()
	must(t, err)
	p.is("after", got.After, "#405060")
	if got.Before != nil || got.Why != unseen[91] {
		t.Errorf("before: %q", got.Why)
	}
	p.Project.Workspace, p.thread.Workspace = workspace.Shared, p.Dir
	p.write(p.Dir, map[string]string{"colour": "#102030"})
	got, err = p.look()
	must(t, err)
	p.is("after", got.After, "#102030")
	if got.Before != nil || !strings.Contains(got.Why, "no branches of their own") {
		t.Errorf("before: %q", got.Why)
	}
	if left := p.alive(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// TestAPageChangesNoRepository: what git obeys in a further repository is not the page's to write or to replace, while a
// session may be at work there.
func TestAPageChangesNoRepository(t *testing.T) {
	t.Parallel()
	p := newPage(t, sandbox.Bwrap, map[string]string{"readme": "x"})
	p.Further = []Repository{{Name: "lib", Repo: p.Dir}}
	_, _, err := p.Host.Workspace(t.Context(), p.thread, p.Project)
	must(t, err)
	p.Preview.Run = "cd .deckhand/repos; echo evil >>lib/.git/config; mv lib other; mv ../repos ../others; mv ../../.deckhand ../../others; exit 3"
	if _, err := p.look(); err == nil {
		t.Error("there is a picture")
	}
	if got := p.Repositories(p.thread, p.Project); len(got) != 1 {
		t.Errorf("obeyed as the bot has made them are %q", got)
	}
}

// TestPixelsAloneAreTaken: whatever a program has put in the place of the picture.
func TestPixelsAloneAreTaken(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 20))))
	for what, put := range map[string]func(path string) error{
		"a pipe":         func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a folder":       func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":         func(path string) error { return os.Symlink("other.png", path) },
		"a link outside": func(path string) error { return os.Symlink("/etc/hosts", path) },
		"a page":         func(path string) error { return os.WriteFile(path, []byte("<html>"), 0o600) },
		"a large file": func(path string) error {
			return errors.Join(os.WriteFile(path, picture.Bytes(), 0o600), os.Truncate(path, 21<<20))
		},
		"nothing": func(string) error { return nil },
	} {
		home := t.TempDir()
		must(t, os.WriteFile(filepath.Join(home, "other.png"), picture.Bytes(), 0o600))
		must(t, put(filepath.Join(home, "page.png")))
		if b, err := readPicture(t.Context(), home); err == nil {
			t.Errorf("%s: %q", what, b)
		}
	}
	home := t.TempDir()
	must(t, os.WriteFile(filepath.Join(home, "page.png"), append(picture.Bytes(), "<script>"...), 0o600))
	if b, err := readPicture(t.Context(), home); err != nil || bytes.Contains(b, []byte("script")) {
		t.Errorf("%q, %v", b, err)
	}
}

// TestTheBrowserIsLookedForInTheSandbox: where the page would be seen. It is not parallel, as it
// changes PATH.
func TestTheBrowserIsLookedForInTheSandbox(t *testing.T) {
	p := newPage(t, sandbox.Bwrap, map[string]string{"readme": "x"})
	must(t, p.CheckPreview(t.Context()))
	bwrap, err := exec.LookPath("bwrap")
	must(t, err)
	alone := t.TempDir()
	must(t, os.Symlink(bwrap, filepath.Join(alone, "bwrap")))
	t.Setenv("PATH", alone)
	if err := p.CheckPreview(t.Context()); err == nil || !strings.Contains(err.Error(), "no browser is in the sandbox") {
		t.Error(err)
	}
}

func TestPreviewIsOfTheSandboxAlone(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"http://localhost:3000/": true, "http://127.0.0.1:8080/a?b": true, "http://localhost": true, "https://localhost:3000/": false, "http://example.com/": false,
		"http://localhost.example.com/": false, "http://localhost@example.com/": false, "http://me@localhost/": false, "file:///etc/passwd": false, "localhost:3000": false, "": false,
	} {
		if err := (Preview{Run: "x", URL: url}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
	if err := (Preview{Run: " ", URL: "http://localhost/"}).Check(); err == nil {
		t.Error("nothing runs")
	}
}
