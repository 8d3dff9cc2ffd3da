package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/plaintext"
	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/work"
	"deckhand/internal/transcript"
	"deckhand/internal/workspace"
)

// A rewind is a prompt that is no turn. Looked at, it tells what would change. Done, it goes in steps, each of which can
// be repeated: what is there is saved; the row says that it has begun; the folder is changed, by a rename; one transaction
// gives the thread its other session and ends the row. The row comes before all other prompts, so whoever takes the
// thread after a crash ends the rewind before anything else is done in it.

// rewind does what the prompt is instead of a turn.
func (w *worker) rewind(ctx context.Context, p inbox.Prompt) error {
	if _, _, err := w.store.RunningTurn(ctx, w.threadID); err == nil {
		return w.endRewind(ctx, p, "Nothing was rewound: a message is still being worked on. Write “stop” first, then “rewind”.")
	} else if !errors.Is(err, pg.ErrNotFound) {
		return err
	}
	h, err := w.store.History(ctx, w.threadID)
	if err != nil {
		return err
	}
	if !p.Begun && GoneOn(h, *p.Rewind) {
		return w.dropRewind(ctx, p, inbox.Drop{Sentence: func(int) string { return NotRewound }, Alone: true})
	}
	to, before, ok := rewindTo(h, p.Rewind.To)
	then, kept := h.State(to.Turn)
	maps.DeleteFunc(then, func(repository string, _ work.State) bool {
		_, err := w.project.In(repository) // one that is not the project's any more stays as it is
		return err != nil
	})
	if !ok {
		return w.endRewind(ctx, p, before)
	}
	if !kept {
		return w.endRewind(ctx, p, "Nothing can be rewound to that any more: what the files were then is not kept. Write “rewind” to see to what it can.")
	}
	if _, saved := h.State(h.Last()); p.Rewind.Go || !saved {
		w.stopSession(ctx, false) // its last words are copied, and nothing else saves
	}
	if err := w.openWorkspace(ctx); err != nil {
		if start, ok := errors.AsType[*startError](err); ok {
			return w.endRewind(ctx, p, start.sentence)
		}
		return err
	}
	if !p.Begun && w.session == nil {
		if h, err = w.saveState(ctx, h); err != nil {
			return w.failRewind(ctx, p, err)
		}
	}
	now, saved := h.State(h.Last())
	if !saved {
		return w.failRewind(ctx, p, errors.New("what is there now could not be saved"))
	}
	if !p.Rewind.Go {
		return w.showRewind(ctx, p, h, now, then, before)
	}
	// Before anything is changed, what is to come is known.
	point := store.Point{Turn: to.Turn, SessionID: to.SessionID, States: then}
	if p.Rewind.To != 0 {
		if point.Conversation, err = transcript.Until(ctx, w.store, to.SessionID, to.Turn, uuid.NewString()); err != nil {
			return w.failRewind(ctx, p, err)
		}
	}
	if err := w.store.MoveRewind(ctx, w.heldLease(), p.InboxID, true); err != nil {
		return err
	}
	told, err := w.place.Rewind(ctx, w.thread, w.project, now, then, strconv.FormatInt(p.InboxID, 10))
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, workspace.ErrUnfinished) {
			return cmp.Or(context.Cause(ctx), err)
		}
		if err := w.store.MoveRewind(ctx, w.heldLease(), p.InboxID, false); err != nil {
			return err
		}
		p.Begun = false
		return w.failRewind(ctx, p, err)
	}
	undo, buttons := "“rewind back” undoes it. ", []outbox.Button{{Label: "undo it", Say: "rewind back"}}
	if p.Rewind.To == 0 {
		undo, buttons = "", nil // the session before the rewind does not lead to the one after it
	}
	session, rows, err := w.store.FinishRewind(ctx, w.heldLease(), store.Rewound{
		InboxID: p.InboxID, By: p.UserID, To: point, From: h.Last(), Back: p.Rewind.To == 0,
		Sentence: strings.TrimSpace("⏪ " + p.Rewind.Name + " took this thread back " + before + ": its files, its branch and what Claude knows. Permissions that were given for this thread alone have ended. " + undo + told),
		Buttons:  buttons,
	})
	if err != nil {
		return err
	}
	w.thread.SessionID = session
	w.front.Tell(rows...)
	w.closeOffer()
	if _, err := w.saveState(ctx, store.History{Turns: []store.Past{{Turn: to.Turn}}}); err != nil {
		w.log.Warn("save what was rewound", zap.Error(err)) // the database has it, and the next turn's end saves it again
	}
	return nil
}

// GoneOn reports whether a thread is not any more what somebody was shown who wants a rewind done.
func GoneOn(h store.History, r inbox.Rewind) bool {
	return r.Go && (r.Point != h.Last() || r.In != h.SessionID)
}

// NotRewound is what they alone are told then.
const NotRewound = "Nothing was rewound: this thread has gone on since that was shown, or it was done already. Write “rewind” to see how it is now."

// rewindTo is the end of the turn to which a rewind leads, in the session whose conversation it is, and that in words
// that follow “took this thread back”. Turn 0 is what was there before the last rewind. Where there is no such end,
// the words say that.
func rewindTo(h store.History, turn int64) (to store.Past, words string, ok bool) {
	switch {
	case turn == 0 && h.Back == "":
		return to, "This thread was not rewound, so there is nothing to undo.", false
	case turn == 0:
		return store.Past{Turn: h.BackTurn, SessionID: h.Back}, "to what it was before the last rewind", true
	}
	for _, p := range h.Turns {
		if p.Turn == turn {
			return store.Past{Turn: p.Before, SessionID: p.SessionID}, "to before “" + p.Beginning() + "”", true
		}
	}
	return to, "That is no message of this thread. Write “rewind” to choose one.", false
}

// saveState saves what the folder is after the last turn of the history, and reads that again.
func (w *worker) saveState(ctx context.Context, h store.History) (store.History, error) {
	if err := w.place.Publish(ctx, w.thread, w.project, workspace.PublishTime); err != nil {
		return h, err
	}
	if _, err := w.place.Save(ctx, w.thread, w.project, workspace.PublishTime, &workspace.End{Turn: h.Last()}); err != nil {
		return h, err
	}
	return w.store.History(ctx, w.threadID)
}

// endRewind ends a rewind that has changed nothing. One that has begun may have changed the files: it is tried again.
func (w *worker) endRewind(ctx context.Context, p inbox.Prompt, sentence string, buttons ...outbox.Button) error {
	if p.Begun {
		return errors.New("a rewind has begun and cannot be ended: " + sentence)
	}
	return w.dropRewind(ctx, p, inbox.Drop{Sentence: func(int) string { return sentence }, Buttons: buttons})
}

func (w *worker) dropRewind(ctx context.Context, p inbox.Prompt, d inbox.Drop) error {
	d.Outcome = "not rewound"
	rows, err := w.store.DropPrompt(ctx, w.heldLease(), p.InboxID, d)
	if errors.Is(err, pg.ErrNotFound) {
		return nil // it was taken back
	}
	w.front.Tell(rows...)
	return err
}

func (w *worker) failRewind(ctx context.Context, p inbox.Prompt, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.log.Error("rewind the thread", zap.Error(err))
	return w.endRewind(ctx, p, "Nothing was rewound: "+plaintext.OneLine(err.Error())+". The files and the conversation are as they were.")
}

// rewindFiles is how many files, and how many commits, a dry run names.
const rewindFiles = 15

// showRewind tells what a rewind would do, and asks whether it shall.
func (w *worker) showRewind(ctx context.Context, p inbox.Prompt, h store.History, now, then map[string]work.State, before string) error {
	all, err := w.place.Differs(ctx, w.thread, w.project, now, then)
	if err != nil {
		return w.failRewind(ctx, p, err)
	}
	say := fmt.Sprintf("rewind %d yes %d %s", p.Rewind.To, h.Last(), h.SessionID)
	if p.Rewind.To == 0 {
		say = fmt.Sprintf("rewind back yes %d %s", h.Last(), h.SessionID)
	}
	return w.endRewind(ctx, p, dryRun(all, before, w.thread.Branch, p.Rewind.To == 0), outbox.Button{Label: lossWords(all), Say: say})
}

// lossWords is the button that names what is lost.
func lossWords(all []place.Differs) string {
	count := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	files, commits := 0, 0
	for _, d := range all {
		files += len(d.Files) + d.More
		commits += d.Lost.Count
	}
	words := "rewind the conversation"
	if files > 0 {
		words = "rewind " + count(files, "file")
	}
	if commits > 0 {
		words += " and drop " + count(commits, "commit")
	}
	return words
}

// dryRun is what a rewind would do, in lines.
func dryRun(all []place.Differs, before, branch string, back bool) string {
	lines := []string{"A rewind " + before + " would change this; nothing is changed yet."}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, d := range all {
		switch {
		case d.Stays:
			add("The repository %s stays as it is: what it was then is not kept.", d.Of)
		case d.Of != "" && len(d.Files) == 0 && d.Lost.Count == 0 && d.Alone == "":
			add("In the repository %s: nothing.", d.Of)
		case d.Of != "":
			add("In the repository %s:", d.Of)
			fallthrough
		default:
			lines = append(lines, lossLines(d, branch, max(3, rewindFiles/len(all)))...)
		}
	}
	if back {
		add("What git ignores stays as it is. What was done since the rewind will be lost. To keep it, write “fork” first. The ledger and the audit keep everything.")
	} else {
		add("Claude will not know what was said since.")
		add("What git ignores stays as it is. What is there now is kept, and “rewind back” brings it back; the ledger and the audit keep everything.")
	}
	for _, d := range all {
		if d.Alone != "" {
			add("Lost for good%s: %s.", strings.TrimSuffix(" in "+d.Of, " in "), name(d.Alone))
		}
	}
	return strings.Join(lines, "\n")
}

// lossLines are what a rewind would do in a repository; most is how many files, and how many commits, they name.
func lossLines(d place.Differs, branch string, most int) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if len(d.Files) == 0 {
		add("Files: none.")
	} else {
		add("Files: %d, +%d −%d lines.", len(d.Files)+d.More, d.Added, d.Removed)
	}
	shown := d.Files[:min(len(d.Files), most)]
	for _, f := range shown {
		lines = append(lines, "• "+name(f.Path))
		if !f.Binary {
			lines[len(lines)-1] += fmt.Sprintf(" +%d −%d", f.Added, f.Removed)
		}
		lines[len(lines)-1] += map[string]string{"A": ", comes back", "D": ", goes"}[f.Status]
	}
	if more := len(d.Files) + d.More - len(shown); more > 0 {
		add("• and %d more", more)
	}
	if d.Lost.Count > 0 {
		add("Commits that leave the branch: %d.", d.Lost.Count)
		for _, c := range d.Lost.Some[:min(len(d.Lost.Some), most)] {
			add("• %s %s", c.ID[:9], name(c.Subject))
		}
	}
	switch {
	case d.Pushed > 0:
		add("%d of them %s pushed: the remote keeps them on %s, and the next push would be a forced one, which is asked about in two steps.", d.Pushed, map[bool]string{true: "is", false: "are"}[d.Pushed == 1], branch)
	case d.Unasked && d.Lost.Count > 0:
		add("The remote could not be asked whether it has them. If it does it keeps them, and the next push would be a forced one, which is asked about in two steps.")
	}
	return lines
}

// name is a text of the session's in a line of ours.
func name(s string) string { return plaintext.Clip(plaintext.OneLine(plaintext.Visible(s)), 120) }
