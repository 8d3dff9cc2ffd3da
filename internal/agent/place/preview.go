package place

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/attachment"
	"deckhand/internal/sandbox"
	"deckhand/internal/scratch"
	"deckhand/internal/store/threads"
	"deckhand/internal/transcript"
)

// Preview is how a project's page is looked at: Run starts what serves it, and URL is its address
// in the sandbox. The zero value is for none.
type Preview struct {
	Run string `yaml:"run"`
	URL string `yaml:"url"`
}

// Check says why nothing can be looked at by it.
func (p Preview) Check() error {
	u, err := url.Parse(p.URL)
	switch {
	case strings.TrimSpace(p.Run) == "":
		return errors.New("it says under run what starts the page, such as run: npm start")
	case err != nil || u.Scheme != "http" || u.User != nil || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1":
		return fmt.Errorf("%q is not a page of the sandbox's own; write its address under url, such as http://localhost:3000/", p.URL)
	}
	return nil
}

// Pictures are a page before a thread's work and after, as PNG.
type Pictures struct {
	Of  threads.ThreadKey // whose: another database may count its threads anew
	Key string            // what Before was taken of
	// Base is the commit that Before shows, and Head the one that the working tree was at for After,
	// which also shows what was not committed.
	Base, Head    string
	Before, After []byte
	Why           string // there is no Before, for people
	Shown         bool   // in the pull request
}

// ID says which pictures they are.
func (p Pictures) ID() string {
	return fmt.Sprintf("%x", sha256.Sum256(append(slices.Clip(p.Before), p.After...)))[:16]
}

// Bounds of one picture.
const (
	previewOutput  = 4 << 10 // bytes of what Run printed last
	previewPicture = 20 << 20
)

// previewScript runs in the sandbox in the place of the CLI. Its exit statuses are those of [unseen].
//
//go:embed preview.sh
var previewScript string

// unseen says why there is no picture, by what the script ended with.
var unseen = map[int]string{
	90: "no browser is in the sandbox; install chromium where the bot runs, or in the container's image",
	91: "what serves the page has ended",
	92: "the page has not answered in time",
	93: "the browser took no picture",
	94: "what git ignores could not be copied for it",
	95: "the browser has not answered in time",
}

// Look takes pictures of the project's page: as the thread's workspace is now, and as it was before
// the thread's work. That one is taken once for a base. An error is for the model, and says what
// was printed last.
func (h *Host) Look(ctx context.Context, t threads.Thread, p Project) (Pictures, error) {
	known := h.pictures(t)
	now := Pictures{Head: h.Heads(t, p)[0]}
	var err error
	if now.After, err = h.photograph(ctx, t, p, t.Workspace, ""); err != nil {
		return now, err
	}
	base, _, checkOut, err := h.Keeper.Before(ctx, h.worksIn(t, p), p.space(t))
	now.Base, now.Key = base, fmt.Sprintf("%q", []string{base, p.Preview.Run, p.Preview.URL})
	switch {
	case err != nil:
	case known.Key == now.Key && known.Before != nil:
		now.Before = known.Before
	default:
		now.Before, err = h.before(ctx, t, p, checkOut)
	}
	if err != nil {
		if ctx.Err() != nil {
			return now, context.Cause(ctx)
		}
		now.Why, _, _ = strings.Cut(err.Error(), "\n")
	}
	return now, nil
}

// forAWhile makes a folder that no other session sees, and that is swept if the bot is killed.
func (h *Host) forAWhile() (string, error) {
	in := filepath.Join(h.DataDir, "scratch")
	if err := os.MkdirAll(in, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(in, "preview-")
}

// before takes the picture of the base, in a working tree of its own.
func (h *Host) before(ctx context.Context, t threads.Thread, p Project, checkOut func(context.Context, string) error) ([]byte, error) {
	dir, err := h.forAWhile()
	if err != nil {
		return nil, err
	}
	defer transcript.Discard(dir) //nolint:errcheck // what is left is swept
	tree := filepath.Join(dir, "tree")
	if err := checkOut(ctx, tree); err != nil {
		return nil, err
	}
	return h.photograph(ctx, t, p, tree, t.Workspace)
}

// photograph takes a picture of the page that a folder has, in a sandbox of its own: without a
// network, a way to the model or to the forge. What serves the page and the browser end with it.
// What git ignores of a dependency's kind is copied from a folder, if one is named.
func (h *Host) photograph(ctx context.Context, t threads.Thread, p Project, dir, from string) (picture []byte, err error) {
	u, err := url.Parse(p.Preview.URL)
	if err != nil {
		return nil, err
	}
	seen, err := h.Keeper.Borrowed(p.space(t))
	if err != nil {
		return nil, err
	}
	if from != "" {
		seen = append(seen, from)
	}
	home, err := h.forAWhile()
	if err != nil {
		return nil, err
	}
	defer transcript.Discard(home) //nolint:errcheck // what is left is swept
	box, err := p.alone(ctx, sandbox.Session{
		Owner: h.Replica, Name: fmt.Sprintf("deckhand-%d", t.ID), Workspace: dir, Repositories: p.folders(dir)[1:], Dir: p.Folder(dir), Home: home, Hidden: h.Hidden, ReadOnly: seen, CacheDir: filepath.Join(h.DataDir, "caches", p.Name),
	})
	if err != nil {
		return nil, err
	}
	said := ending{most: previewOutput}
	patience := cmp.Or(h.Answer, 30*time.Second) // for the browser; a page may have much to build
	timed, cancel := context.WithTimeoutCause(ctx, 11*patience, fmt.Errorf("it took more than %s", 11*patience))
	defer cancel()
	words := []string{"-c", previewScript, "preview", p.Preview.Run, p.Preview.URL, u.Hostname(), cmp.Or(u.Port(), "80"), u.RequestURI(), strconv.Itoa(int(patience.Seconds())), dir, from}
	status, signal, over, err := h.runs(timed, box, p.Folder(dir), words, &said)
	if err := errors.Join(err, box.Close()); err != nil {
		return nil, err
	}
	why := cmp.Or(over, unseen[status])
	switch {
	case timed.Err() != nil:
		why = context.Cause(timed).Error()
	case why == "" && (status != 0 || signal != 0):
		why = fmt.Sprintf("it ended with the status %d, or by the signal %d", status, signal)
	case why == "":
		picture, err = readPicture(ctx, home)
		if err == nil {
			return picture, nil
		}
		why = err.Error()
	}
	if last := strings.TrimSpace(said.String()); last != "" {
		why += "\nWhat was printed last:\n" + last
	}
	return nil, errors.New(why)
}

// alone prepares a sandbox of bash, from which nothing is reached.
func (p Project) alone(ctx context.Context, s sandbox.Session) (*sandbox.Box, error) {
	bash, err := bashOf(p.Sandbox.Kind)
	if err != nil {
		return nil, err
	}
	spec := p.Sandbox
	spec.Network, spec.Domains = sandbox.Off, nil
	box, err := sandbox.New(spec)
	if err != nil {
		return nil, &needError{needSandbox, p.Name, err}
	}
	s.Name += "-" + strings.ToLower(rand.Text()[:8])
	s.Program, s.Env = []string{bash}, claude.Environ(p.Env, map[string]string{"HOME": s.Home, "SHELL": bash})
	b, err := box.Prepare(ctx, s)
	if err != nil {
		return nil, &needError{needSandbox, p.Name, err}
	}
	return b, nil
}

// CheckPreview says why no picture can be taken in the project's sandbox.
func (p Project) CheckPreview(ctx context.Context) error {
	folder, err := scratch.Make(scratch.Check)
	if err != nil {
		return err
	}
	defer folder.Remove() //nolint:errcheck // what is left is swept
	workspace, home := filepath.Join(folder.Path, "workspace"), filepath.Join(folder.Path, "home")
	if err := errors.Join(os.Mkdir(workspace, 0o700), os.Mkdir(home, 0o700)); err != nil {
		return err
	}
	box, err := p.alone(ctx, sandbox.Session{Name: "deckhand-check", Owner: "check", Workspace: workspace, Home: home, CacheDir: filepath.Join(folder.Path, "caches")})
	if err != nil {
		return err
	}
	said := ending{most: previewOutput}
	status, _, err := claude.Program{Command: append(box.Command, "-c", previewScript), Env: box.Env, Dir: workspace, Out: &said}.Run(ctx)
	if err = errors.Join(err, box.Close()); err == nil && status != 0 {
		err = errors.New(cmp.Or(unseen[status], said.String()))
	}
	return err
}

// readPicture reads the picture in the home of a sandbox that has ended. Whatever ran there may
// have put anything in its place: what is posted is made anew of its pixels.
func readPicture(ctx context.Context, home string) ([]byte, error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	info, err := root.Lstat("page.png")
	if err != nil || !info.Mode().IsRegular() || info.Size() > previewPicture {
		return nil, errors.New(unseen[93])
	}
	b, err := root.ReadFile("page.png")
	if err != nil {
		return nil, err
	}
	if _, b, err = attachment.Clean(ctx, "page.png", b); err != nil {
		return nil, fmt.Errorf("the picture %w", err)
	}
	return b, nil
}

// picturesOf is where a thread's newest pictures are kept.
func (h *Host) picturesOf(threadID int64) string {
	return filepath.Join(h.DataDir, "previews", strconv.FormatInt(threadID, 10)+".json")
}

func (h *Host) pictures(t threads.Thread) (p Pictures) {
	b, err := os.ReadFile(h.picturesOf(t.ID))
	if err != nil || json.Unmarshal(b, &p) != nil || p.Of != t.Key() {
		return Pictures{}
	}
	return p
}

// KeepPictures keeps pictures that people have seen, for the pull request and the next time.
func (h *Host) KeepPictures(t threads.Thread, p Pictures) error {
	if p.Base == "" {
		return nil // of a thread without a branch
	}
	p.Of = t.Key()
	b, err := json.Marshal(p)
	return errors.Join(err, os.MkdirAll(filepath.Dir(h.picturesOf(t.ID)), 0o700), replaceFile(h.picturesOf(t.ID), string(b)))
}

// Pictures are the thread's newest that its pull request does not have; ok is false for none.
func (h *Host) Pictures(t threads.Thread) (p Pictures, ok bool) {
	p = h.pictures(t)
	return p, p.After != nil && !p.Shown
}

// PicturesShown remembers that the pull request has the thread's pictures.
func (h *Host) PicturesShown(t threads.Thread, p Pictures) error {
	p.Shown = true
	return h.KeepPictures(t, p)
}
