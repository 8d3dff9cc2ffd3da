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
	Began string      // the commit that the thread's first turn began at, if that is this one
	Still func() bool // reports whether nothing has changed the folder since the turn; nil for nothing has
}

// maxStates is how many states of a thread are kept, the newest.
const maxStates = 20

// heldRef is the project's ref for the thread's states.
func heldRef(threadID int64) string { return "refs/deckhand/turns/" + strconv.FormatInt(threadID, 10) }

// hold adds the thread's present state to those that are kept.
func (k *Keeper) hold(ctx context.Context, t Thread, source gitdata.Repository, now *Kept) error {
	end := t.End
	if end == nil || now.Branch == "" || end.Still != nil && !end.Still() {
		return nil
	}
	is := State{Turn: end.Turn, Branch: now.Branch, Saved: now.Saved, At: now.At}
	states := slices.DeleteFunc(slices.Clone(now.States), func(s State) bool { return s.Turn == is.Turn })
	if end.Began != "" && len(states) == 0 {
		states = append(states, State{Branch: end.Began, At: now.At})
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

// Differs describes the way from one state of the thread to another. forge is the commit of the thread's branch at the
// forge, or empty. [gitdata.ErrGone] says that the other state is not on this machine.
func (k *Keeper) Differs(ctx context.Context, t Thread, p Project, now, then State, forge string) (l Loss, err error) {
	ctx, cancel := t.bounded(ctx)
	defer cancel()
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return l, err
	}
	l.LeavingRef, l.Pushed, err = source.Between(ctx, k.scratch(), now.git(), then.git(), forge)
	l.Alone = aloneIn(t.Dir, source)
	return l, err
}

// Rewind has the thread's folder be as it was in the state then, with a git folder of our making. now is its present
// state: what is in no file of that, such as what is ignored, stays. key names this rewind: done again by the same key it
// does nothing more, also after a crash in its middle. After an error the folder is as it was, unless that is
// [ErrUnfinished]; told says to people what has not come along. The thread must have no process.
func (k *Keeper) Rewind(ctx context.Context, t Thread, p Project, now, then State, key string) (told string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, fmt.Errorf("git: no end in %s", gitTimeout))
	defer cancel()
	own := k.ownFolder(t, p)
	if p.Kind != Worktree || p.Further != "" || t.Dir != own {
		return "", errors.New("this thread has no folder with a git folder of its own")
	}
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return "", err
	}
	if told, err = k.settle(ctx, t, p); err != nil {
		return told, err
	}
	mark := k.savedIndex(t, p) + rewoundSuffix
	if readStamp(mark) == key {
		return told, nil
	}
	if err := k.wouldLose(ctx, t, p, source, now); err != nil {
		return "", err
	}
	next := own + nextSuffix
	if err := os.RemoveAll(next); err != nil {
		return "", err
	}
	state := then.git()
	made, err := gitdata.Clone{
		Source: source, Dir: next, Branch: t.Branch, Base: p.Base, Subdir: p.Subdir, OfOrigin: p.Repo != "", Saved: savedRef(t.ID), Index: k.savedIndex(t, p),
		Scratch: k.scratch(), Environ: p.Environ, State: &state,
	}.Make(ctx)
	if err == nil && made.Aside != nil {
		err = errors.New("what was saved then does not fit the branch as it was then")
	}
	if err == nil {
		err = os.Rename(own, own+wasSuffix+hex.EncodeToString([]byte(key))+"-"+now.git().Tree())
	}
	if err == nil {
		err = os.Rename(next, own)
	}
	if err != nil {
		_, undone := k.settle(context.WithoutCancel(ctx), t, p)
		return "", errors.Join(err, undone, os.RemoveAll(next))
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
var ErrUnfinished = errors.New("the files are taken back, and what git does not know is not in its place yet")

// settle ends a rewind that was interrupted between its steps: where the new folder has not taken the old one's place
// the old one comes back; else what stays goes over, and the old one goes.
func (k *Keeper) settle(ctx context.Context, t Thread, p Project) (told string, err error) {
	own := k.ownFolder(t, p)
	if p.Kind != Worktree || p.Further != "" { // what lies beside a further repository is the session's
		return "", nil
	}
	found, err := filepath.Glob(gitdata.EscapeGlob(own+wasSuffix) + "*")
	if err != nil || len(found) == 0 {
		return "", err
	}
	was := found[0]
	if !isDir(own) {
		return "", os.Rename(was, own)
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
	key, commit, _ := strings.Cut(strings.TrimPrefix(was, own+wasSuffix), "-")
	if err := source.Carry(ctx, k.scratch(), was, own, commit); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		away := fmt.Sprintf("%s.before-%d", own, time.Now().UnixNano())
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
