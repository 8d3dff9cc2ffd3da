package gitway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deckhand/internal/beginning"
)

// mirror is the bot's own copy of a repository: its branches and tags at the last sync. Only the forge writes to
// it.
type mirror struct {
	remote Remote
	dir    string
	// busy holds a token during a sync; began is when the last successful sync began.
	busy  chan struct{}
	began time.Time
}

const (
	// syncTimeout bounds a sync; firstTimeout the first one, which fetches everything.
	syncTimeout  = 5 * time.Minute
	firstTimeout = time.Hour
)

// mirrorOf is the mirror of a remote, below a folder.
func mirrorOf(dir string, r Remote) *mirror {
	sum := sha256.Sum256([]byte(r.URL))
	return &mirror{remote: r, dir: filepath.Join(dir, hex.EncodeToString(sum[:8])+".git"), busy: make(chan struct{}, 1)}
}

// sync returns when the mirror is at least as new as the call. Callers that come during a sync share the next one.
func (m *mirror) sync(ctx context.Context) error {
	arrived := time.Now()
	select {
	case m.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.busy }()
	if m.began.After(arrived) {
		return nil
	}
	began := time.Now()
	var err error
	if _, missing := os.Stat(m.dir); errors.Is(missing, fs.ErrNotExist) {
		err = m.make(ctx)
	} else {
		err = m.update(ctx)
	}
	if err == nil {
		m.began = began
	}
	return err
}

// Mirror syncs the repository that a clone's origin names, and without one the first, which is the thread's own. It
// returns its name inside, and its folder: a bare git folder that nobody else writes to. Its error is a sentence.
func (s *Session) Mirror(ctx context.Context, origin string) (name, dir string, err error) {
	name = s.names[0]
	if origin != "" {
		if name = s.named(origin); name == "" {
			return "", "", errors.New("the origin of its repository is none of the project's")
		}
	}
	m := s.repositories[name]
	if why := s.fresh(ctx, m); why != "" {
		return name, "", errors.New(why)
	}
	return name, m.dir, nil
}

// named is the name inside of the repository that an address means, empty for none.
func (s *Session) named(address string) string {
	plain := func(written string) string { return strings.TrimSuffix(written, ".git") }
	for _, name := range s.names {
		if plain(address) == "git://"+host+"/"+name || slices.ContainsFunc(s.spellings[name], func(written string) bool { return plain(written) == plain(address) }) {
			return name
		}
	}
	return ""
}

func (m *mirror) update(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, syncTimeout, fmt.Errorf("no answer in %s", syncTimeout))
	defer cancel()
	_, err := m.remote.run(ctx, m.dir, "fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--", m.remote.address(),
		"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	return err
}

// make makes the mirror, completely or not at all.
func (m *mirror) make(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, firstTimeout, fmt.Errorf("no end in %s", firstTimeout))
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(m.dir), 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(m.dir), ".mirror-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // gone after the rename
	if _, err := m.remote.run(ctx, "", "clone", "--quiet", "--bare", "--template=", "--", m.remote.address(), tmp); err != nil {
		return err
	}
	return os.Rename(tmp, m.dir)
}

// refs returns the branches and tags with their objects; each line is object, space, name.
func (m *mirror) refs(ctx context.Context) (map[string]string, []string, error) {
	out, err := localGit(ctx, m.dir, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
	if err != nil {
		return nil, nil, err
	}
	by, lines := map[string]string{}, []string{}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if object, name, ok := strings.Cut(line, " "); ok {
			by[name] = object
			lines = append(lines, line)
		}
	}
	return by, lines, nil
}

// makeRepository makes an empty bare repository that borrows objects from folders, if some
// are named. Nothing in it comes from elsewhere.
func makeRepository(dir string, hash int, objects ...string) error {
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
	if hash == sha256Length {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
	}
	files := map[string]string{"HEAD": "ref: refs/heads/.none\n", "config": config}
	for _, folder := range objects {
		if strings.ContainsAny(folder, "\n") || strings.HasPrefix(folder, `"`) {
			return fmt.Errorf("git cannot borrow objects from a folder of this name: %q", folder)
		}
		files["objects/info/alternates"] += folder + "\n"
	}
	for _, folder := range []string{"refs/heads", "objects/pack", "objects/info"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// sha256Length is the length of an object's name in a SHA-256 repository.
const sha256Length = 64

// localEnviron is the environment of a git that works on what sessions send: no configuration but our own, no
// transport, no other objects.
func localEnviron(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + os.DevNull, "GIT_DIR=" + dir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0",
	}
}

// localCommand is a git that works in one of our folders. Its memory is limited, since objects may be made to
// unpack large.
func localCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	bounds := []string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.bigFileThreshold=16m", "-c", "pack.threads=1", "-c", "pack.windowMemory=128m", "-c", "core.deltaBaseCacheLimit=64m"}
	cmd := exec.CommandContext(ctx, "git", append(bounds, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, localEnviron(dir), 5*time.Second
	return cmd
}

// localGit runs one and returns its output. Its error is git's last line.
func localGit(ctx context.Context, dir string, args ...string) (string, error) {
	var out bytes.Buffer
	said := beginning.Buffer{Most: maxNote}
	cmd := localCommand(ctx, dir, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	return out.String(), exitErrorOf(ctx, err, said.String())
}

// maxNote bounds what is kept of an error, in bytes.
const maxNote = 64 << 10

// exitErrorOf describes a command's error by its last line of output.
func exitErrorOf(ctx context.Context, err error, said string) error {
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	}
	if line := lastLine(said); line != "" {
		return &exitError{line, err}
	}
	return err
}

// exitError is a failed command, with its own message.
type exitError struct {
	words string
	err   error
}

func (e *exitError) Error() string { return e.words }
func (e *exitError) Unwrap() error { return e.err }

// exitCode is a command's exit code; -1 if it did not run.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}
