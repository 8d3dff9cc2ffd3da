package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
)

// copied is a thread's home with the mirror of its session.
type copied struct {
	*Mirror
	t     *testing.T
	homes Homes
	store *store.Store
	full  int // how often it was said that the limit was reached
	gaps  int // and that a line was not written
}

const copiedThread = 1

func newCopied(t *testing.T) *copied {
	t.Helper()
	c := &copied{t: t, homes: Homes{Dir: filepath.Join(t.TempDir(), "home")}, store: storetest.New(t)}
	ctx := t.Context()
	envelope, _, err := c.store.Receive(ctx, inbox.Envelope{EventID: "e", Kind: inbox.Message, TeamID: "T", ChannelID: "C", ThreadTS: "1.1", TS: "1.1", UserID: "U", Payload: []byte("{}")})
	must(t, err)
	_, _, err = c.store.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: envelope, Thread: threads.ThreadKey{TeamID: "T", ChannelID: "C", ThreadTS: "1.1"}, Project: "web", UserID: "U", UUID: uuid.NewString(), Text: "go"})
	must(t, err)
	must(t, os.MkdirAll(c.homes.Of(copiedThread), 0o700))
	c.Mirror = NewMirror(Options{
		Store: c.store, Home: c.homes.Of(copiedThread), Lease: c.take("A"), SessionID: goingOn, New: true, Limit: 1 << 20, One: make(chan struct{}, 1), Log: zap.NewNop(),
		Full: func(context.Context) { c.full++ }, Gap: func(context.Context) { c.gaps++ },
	})
	must(t, c.store.NewSession(ctx, c.o.Lease, goingOn, ""))
	return c
}

// take takes the lease for a replica whose predecessor's has run out.
func (c *copied) take(owner string) threads.Lease {
	c.t.Helper()
	if c.Mirror != nil {
		must(c.t, c.store.ReleaseLease(c.t.Context(), c.o.Lease, false))
	}
	th, ok, err := storetest.Acquire(c.t.Context(), c.store, copiedThread, owner)
	if must(c.t, err); !ok {
		c.t.Fatal("the lease is held")
	}
	return threads.Lease{ThreadID: th.ID, Owner: owner, Epoch: th.LeaseEpoch}
}

func (c *copied) path(name string) string {
	return filepath.Join(c.o.Home, keptProjects, "-srv-web", name)
}

const (
	own  = goingOn + ".jsonl"
	subs = goingOn + "/subagents/"
)

// writes makes a file of the session say so.
func (c *copied) writes(name, text string) {
	c.t.Helper()
	put(c.t, c.path(name), text)
}

// adds has the session say more.
func (c *copied) adds(name, text string) {
	c.t.Helper()
	must(c.t, os.MkdirAll(filepath.Dir(c.path(name)), 0o700))
	f, err := os.OpenFile(c.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(c.t, err)
	_, err = f.WriteString(text)
	must(c.t, errors.Join(err, f.Close()))
}

// copy looks once.
func (c *copied) copy(when moment) {
	c.t.Helper()
	must(c.t, c.copyAll(c.t.Context(), when))
}

// holds fails unless the copy of a file is that.
func (c *copied) holds(agent, want string) {
	c.t.Helper()
	if got := c.copyOf(agent); got != want {
		c.t.Fatalf("the copy of %q is\n%.300q\nwant\n%.300q", agent, got, want)
	}
}

func (c *copied) copyOf(agent string) string {
	c.t.Helper()
	list, err := c.store.Transcripts(c.t.Context(), goingOn)
	must(c.t, err)
	for _, t := range list {
		if t.Agent == agent {
			var text bytes.Buffer
			must(c.t, c.store.ReadTranscript(c.t.Context(), t, &text))
			return text.String()
		}
	}
	return ""
}

// entry is a line that is kept, of so many bytes.
func entry(n, size int) string {
	line := fmt.Sprintf(`{"type":"user","n":%d,"text":"`, n)
	return line + strings.Repeat("x", max(0, size-len(line)-3)) + "\"}\n"
}

const notKept = `{"type":"permission-mode","permissionMode":"bypassPermissions"}` + "\n"

func TestAMirrorFollowsItsFiles(t *testing.T) {
	t.Parallel()
	c := newCopied(t)
	c.copy(inTurn) // there is nothing
	one, two, three := entry(1, 100), entry(2, 100), entry(3, 100)
	c.writes(own, one+notKept+two[:50])
	c.copy(inTurn)
	c.holds("", one)
	c.adds(own, two[50:])
	c.adds(subs+"agent-a1.jsonl", one)
	c.copy(inTurn)
	c.holds("", one+two)
	c.holds("agent-a1", one)
	c.writes(own, one+three) // of another text
	c.copy(inTurn)
	c.holds("", one+two)
	c.copy(afterTurn)
	c.holds("", one+three)
	c.writes(own, one) // shorter
	c.copy(atEnd)
	c.holds("", one+three)
	c.copy(afterTurn)
	c.holds("", one)
	must(t, os.Remove(c.path(own)))
	c.copy(afterTurn)
	c.holds("", one)
	c.writes(own, "garbage\n"+notKept) // which is no conversation
	c.copy(afterTurn)
	c.holds("", one)
	c.writes(own, one+two)
	c.copy(afterTurn)
	c.holds("", one+two)

	// A turn's end that fails has copied nothing; the next has all.
	c.adds(own, three)
	broken := errors.New("away")
	if err := c.End(t.Context(), func([]transcripts.Part) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	var parts []transcripts.Part
	must(t, c.End(t.Context(), func(p []transcripts.Part) error {
		parts = p
		_, err := c.store.SaveTranscripts(t.Context(), c.o.Lease, p)
		return err
	}))
	c.holds("", one+two+three)
	if len(parts) != 1 || len(parts[0].Pieces) != 1 {
		t.Errorf("%d parts", len(parts))
	}
	must(t, c.End(t.Context(), func(p []transcripts.Part) error {
		if len(p) > 0 {
			t.Error("what is copied is copied again")
		}
		return nil
	}))
	// One that was not written, unbeknown to the mirror, is found out and mended.
	c.adds(own, one)
	must(t, c.End(t.Context(), func([]transcripts.Part) error { return nil }))
	c.adds(own, two)
	if err := c.copyAll(t.Context(), inTurn); err == nil {
		t.Error("nobody noticed")
	}
	c.copy(inTurn)
	c.holds("", one+two+three+one+two)
	if c.full > 0 {
		t.Errorf("full %d times", c.full)
	}
}

// TestAMirrorReadsNoOtherFile: what lies there under a transcript's name is the session's
// to choose, but it must be a file of its own.
func TestAMirrorReadsNoOtherFile(t *testing.T) {
	t.Parallel()
	c := newCopied(t)
	secret := filepath.Join(t.TempDir(), "secret.jsonl")
	put(t, secret, entry(1, 100))
	must(t, os.MkdirAll(c.path(subs), 0o700))
	must(t, os.Symlink(secret, c.path(own)))
	must(t, os.Link(secret, c.path(subs+"agent-hard.jsonl")))
	must(t, syscall.Mkfifo(c.path(subs+"agent-pipe.jsonl"), 0o600))
	must(t, os.Mkdir(c.path(subs+"agent-dir.jsonl"), 0o700))
	for _, name := range []string{"agent-../x.jsonl", "agent-a.meta.json", "notes.jsonl", "agent-" + strings.Repeat("a", 200) + ".jsonl"} {
		c.writes(subs+strings.ReplaceAll(name, "/", "_"), entry(1, 100))
	}
	c.writes(earlier+".jsonl", entry(1, 100))
	c.copy(afterTurn)
	// A folder that leads elsewhere.
	must(t, os.RemoveAll(filepath.Join(c.o.Home, keptProjects)))
	elsewhere := t.TempDir()
	put(t, filepath.Join(elsewhere, "-srv-web", own), entry(1, 100))
	must(t, os.Symlink(elsewhere, filepath.Join(c.o.Home, keptProjects)))
	c.copy(afterTurn)
	must(t, os.RemoveAll(c.o.Home))
	put(t, filepath.Join(elsewhere, keptProjects, "-srv-web", own), entry(1, 100))
	must(t, os.Symlink(elsewhere, c.o.Home))
	if err := c.copyAll(t.Context(), afterTurn); err == nil {
		t.Error("a home that is a link was looked into")
	}
	if list, err := c.store.Transcripts(t.Context(), goingOn); err != nil || len(list) > 0 {
		t.Errorf("copied: %+v, %v", list, err)
	}
}

// TestAMirrorHasALimit: of all files together; people are told once, whoever asks.
func TestAMirrorHasALimit(t *testing.T) {
	t.Parallel()
	c := newCopied(t)
	c.o.Limit = 1000
	c.writes(own, entry(1, 400)+entry(2, 400))
	c.writes(subs+"agent-a.jsonl", entry(3, 400))
	c.copy(afterTurn)
	c.holds("", entry(1, 400)+entry(2, 400))
	c.holds("agent-a", "")
	c.adds(own, entry(4, 400)+entry(5, 10))
	c.copy(afterTurn)
	c.adds(own, entry(6, 100))
	c.copy(afterTurn)
	c.holds("", entry(1, 400)+entry(2, 400))
	c.files = nil // the next process's mirror
	c.copy(afterTurn)
	if c.full != 1 {
		t.Errorf("full %d times", c.full)
	}
	list, err := c.store.Transcripts(t.Context(), goingOn)
	if err != nil || len(list) != 2 || !list[0].Full || !list[1].Full {
		t.Errorf("%+v, %v", list, err)
	}

	// A file that is far larger than it could be, and says nothing, is not read.
	c = newCopied(t)
	c.o.Limit = 1000
	c.writes(own, entry(1, 100))
	c.copy(afterTurn)
	must(t, os.Truncate(c.path(own), 1<<40))
	c.copy(afterTurn)
	c.holds("", entry(1, 100))
	if c.full != 1 {
		t.Errorf("full %d times", c.full)
	}
}

// TestAMirrorFindsAGap: a line that the disk did not take is told when another follows it,
// once, and not again by the next process.
func TestAMirrorFindsAGap(t *testing.T) {
	t.Parallel()
	c := newCopied(t)
	line := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%s}`+"\n", id, parent)
	}
	c.writes(own, line("a", "null")+line("b", `"a"`))
	c.adds(own, entry(1, 100)) // which has no place
	c.adds(subs+"agent-a.jsonl", line("s", `"not there"`))
	c.copy(inTurn)
	c.adds(own, line("c", `"b"`)+line("d", `"b"`)) // two that follow the same
	c.copy(afterTurn)
	if c.gaps != 0 {
		t.Error("a gap is told where there is none")
	}
	c.adds(own, line("f", `"e"`))
	c.copy(inTurn)
	c.adds(own, line("h", `"g"`))
	c.copy(afterTurn)
	c.Mirror = NewMirror(c.o) // the next process's
	c.files = nil
	c.adds(own, line("i", `"h"`))
	c.copy(afterTurn)
	if c.gaps != 1 {
		t.Errorf("told %d times", c.gaps)
	}
}

// TestAHomeIsRestored: when it lacks its session, or has an older one, or another.
func TestAHomeIsRestored(t *testing.T) {
	t.Parallel()
	one, two, three := entry(1, 100), entry(2, 100), entry(3, 100)
	for name, tt := range map[string]struct {
		here string // the session's file; empty for none
		want string
		back bool
	}{
		"missing":                {"", one + two, true},
		"older":                  {one, one + two, true},
		"of another machine":     {one + three, one + two, true},
		"emptied":                {notKept, one + two, true},
		"torn":                   {one + two[:30], one + two, true},
		"the same":               {one + two, one + two, false},
		"newer":                  {one + two + three, one + two + three, false},
		"newer, and torn":        {one + notKept + two + three[:40], one + notKept + two + three[:40], false},
		"the same, its end torn": {one + strings.TrimSpace(two), one + strings.TrimSpace(two), false},
	} {
		c := newCopied(t)
		c.writes(own, one+two)
		c.writes(subs+"agent-a.jsonl", three)
		c.writes(earlier+".jsonl", "earlier\n")
		c.copy(afterTurn)
		must(t, os.RemoveAll(c.path(goingOn)))
		if c.writes(own, tt.here); tt.here == "" {
			must(t, os.Remove(c.path(own)))
		}
		copies, err := c.store.Transcripts(t.Context(), goingOn)
		must(t, err)
		back, err := c.homes.Restore(t.Context(), copiedThread, goingOn, copies, c.store.ReadTranscript)
		if err != nil || back != tt.back {
			t.Errorf("%s: restored %v, %v", name, back, err)
		}
		got := map[string]string{}
		for path, text := range contents(t, filepath.Join(c.o.Home, keptProjects)) {
			got[strings.SplitN(path, "/", 2)[1]] = text
		}
		want := map[string]string{own: tt.want, earlier + ".jsonl": "earlier\n"}
		if tt.back {
			want[subs+"agent-a.jsonl"] = three
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the home holds\n%v\nwant\n%v", name, got, want)
		}
	}
}

// TestWhatCannotBeRestored: a copy that is damaged leaves what there is, and a home that
// cannot be written says so.
func TestWhatCannotBeRestored(t *testing.T) {
	t.Parallel()
	c := newCopied(t)
	c.writes(own, entry(1, 100)+entry(2, 100))
	c.copy(afterTurn)
	c.writes(own, entry(1, 100))
	copies, err := c.store.Transcripts(t.Context(), goingOn)
	must(t, err)
	damaged := func(_ context.Context, _ transcripts.Transcript, out io.Writer) error {
		_, err := io.WriteString(out, "half")
		return errors.Join(err, transcripts.ErrDamaged)
	}
	if back, err := c.homes.Restore(t.Context(), copiedThread, goingOn, copies, damaged); back || !errors.Is(err, transcripts.ErrDamaged) {
		t.Errorf("%v, %v", back, err)
	}
	if got := contents(t, filepath.Join(c.o.Home, keptProjects)); len(got) != 1 || got["-srv-web/"+own] != entry(1, 100) {
		t.Errorf("the home holds %v", got)
	}
	// A subagent's that is damaged does not keep the session from being restored.
	c.writes(own, entry(1, 100)+entry(2, 100))
	c.adds(subs+"agent-a.jsonl", entry(3, 100))
	c.copy(afterTurn)
	must(t, os.RemoveAll(c.o.Home))
	copies, err = c.store.Transcripts(t.Context(), goingOn)
	must(t, err)
	some := func(ctx context.Context, tr transcripts.Transcript, out io.Writer) error {
		if tr.Agent != "" {
			return damaged(ctx, tr, out)
		}
		return c.store.ReadTranscript(ctx, tr, out)
	}
	if back, err := c.homes.Restore(t.Context(), copiedThread, goingOn, copies, some); !back || !errors.Is(err, transcripts.ErrDamaged) {
		t.Errorf("a subagent's is damaged: %v, %v", back, err)
	}
	if got := contents(t, filepath.Join(c.o.Home, keptProjects)); len(got) != 1 || got["-restored/"+own] != entry(1, 100)+entry(2, 100) {
		t.Errorf("the home holds %v", got)
	}
	must(t, os.RemoveAll(c.homes.Dir))
	put(t, c.homes.Dir, "a file")
	var home *HomeError
	if _, err := c.homes.Restore(t.Context(), copiedThread, goingOn, copies, c.store.ReadTranscript); !errors.As(err, &home) {
		t.Errorf("%v", err)
	}
}

// TestALateMirrorIsFenced: who has lost the lease overwrites nothing, and what it has
// beyond the copy gives way.
func TestALateMirrorIsFenced(t *testing.T) {
	t.Parallel()
	c := newCopied(t)
	one, two, three := entry(1, 100), entry(2, 100), entry(3, 100)
	c.writes(own, one)
	c.copy(afterTurn)
	late := *c // the first machine, with its home
	moved := Homes{Dir: filepath.Join(t.TempDir(), "home")}
	o := c.o
	o.Home, o.Lease, o.New = moved.Of(copiedThread), c.take("B"), false
	c.Mirror = NewMirror(o)
	copies, err := c.store.Transcripts(t.Context(), goingOn)
	must(t, err)
	if back, err := moved.Restore(t.Context(), copiedThread, goingOn, copies, c.store.ReadTranscript); !back || err != nil {
		t.Fatal(back, err)
	}
	late.adds(own, two)
	if err := late.copyAll(t.Context(), afterTurn); !errors.Is(err, threads.ErrFenced) {
		t.Errorf("the late one: %v", err)
	}
	must(t, late.End(t.Context(), func([]transcripts.Part) error { return nil })) // as if it had
	file := filepath.Join(c.o.Home, keptProjects, "-restored", own)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(three)
	must(t, errors.Join(err, f.Close()))
	c.copy(inTurn)
	c.holds("", one+three)
	// Back on the first machine.
	copies, err = c.store.Transcripts(t.Context(), goingOn)
	must(t, err)
	if back, err := c.homes.Restore(t.Context(), copiedThread, goingOn, copies, c.store.ReadTranscript); !back || err != nil {
		t.Fatal(back, err)
	}
	if b, err := os.ReadFile(late.path(own)); err != nil || string(b) != one+three {
		t.Errorf("it has %q, %v", b, err)
	}
}

// TestACopyIsWhatTheNextProcessGoesOnWith: whatever a session does to its file, in
// whichever steps it is copied, and however often its process and its mirror are new.
func TestACopyIsWhatTheNextProcessGoesOnWith(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 12))
		c := newCopied(t)
		c.o.Limit = 64 << 20
		for n := range 60 {
			switch k := r.IntN(20); {
			case k < 9:
				c.adds(own, entry(n, r.IntN(2*pieceBytes/max(1, r.IntN(40)))))
			case k < 11:
				c.adds(own, notKept)
			case k == 11:
				line := entry(n, 200)
				c.adds(own, line[:100])
				c.copy(inTurn)
				c.adds(own, line[100:])
			case k == 12:
				if info, err := os.Stat(c.path(own)); err == nil {
					must(t, os.Truncate(c.path(own), r.Int64N(info.Size()+1)))
					c.adds(own, "\n"+entry(n, 300)) // else it may be the empty conversation
				}
			case k == 13:
				c.files = nil // the next mirror
			case k == 14: // the next process
				copies, err := c.store.Transcripts(t.Context(), goingOn)
				must(t, err)
				if len(copies) > 0 {
					_, err = c.homes.Restore(t.Context(), copiedThread, goingOn, copies, c.store.ReadTranscript)
					must(t, err)
				}
				must(t, c.homes.Renew(copiedThread, goingOn))
				c.files = nil
			default:
				c.copy(moment(r.IntN(3)))
			}
		}
		c.copy(afterTurn)
		var want bytes.Buffer
		if text, err := os.ReadFile(c.path(own)); err == nil {
			must(t, claude.CopyTranscript(&want, bytes.NewReader(text)))
		}
		if got := c.copyOf(""); got != want.String() && !strings.HasPrefix(got, want.String()) {
			t.Errorf("seed %d: the copy has %d bytes, want %d", seed, len(got), want.Len())
		}
	}
}
