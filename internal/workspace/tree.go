package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"deckhand/internal/gateway/gitway"
	"deckhand/internal/workspace/gitdata"
)

// freshFor is how long a refreshed repository counts as fresh.
const freshFor = 5 * time.Second

// source is the project's own repository, or its folder.
func (k *Keeper) source(p Project) string {
	if p.Repo != "" {
		return filepath.Join(k.DataDir, "repos", p.key())
	}
	return p.Dir
}

// turnstile runs one at a time, and shares the result with those that came meanwhile and a moment later.
type turnstile struct {
	busy  chan struct{}
	began time.Time // when the last run began
	err   error     // its result
}

// kept is the turnstile of the bot's repository of a project.
func (k *Keeper) kept(p Project) *turnstile {
	t, _ := k.turnstiles.LoadOrStore(p.key(), &turnstile{busy: make(chan struct{}, 1)})
	return t.(*turnstile)
}

// once runs do unless somebody has just done so. Concurrent callers wait and share the result; if the running
// caller is cancelled, the next one runs it.
func (t *turnstile) once(ctx context.Context, do func(context.Context) error) error {
	arrived := time.Now()
	select {
	case t.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.busy }()
	if t.began.After(arrived.Add(-freshFor)) {
		return t.err
	}
	began := time.Now()
	err := do(ctx)
	if ctx.Err() == nil {
		t.began, t.err = began, err
	}
	return err
}

// clone clones to dir, completely or not at all.
func clone(ctx context.Context, r gitway.Remote, dir string) error {
	if isDir(dir) {
		return nil // somebody was faster
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), gitdata.Unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // gone after the rename
	if err := r.Clone(ctx, tmp); err != nil {
		return err
	}
	made, err := gitdata.Open(tmp)
	if err == nil {
		err = made.SetFetched()
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// workingTree makes the thread's own working tree. If the project's repository has its branch, it continues that
// with what was saved beside it; else it starts from the forge's current state.
func (k *Keeper) workingTree(ctx context.Context, t Thread, p Project) (dir string, told []string, err error) {
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return "", nil, err
	}
	known, err := source.Ref("refs/heads/" + t.Branch)
	if err != nil {
		return "", nil, err
	}
	var brought *Kept
	if t.Forked != "" && known == "" { // what was kept gets the name below
		if p.Repo != "" {
			_ = k.refresh(ctx, source, p) // else as it was known last
		}
		if err := free(source, t.Branch); err != nil {
			return "", nil, err
		}
	}
	if t.Elsewhere || t.Forked != "" && known == "" || t.Dir != "" && known == "" {
		if brought, told, err = k.restore(ctx, t, p, source); err != nil {
			return "", nil, err
		}
		if known, err = source.Ref("refs/heads/" + t.Branch); err != nil {
			return "", nil, err
		}
	}
	own := k.ownFolder(t, p)
	if r, err := gitdata.Open(own); err == nil && r.Dir == filepath.Join(own, ".git") {
		if t.Dir == "" && known != "" && t.Forked == "" {
			told = append(told, "The folder of an earlier thread with this one's number is there, and this thread goes on in it: "+own+".")
		}
		return own, told, nil // the bot ended before it could record it
	}
	stale := ""
	if p.Repo != "" && known == "" {
		if err := k.refresh(ctx, source, p); err != nil {
			if ctx.Err() != nil {
				return "", nil, context.Cause(ctx)
			}
			stale = fmt.Sprintf("%s could not be brought up to date (%v), so this thread starts from what was fetched %s.", capital(p.repository()), err, ago(source.Fetched()))
		}
	}
	if t.Dir == "" && known == "" {
		if err := free(source, t.Branch); err != nil {
			return "", nil, err
		}
	}
	if p.Further != "" {
		gitdata.Sweep(filepath.Dir(own))
	}
	if err := os.RemoveAll(k.savedIndex(t, p) + rewoundSuffix); err != nil { // it was of another folder
		return "", nil, err
	}
	made, err := gitdata.Clone{
		Source: source, Dir: own, Branch: t.Branch, Base: p.Base, Subdir: p.Subdir, OfOrigin: p.Repo != "", Saved: savedRef(t.ID), Index: k.savedIndex(t, p),
		Scratch: k.scratch(), Environ: p.Environ, Was: t.Forked,
	}.Make(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := k.wrote(t, p, own); err != nil {
		return "", nil, err
	}
	if err := k.made(t, p, !made.Branch && made.Saved == nil && made.Aside == nil); err != nil {
		return "", nil, err
	}
	lost := "The folder that this thread worked in was gone"
	switch {
	case t.Elsewhere:
		lost = "This thread goes on on another machine"
	case k.wasPutAway(t, p):
		lost = "The folder of this thread was put away while it rested"
	}
	if s := again(t, p, made, brought, lost); s != "" {
		told = append(told, s)
	}
	if stale != "" {
		told = append(told, stale)
	}
	if t.Dir == "" {
		told = append(told, p.unfetched(ctx, own)...)
	}
	return own, told, nil
}

// unfetched says for people what git has not fetched into a new clone, and what to do.
func (p Project) unfetched(ctx context.Context, dir string) (told []string) {
	submodules, lfs := gitdata.Unfetched(ctx, dir, p.Environ)
	if submodules {
		told = append(told, "The submodules of this repository are not fetched. If the work needs them, ask for git submodule update --init. An admin lists their repositories under git: also of project "+p.Name+" in deckhand.yaml first.")
	}
	if lfs {
		told = append(told, "The files that this repository keeps in Git LFS are not fetched: here they are pointers. If the work needs the content of one, attach it to a message.")
	}
	return told
}

// TakenError means that a new thread's branch is somebody else's at the forge. Free is one that is nobody's.
type TakenError struct{ Branch, Free string }

func (e *TakenError) Error() string {
	return "the forge has a branch " + e.Branch + " already, which is not this thread's"
}

// free gives a [*TakenError] if the forge had the branch when the source was refreshed last.
func free(source gitdata.Repository, branch string) error {
	for name, n := branch, 2; ; name, n = fmt.Sprintf("%s-%d", branch, n), n+1 {
		hash, err := source.Ref("refs/remotes/origin/" + name)
		switch {
		case err != nil:
			return err
		case hash == "" && name == branch:
			return nil
		case hash == "":
			return &TakenError{branch, name}
		}
	}
}

// refresh updates the project's repository from its forge.
func (k *Keeper) refresh(ctx context.Context, source gitdata.Repository, p Project) error {
	return k.kept(p).once(ctx, func(ctx context.Context) error {
		return gitdata.Refresh{Source: source, Scratch: k.scratch(), Fetch: p.Remote().Fetch}.Do(ctx)
	})
}

// ago is a duration since a time, for people.
func ago(at time.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	age := time.Since(at)
	for _, unit := range []struct {
		one, many string
		long      time.Duration
	}{{"a day", "days", 24 * time.Hour}, {"an hour", "hours", time.Hour}, {"a minute", "minutes", time.Minute}} {
		if n := int(age / unit.long); n == 1 {
			return unit.one + " ago"
		} else if n > 1 {
			return fmt.Sprintf("%d %s ago", n, unit.many)
		}
	}
	return "less than a minute ago"
}

// again says what people should know of a working tree that is not a new thread's first.
func again(t Thread, p Project, made gitdata.Made, brought *Kept, lost string) string {
	if p.Further != "" && !made.Branch && made.Saved == nil && made.Aside == nil {
		return "" // the thread has done nothing there yet
	}
	name, ignored := t.Branch, ". What .gitignore leaves out is not here"
	if brought != nil && brought.LeftOut != "" {
		ignored = "; not here are " + brought.LeftOut
	}
	if t.Forked != "" {
		switch {
		case brought == nil && (made.Branch || made.Saved != nil): // the bot ended after it was brought
			return "This thread begins with the files of the one that it was forked from."
		case brought == nil:
			return "Nothing was kept of the files of the thread that this one was forked from, so it starts from " + cmp.Or(p.Base, "the default branch") + "."
		}
		return fmt.Sprintf("This thread begins with the files of the one that it was forked from, as they were at %s%s.", clock(brought.At), ignored)
	}
	if t.Dir == "" {
		if !made.Branch && made.Saved == nil && made.Aside == nil {
			return ""
		}
		lost = capital(p.repository()) + " knows a thread of this one's number"
	}
	switch {
	case made.Aside != nil:
		return fmt.Sprintf("%s. It goes on from %s as it stands; what was not committed at %s was made on an earlier commit, and is in refs/deckhand/saved: ask for it to be merged.", lost, name, clock(made.Aside.At))
	case made.Saved != nil && made.Saved.Changed:
		return fmt.Sprintf("%s. Its commits are back, and what was not committed, as it was at %s%s.", lost, clock(made.Saved.At), ignored)
	case (made.Saved != nil || made.Branch) && brought != nil && brought.LeftOut != "":
		return fmt.Sprintf("%s. It goes on from %s as it was at %s%s.", lost, name, clock(brought.At), ignored)
	case made.Saved != nil, made.Branch:
		return fmt.Sprintf("%s. It goes on from %s as it was last published.", lost, name)
	}
	return fmt.Sprintf("%s, and the project's repository on this machine has nothing of its work: it starts anew from %s.", lost, cmp.Or(p.Base, "the default branch"))
}

func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 MST") }

// savedRef is the project's ref for what the thread has not committed.
func savedRef(threadID int64) string { return "refs/deckhand/saved/" + strconv.FormatInt(threadID, 10) }

// savedIndex is where the bot keeps git's knowledge of the thread's files.
func (k *Keeper) savedIndex(t Thread, p Project) string {
	return filepath.Join(k.DataDir, "saved", p.key(), strconv.FormatInt(t.ID, 10))
}

// Save saves the thread's uncommitted changes in the project's repository, and stores these and its commits on the
// shelf. left says, for people, what could not be saved, or is stored only on this machine; empty if nothing. Its
// error is for people, too.
func (k *Keeper) Save(ctx context.Context, t Thread, p Project) (left string, err error) {
	if p.Kind != Worktree || !isDir(t.Dir) {
		return "", nil // when it is made again, what was saved last is back
	}
	if err := p.plain(t.Dir); err != nil {
		return "", err
	}
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return "", err
	}
	at := time.Now()
	some, err := k.saveHere(ctx, t, p, source)
	if err != nil {
		return "", err
	}
	short, err := k.keep(ctx, t, p, source, some, at)
	if err != nil {
		return "", fmt.Errorf("%w (it is saved on this machine)", err)
	}
	return unsaved(slices.DeleteFunc(some, func(l gitdata.Left) bool { return l.Why == gitdata.Ignored }), short), nil
}

// saveHere saves into the project's repository.
func (k *Keeper) saveHere(ctx context.Context, t Thread, p Project, source gitdata.Repository) ([]gitdata.Left, error) {
	ctx, cancel := t.bounded(ctx)
	defer cancel()
	left, err := gitdata.Saving{
		Clone: t.Dir, Source: source, Branch: t.Branch, Ref: savedRef(t.ID), Index: k.savedIndex(t, p), Scratch: k.scratch(), Ignored: t.Shelf != nil,
	}.Save(ctx)
	return slices.DeleteFunc(left, func(l gitdata.Left) bool { return slices.Contains(notLeft, l.Name) }), err
}

// maxNamed bounds the named unsaved files.
const maxNamed = 5

// listed names what was not saved.
func listed(left []gitdata.Left) string {
	var words []string
	for i, l := range left {
		if i == maxNamed {
			words = append(words, fmt.Sprintf("and %d more", len(left)-maxNamed))
			break
		}
		words = append(words, fmt.Sprintf("%s (%s)", named(l.Name), l.Why))
	}
	return strings.Join(words, ", ")
}

// plain reports whether a name is 1 to 100 letters, digits and /._+-.
func plain(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= 100 && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("/._+-", r)
	})
}

// named marks a name that an agent has chosen: it is quoted unless it is plain, and shortened to its end.
func named(name string) string {
	if plain(name) {
		return name
	}
	runes := []rune(strings.ToValidUTF8(name, "�"))
	if len(runes) > 100 {
		runes = append([]rune("…"), runes[len(runes)-100:]...)
	}
	return strconv.Quote(string(runes))
}

// unsaved says for people what was not saved; empty if everything was.
func unsaved(left []gitdata.Left, short string) string {
	var said []string
	if len(left) > 0 {
		said = append(said, "In this thread's folder alone, and lost with it, are "+listed(left)+". What else is not committed is saved.")
	}
	if short != "" {
		said = append(said, "On this machine alone is "+short+".")
	}
	return strings.Join(said, " ")
}

// Unsaved says for people why nothing could be saved.
func Unsaved(err error) string {
	return "What is not committed here is in this thread's folder alone, since it could not be saved: " + cause(err) + "."
}

// Unpublished says for people why the thread's branch could not be published.
func Unpublished(err error) string {
	return "What was committed here is not in the project's repository yet: " + cause(err) + "."
}

// cause is an error as people see it: without the path of a file of the bot's.
func cause(err error) string {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return file.Err.Error()
	}
	return err.Error()
}
