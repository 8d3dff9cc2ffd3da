package workspace

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/workspace/gitdata"
)

// State is what a thread's folder was at the end of a turn; of turn 0, before the first.
type State struct {
	Turn          int64
	Branch, Saved string
	At            time.Time
}

func (s State) git() gitdata.State { return gitdata.State{Branch: s.Branch, Saved: s.Saved} }

// End says of what a thread's folder is the state when it is saved.
type End struct {
	Turn  int64
	Began map[string]string // by [Project.Further], the commits that the thread's first turn began at, if that is this one
	Still func() bool       // reports whether nothing has changed the folder since the turn; nil for nothing has
}

// maxStates is how many states of a thread are kept, the newest.
const maxStates = 20

// heldRef is the project's ref for the thread's states.
func heldRef(threadID int64) string { return "refs/deckhand/turns/" + strconv.FormatInt(threadID, 10) }

// hold adds the thread's present state to those that are kept.
func (k *Keeper) hold(ctx context.Context, t Thread, p Project, source gitdata.Repository, now *Kept) error {
	end := t.End
	if end == nil || now.Branch == "" || end.Still != nil && !end.Still() {
		return nil
	}
	is := State{Turn: end.Turn, Branch: now.Branch, Saved: now.Saved, At: now.At}
	states := slices.DeleteFunc(slices.Clone(now.States), func(s State) bool { return s.Turn == is.Turn })
	if began := end.Began[p.Further]; began != "" && len(states) == 0 {
		states = append(states, State{Branch: began, At: now.At})
	}
	states = append(states, is)
	if n := len(states) - 2; n >= 0 && n+2 <= maxStates && states[n].git() == is.git() {
		now.States = states // held already
		return nil
	}
	states = states[max(0, len(states)-maxStates):]
	var commits []string
	for _, s := range states {
		commits = append(commits, s.Branch)
		if s.Saved != "" {
			commits = append(commits, s.Saved)
		}
	}
	held, has, err := source.Hold(ctx, k.scratch(), heldRef(t.ID), commits)
	if err != nil {
		return err
	}
	// Those from before the thread came to this machine may not be here.
	now.States = slices.DeleteFunc(states, func(s State) bool { return !has[s.Branch] || s.Saved != "" && !has[s.Saved] })
	now.Held = held
	return nil
}

// Loss is what a rewind changes and takes away.
type Loss struct {
	gitdata.LeavingRef     // from now to then; Lost are the commits that leave
	Pushed             int // how many of them the forge's branch has
	// Alone is what the present folder has that no state holds, for people; empty for nothing.
	Alone string
}

// Way is that of one of a thread's repositories from its present state to another.
type Way struct {
	Thread    Thread
	Project   Project
	Now, Then State
}

// Differs describes what a rewind does. forge is the commit of the thread's branch at the forge, or empty.
// [gitdata.ErrGone] says that the other state is not on this machine.
func (k *Keeper) Differs(ctx context.Context, w Way, forge string) (l Loss, err error) {
	if w.Now.git() == w.Then.git() {
		return l, nil
	}
	ctx, cancel := w.Thread.bounded(ctx)
	defer cancel()
	source, err := gitdata.Open(k.source(w.Project))
	if err != nil {
		return l, err
	}
	if l.LeavingRef, l.Pushed, err = source.Between(ctx, k.scratch(), w.Now.git(), w.Then.git(), forge); err == nil {
		l.Alone = aloneIn(w.Thread.Dir, source)
	}
	return l, err
}

// Rewind has the folders of a thread's repositories be as they were in the states then, with git folders of our making.
// now are their present states: what is in no file of those, such as what is ignored, stays. So do a folder whose states
// are the same, and that of a further repository whose state then is not on this machine. The thread's own, which has the
// other folders in it, is the last. key names this rewind: done again by the same key it does nothing more, also after a
// crash in its middle. After an error the folders are as they were, unless that is [ErrUnfinished]; told says to people
// what has not come along. The thread must have no process.
func (k *Keeper) Rewind(ctx context.Context, key string, ways ...Way) (told string, err error) {
	within := time.Duration(len(ways)) * gitTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("git: no end in %s", within))
	defer cancel()
	var said []string
	var left []Way
	changed := false
	for _, w := range ways {
		if w.Now.git() == w.Then.git() {
			continue
		}
		told, done, e := k.prepare(ctx, w, key)
		said = append(said, told)
		switch {
		case done:
			changed = true
			continue
		case e != nil && w.Project.Further != "":
			if errors.Is(e, gitdata.ErrGone) {
				continue
			}
			e = fmt.Errorf("%s: %w", w.Project.repository(), e)
		}
		left, err = append(left, w), errors.Join(err, e)
	}
	for _, w := range left {
		if err == nil {
			told, err = k.swap(ctx, w, key)
			said, changed = append(said, told), changed || err == nil
		}
	}
	if err != nil {
		for _, w := range left {
			err = errors.Join(err, os.RemoveAll(k.beside(w.Thread, w.Project)+nextSuffix))
		}
		if changed && !errors.Is(err, ErrUnfinished) {
			err = fmt.Errorf("%w: %w", ErrUnfinished, err)
		}
	}
	return strings.TrimSpace(strings.Join(said, " ")), err
}

// prepare makes the folder that is to take the present one's place, unless the rewind is done.
func (k *Keeper) prepare(ctx context.Context, w Way, key string) (told string, done bool, err error) {
	t, p := w.Thread, w.Project
	if p.Kind != Worktree || t.Dir != k.ownFolder(t, p) {
		return "", false, errors.New("this thread has no folder with a git folder of its own")
	}
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return "", false, err
	}
	if told, err = k.settle(ctx, t, p); err != nil {
		return told, false, err
	}
	if readStamp(k.savedIndex(t, p)+rewoundSuffix) == key {
		return told, true, nil
	}
	if err := p.plain(t.Dir); err != nil {
		return "", false, err
	}
	for at, n := t.Dir, 0; n < 3; at, n = filepath.Dir(at), n+1 { // else no rename moves it, or a further one along
		if err := unix.Access(at, unix.W_OK); err != nil {
			return "", false, fmt.Errorf("%s cannot be moved: %w", at, err)
		}
	}
	if _, _, err := source.Between(ctx, k.scratch(), w.Now.git(), w.Then.git(), ""); err != nil {
		return "", false, err
	}
	if err := k.wouldLose(ctx, t, p, source, w.Now); err != nil {
		return "", false, err
	}
	next := k.beside(t, p) + nextSuffix
	if err := os.RemoveAll(next); err != nil {
		return "", false, err
	}
	state := w.Then.git()
	made, err := gitdata.Clone{
		Source: source, Dir: next, Branch: t.Branch, Base: p.Base, Subdir: p.Subdir, OfOrigin: p.Repo != "", Saved: savedRef(t.ID), Index: k.savedIndex(t, p),
		Scratch: k.scratch(), Environ: p.Environ, State: &state,
	}.Make(ctx)
	if err == nil && made.Aside != nil {
		err = errors.New("what was saved then does not fit the branch as it was then")
	}
	return told, false, err
}

// swap has the folder that was prepared take the present one's place.
func (k *Keeper) swap(ctx context.Context, w Way, key string) (told string, err error) {
	t, p := w.Thread, w.Project
	next, was := k.beside(t, p)+nextSuffix, k.beside(t, p)+wasSuffix+hex.EncodeToString([]byte(key))+"-"+w.Now.git().Tree()
	err = k.wrote(t, p, next)
	if err == nil {
		err = os.Rename(t.Dir, was)
	}
	if err == nil {
		err = os.Rename(next, t.Dir)
	}
	if err != nil {
		_, undone := k.settle(context.WithoutCancel(ctx), t, p)
		return "", errors.Join(err, undone)
	}
	return k.settle(ctx, t, p)
}

// wouldLose is an error that names what lies in the folder and neither the present state has nor [gitdata.Repository.Carry]
// moves: files that are in the state, and are too large to be saved as they are, and branches that could not be saved.
func (k *Keeper) wouldLose(ctx context.Context, t Thread, p Project, source gitdata.Repository, now State) error {
	left, err := k.saveHere(ctx, t, p, source)
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(l gitdata.Left) bool { return l.Why == gitdata.Ignored })
	if len(left) == 0 {
		return nil
	}
	has, err := source.Has(ctx, k.scratch(), now.git().Tree())
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(l gitdata.Left) bool {
		_, err := os.Lstat(filepath.Join(t.Dir, l.Name))
		return err == nil && !has[l.Name]
	})
	if len(left) > 0 {
		return fmt.Errorf("%s would be lost, since it could not be saved. Have it committed or moved away first", listed(left))
	}
	return nil
}

const (
	nextSuffix    = ".next" // of the folder that takes its place
	wasSuffix     = ".was-" // of the folder before a rewind, then its key and the commit with its files
	rewoundSuffix = ".rewound"
)

// ErrUnfinished is of a rewind that has changed the files, and is to be ended by another try.
var ErrUnfinished = errors.New("not all of the files are taken back yet")

// beside begins the names of the folders that a rewind makes: beside the thread's own folder, and elsewhere for a further
// repository, since what lies beside that is the session's.
func (k *Keeper) beside(t Thread, p Project) string {
	return filepath.Join(k.DataDir, "workspaces", p.key(), strconv.FormatInt(t.ID, 10))
}

// settle ends a rewind that was interrupted between its steps: where the new folder has not taken the old one's place
// the old one comes back; else what stays goes over, and the old one goes.
func (k *Keeper) settle(ctx context.Context, t Thread, p Project) (told string, err error) {
	if p.Kind != Worktree {
		return "", nil
	}
	own, beside := k.ownFolder(t, p), k.beside(t, p)
	found, err := filepath.Glob(gitdata.EscapeGlob(beside+wasSuffix) + "*")
	if err != nil || len(found) == 0 {
		return "", err
	}
	if err := p.plain(own); err != nil {
		return "", err
	}
	was := found[0]
	if !isDir(own) {
		return "", errors.Join(os.MkdirAll(filepath.Dir(own), 0o700), os.Rename(was, own))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnfinished, err)
		}
	}()
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return "", err
	}
	key, commit, _ := strings.Cut(strings.TrimPrefix(was, beside+wasSuffix), "-")
	if err := source.Carry(ctx, k.scratch(), was, own, commit); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		away := fmt.Sprintf("%s.before-%d", beside, time.Now().UnixNano())
		if err := os.Rename(was, away); err != nil {
			return "", err
		}
		told = fmt.Sprintf("Some of the files that git does not know have not come along (%v); they are in %s on the bot's machine.", err, away)
	}
	done, err := hex.DecodeString(key)
	if err != nil {
		return told, err
	}
	if err := writeWhole(k.savedIndex(t, p)+rewoundSuffix, string(done)); err != nil || told != "" {
		return told, err
	}
	_ = k.discard(was, p) // it is done; the next start removes what is left
	return "", nil
}
