package transcript

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/store/transcripts"
)

const (
	goingOn = "11111111-2222-4333-8444-555555555555" // the session that goes on
	earlier = "66666666-2222-4333-8444-555555555555"
)

// furnish writes a home as a process leaves it: transcripts, and what is not kept.
func furnish(t *testing.T, home string) {
	t.Helper()
	for name, text := range leftBehind {
		put(t, filepath.Join(home, name), text)
	}
	for name, text := range transcriptsDir {
		put(t, filepath.Join(home, name), text)
	}
}

var (
	transcriptsDir = map[string]string{
		".claude/projects/-srv-web/" + goingOn + ".jsonl":                                   `{"type":"user","message":"going on"}` + "\n",
		".claude/projects/-srv-web/" + goingOn + "/subagents/agent-acf500b03a6ba4459.jsonl": "a subagent\n",
		".claude/projects/-srv-web/" + earlier + ".jsonl":                                   "earlier\n",
		".claude/projects/-elsewhere/" + earlier + ".jsonl":                                 "",
	}
	leftBehind = map[string]string{
		".bashrc": "evil", ".profile": "evil", ".gitconfig": "evil", ".config/go/env": "evil", ".config/git/config": "evil", ".npmrc": "evil",
		".claude/.claude.json": `{"env":{"BASH_ENV":"evil"}}`, ".claude/settings.json": "{}", ".claude/CLAUDE.md": "evil",
		".claude/session-env/" + goingOn + "/sessionstart-hook-0.sh":                            "evil",
		".claude/projects/-srv-web/memory/MEMORY.md":                                            "evil",
		".claude/projects/-srv-web/" + goingOn + "/subagents/agent-acf500b03a6ba4459.meta.json": "{}",
		".claude/projects/-srv-web/" + goingOn + "/tool-results/x.txt":                          "text",
		".claude/projects/-srv-web/" + goingOn + ".jsonl.tmp":                                   "x",
		".claude/projects/-srv-web/notes.jsonl":                                                 "x",
		".claude/projects/with.dots/" + goingOn + ".jsonl":                                      "x",
		".claude/projects/-srv-web/" + goingOn + "/subagents/workflows/run/agent-a123.jsonl":    "x",
		".claude/projects/-srv-web/not-a-session/subagents/agent-acf500b03a6ba4459.jsonl":       "x",
		".claude/projects/-srv-web/" + strings.ToUpper("aaaaaaaa") + goingOn[8:] + ".jsonl":     "x",
		".claude/projects/-srv-web/deep/" + strings.Repeat("deep/", 60) + earlier + ".jsonl":    "x",
		"go/pkg/mod/cache/x": "x",
		".claude/projects/-srv-web/" + earlier + "/subagents/agent-" + strings.Repeat("a", 200) + "": "x",
	}
)

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contents are the files below a folder with their texts; anything else is told.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			out[rel] = d.Type().String()
			return nil
		}
		b, err := os.ReadFile(path)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// holdsTranscripts fails unless a home holds the transcripts and nothing else.
func holdsTranscripts(t *testing.T, home string) {
	t.Helper()
	if got, want := fmt.Sprint(contents(t, home)), fmt.Sprint(transcriptsDir); got != want {
		t.Errorf("the home holds\n%s\nwant\n%s", got, want)
	}
}

// alone fails unless there is nothing but the homes of these threads.
func alone(t *testing.T, dir string, threads ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, threads) {
		t.Errorf("the folder of homes holds %v, want %v", names, threads)
	}
}

func TestAHomeKeepsTranscriptsAlone(t *testing.T) {
	t.Parallel()
	h := Homes{Dir: filepath.Join(t.TempDir(), "home")}
	if err := h.Renew(7, goingOn); err != nil {
		t.Fatal(err)
	}
	if len(contents(t, h.Of(7))) != 0 {
		t.Error("a first home is not empty")
	}
	for range 2 { // the second time there is nothing to leave behind
		furnish(t, h.Of(7))
		if err := h.Renew(7, goingOn); err != nil {
			t.Fatal(err)
		}
		holdsTranscripts(t, h.Of(7))
		alone(t, h.Dir, "7")
	}
	info, err := os.Stat(h.Of(7))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// What has a transcript's name and is none of its own is left behind.
func TestAHomeKeepsNoLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := Homes{Dir: filepath.Join(dir, "home")}
	secret := filepath.Join(dir, "home/8/.claude/projects/-srv-web", goingOn+".jsonl") // another thread's
	put(t, secret, "secret\n")
	at := filepath.Join(h.Of(7), ".claude/projects/-srv-web")
	for name, make := range map[string]func(path string) error{
		"a link":      func(p string) error { return os.Symlink(secret, p) },
		"a hard link": func(p string) error { return os.Link(secret, p) },
		"a pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"a folder":    func(p string) error { return os.MkdirAll(filepath.Join(p, "x"), 0o700) },
		"a linked folder of sessions": func(string) error {
			return errors.Join(os.RemoveAll(at), os.Symlink(filepath.Dir(secret), at))
		},
		"a linked folder of projects": func(string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(at)), os.Symlink(filepath.Join(h.Of(8), ".claude/projects"), filepath.Dir(at)))
		},
		"a linked home": func(string) error { return errors.Join(os.RemoveAll(h.Of(7)), os.Symlink("8", h.Of(7))) },
		"no home":       func(string) error { return errors.Join(os.RemoveAll(h.Of(7)), os.WriteFile(h.Of(7), nil, 0o600)) },
	} {
		if err := errors.Join(os.RemoveAll(h.Of(7)), os.MkdirAll(at, 0o700), make(filepath.Join(at, goingOn+".jsonl"))); err != nil {
			t.Fatal(name, err)
		}
		if err := h.Renew(7, goingOn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := contents(t, h.Of(7)); len(got) != 0 {
			t.Errorf("%s: the home holds %v", name, got)
		}
		if b, err := os.ReadFile(secret); err != nil || string(b) != "secret\n" {
			t.Fatalf("%s: the other thread's transcript is %q, %v", name, b, err)
		}
		alone(t, h.Dir, "7", "8")
	}
}

// What is thrown away goes, whatever it is: as an ordinary user, whom modes concern.
func TestAHomeIsRemovedWhateverItsModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() == 0 { // root may do everything
		if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	helper := homeHelper(t, filepath.Join(dir, "home"), "hostile")
	if os.Getuid() == 0 {
		// A program that somebody else may start.
		program := filepath.Join(dir, "program")
		b, err := os.ReadFile(helper.Path)
		if err == nil {
			err = errors.Join(os.WriteFile(program, b, 0o700), os.Chmod(program, 0o755)) //nolint:gosec // see above
		}
		if err != nil {
			t.Fatal(err)
		}
		helper.Path, helper.Args[0] = program, program
		helper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if out, err := helper.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	alone(t, filepath.Join(dir, "home"), "7")
	if got := contents(t, filepath.Join(dir, "home/7")); len(got) != 0 {
		t.Errorf("the home holds %v", got)
	}
}

// hostileHome leaves a home that is hard to remove: folders without rights, deeper than
// files may be open, names of the bot's own.
func hostileHome(home string) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = 64
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(home, ".discarded-1/x"), 0o700); err != nil {
		return err
	}
	if err := os.Chdir(home); err != nil {
		return err
	}
	long := strings.Repeat("d", 200)
	for range 150 { // a path of 30,000 bytes
		err := errors.Join(os.Mkdir(long, 0o700), os.WriteFile("locked", nil, 0), os.Symlink("/", "link"), os.Mkdir("empty", 0))
		if err == nil {
			err = os.Chdir(long)
		}
		if err != nil {
			return err
		}
	}
	for i := range 150 {
		if err := errors.Join(os.Chdir(".."), os.Chmod(long, fs.FileMode(i%8)<<6)); err != nil {
			return err
		}
	}
	for i := range 1200 { // more than are looked at at once
		if err := os.Mkdir(filepath.Join(home, strconv.Itoa(i)), 0o500); err != nil {
			return err
		}
	}
	return os.Chmod(home, 0)
}

func TestAHomeIsBounded(t *testing.T) {
	t.Parallel()
	h := Homes{Dir: t.TempDir()}
	at := filepath.Join(h.Of(7), ".claude/projects/-srv-web")
	put(t, filepath.Join(at, goingOn+".jsonl"), `{"type":"user","message":"going on"}`+"\n")
	for i := range maxKeptFiles + 10 {
		put(t, filepath.Join(at, fmt.Sprintf("%08x-2222-4333-8444-555555555555.jsonl", i)), "x")
	}
	big := filepath.Join(at, earlier+".jsonl")
	put(t, big, "")
	if err := os.Truncate(big, maxKeptBytes+1); err != nil { // it takes no room on the disk
		t.Fatal(err)
	}
	if err := h.Renew(7, goingOn); err != nil {
		t.Fatal(err)
	}
	got := contents(t, h.Of(7))
	if len(got) > maxKeptFiles || len(got) < maxKeptFiles/2 {
		t.Errorf("%d files are kept", len(got))
	}
	if got[".claude/projects/-srv-web/"+goingOn+".jsonl"] != `{"type":"user","message":"going on"}`+"\n" {
		t.Error("the session's own transcript is not kept")
	}
	if _, ok := got[".claude/projects/-srv-web/"+earlier+".jsonl"]; ok {
		t.Error("a transcript of more than may be kept is")
	}
}

// homeVariable names the folder of homes in which this program renews the home of thread
// 7, as [TestMain] does when it is set.
const homeVariable = "DECKHAND_TEST_HOME"

func homeHelper(t *testing.T, dir, how string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), homeVariable+"="+how+" "+dir)
	return cmd
}

// playHome renews the home of thread 7, or restores its session.
func playHome() error {
	runtime.LockOSThread() // one thread makes all calls of the system, so that they can be counted
	how, dir, _ := strings.Cut(os.Getenv(homeVariable), " ")
	h := Homes{Dir: dir}
	switch how {
	case "hostile":
		if err := hostileHome(h.Of(7)); err != nil {
			return err
		}
	case "restore":
		_, err := h.Restore(context.Background(), 7, goingOn, crashCopies, readCrash)
		return err
	}
	return h.Renew(7, goingOn)
}

// crashCopies are copies of a session with two subagents, and crashTexts what they hold.
var (
	crashTexts  = []string{entry(1, 100) + entry(2, 100), entry(3, 100), entry(4, 100)}
	crashCopies = func() (out []transcripts.Transcript) {
		for i, text := range crashTexts {
			sum := sha256.Sum256([]byte(text))
			out = append(out, transcripts.Transcript{ID: int64(i), Agent: []string{"", "agent-a", "agent-b"}[i], Bytes: int64(len(text)), SHA256: sum[:]})
		}
		return out
	}()
)

func readCrash(_ context.Context, t transcripts.Transcript, out io.Writer) error {
	text := crashTexts[t.ID]
	_, err := io.WriteString(out, text[:50]) // it comes in pieces
	if err == nil {
		_, err = io.WriteString(out, text[50:])
	}
	return err
}

// TestARestoreOutlivesEveryCrash: whatever was written of a session, the next bot restores
// all of it, and loses no other.
func TestARestoreOutlivesEveryCrash(t *testing.T) {
	t.Parallel()
	strace := needtest.Program(t, "strace")
	for _, calls := range []string{"mkdirat", "renameat,renameat2", "unlinkat", "write"} {
		n := 1
		for restoreCrashes(t, strace, calls, n) {
			n++
		}
	}
}

func restoreCrashes(t *testing.T, strace, calls string, n int) bool {
	t.Helper()
	h := Homes{Dir: filepath.Join(t.TempDir(), "home")}
	at := filepath.Join(h.Of(7), keptProjects, "-srv-web")
	put(t, filepath.Join(at, goingOn+".jsonl"), entry(1, 100))
	put(t, filepath.Join(at, goingOn, "subagents/agent-a.jsonl"), "older\n")
	put(t, filepath.Join(at, earlier+".jsonl"), "earlier\n")
	died := killAt(t, homeHelper(t, h.Dir, "restore"), strace, calls, n)
	if _, err := h.Restore(t.Context(), 7, goingOn, crashCopies, readCrash); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"-srv-web/" + goingOn + ".jsonl":                   crashTexts[0],
		"-srv-web/" + goingOn + "/subagents/agent-a.jsonl": crashTexts[1],
		"-srv-web/" + goingOn + "/subagents/agent-b.jsonl": crashTexts[2],
		"-srv-web/" + earlier + ".jsonl":                   "earlier\n",
	}
	got := map[string]string{}
	for name, text := range contents(t, filepath.Join(h.Of(7), keptProjects)) {
		_, rest, _ := strings.Cut(name, "/")
		got["-srv-web/"+rest] = text // the CLI finds it in any
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("killed at the %d. of %s: the home holds\n%v\nwant\n%v", n, calls, got, want)
	}
	return died
}

// killAt runs a program that is killed at its n-th call of some. It reports false when there
// are not as many.
func killAt(t *testing.T, cmd *exec.Cmd, strace, calls string, n int) bool {
	t.Helper()
	cmd.Args = []string{strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=" + calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), cmd.Path}
	cmd.Path = strace
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || len(out) > 0 {
		t.Fatalf("%v: %s", exit, out)
	}
	return err != nil
}

// TestAHomeOutlivesEveryCrash kills the bot at each call of the system that changes
// something, as a power cut would, and has the next one go on.
func TestAHomeOutlivesEveryCrash(t *testing.T) {
	t.Parallel()
	strace := needtest.Program(t, "strace")
	for _, calls := range []string{"mkdirat", "renameat,renameat2", "unlinkat", "linkat"} {
		t.Run(calls, func(t *testing.T) {
			t.Parallel()
			n := 1
			for crashes(t, strace, calls, n) {
				n++
			}
		})
	}
}

// crashes has a bot killed at the n-th of some calls while it renews a home. It reports
// false when there are not as many.
func crashes(t *testing.T, strace, calls string, n int) bool {
	t.Helper()
	h := Homes{Dir: filepath.Join(t.TempDir(), "home")}
	for name, text := range transcriptsDir {
		put(t, filepath.Join(h.Of(7), name), text)
	}
	put(t, filepath.Join(h.Of(7), ".config/go/env"), "evil")
	if !killAt(t, homeHelper(t, h.Dir, "renew"), strace, calls, n) {
		if n == 1 {
			t.Errorf("%s is never called", calls)
		}
		holdsTranscripts(t, h.Of(7))
		return false
	}
	// Before anything is made anew, what the turn has cost is read.
	if err := h.recover(7); err != nil {
		t.Fatal(err)
	}
	got := contents(t, h.Of(7))
	for name, text := range transcriptsDir {
		if got[name] != text {
			t.Errorf("killed at the %d. of %s: %s is %q", n, calls, name, got[name])
		}
	}
	if err := h.Renew(7, goingOn); err != nil {
		t.Errorf("killed at the %d. of %s: %v", n, calls, err)
	}
	holdsTranscripts(t, h.Of(7))
	alone(t, h.Dir, "7")
	return true
}
