package agent

import (
	"strings"
	"testing"

	"deckhand/internal/agent/place"
	"deckhand/internal/store"
	"deckhand/internal/workspace"
	"deckhand/internal/workspace/gitdata"
)

// TestDryRun: people are told what a rewind takes away, of pushed commits what follows from it, and in one line each what
// a session has named.
func TestDryRun(t *testing.T) {
	t.Parallel()
	d := place.Differs{Loss: workspace.Loss{
		LeavingRef: gitdata.LeavingRef{
			Files: []gitdata.File{{Path: "a\n<!here>", Status: "M", Added: 1, Removed: 2}, {Path: "b", Status: "D", Binary: true}}, More: 3, Added: 1, Removed: 2,
			Lost: gitdata.Commits{Count: 2, Some: []gitdata.Commit{{ID: strings.Repeat("1a", 20), Subject: "fix\nit"}, {ID: strings.Repeat("2b", 20), Subject: "more"}}},
		},
		Pushed: 1, Alone: "refs/stash is nowhere else",
	}}
	want := `A rewind to before “x” would change this; nothing is changed yet.
Files: 5, +1 −2 lines.
• a <!here> +1 −2
• b, goes
• and 3 more
Commits that leave the branch: 2.
• 1a1a1a1a1 fix it
• 2b2b2b2b2 more
1 of them is pushed: the remote keeps them on deckhand/7, and the next push would be a forced one, which is asked about in two steps.
Claude will not know what was said since.
What git ignores stays as it is. What is there now is kept, and “rewind back” brings it back; the ledger and the audit keep everything.
Lost for good: refs/stash is nowhere else.`
	if got := dryRun([]place.Differs{d}, "to before “x”", "deckhand/7", false); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := lossWords([]place.Differs{d}); got != "rewind 5 files and drop 2 commits" {
		t.Error(got)
	}
	d.Pushed, d.Unasked = 0, true
	if got := dryRun([]place.Differs{d}, "", "", true); !strings.Contains(got, "The remote could not be asked") || strings.Contains(got, "Claude will not know") || strings.Contains(got, "brings it back") {
		t.Error(got)
	}
	lib := d
	lib.Of, lib.Pushed, lib.Files, lib.More, lib.Unasked = "lib", 2, d.Files[:1], 0, false
	all := []place.Differs{{}, {Of: "api"}, lib, {Of: "new", Stays: true}}
	want = `A rewind to x would change this; nothing is changed yet.
Files: none.
In the repository api: nothing.
In the repository lib:
Files: 1, +1 −2 lines.
• a <!here> +1 −2
Commits that leave the branch: 2.
• 1a1a1a1a1 fix it
• 2b2b2b2b2 more
2 of them are pushed: the remote keeps them on deckhand/7, and the next push would be a forced one, which is asked about in two steps.
The repository new stays as it is: what it was then is not kept.
Claude will not know what was said since.
What git ignores stays as it is. What is there now is kept, and “rewind back” brings it back; the ledger and the audit keep everything.
Lost for good in lib: refs/stash is nowhere else.`
	if got := dryRun(all, "to x", "deckhand/7", false); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := lossWords(nil); got != "rewind the conversation" {
		t.Errorf("where no file changed: %q", got)
	}
	if got := lossWords(all); got != "rewind 1 file and drop 2 commits" {
		t.Error(got)
	}
}

// TestRewindTo: a rewind leads to the turn before the chosen one, in that one's session; and back to where the last began.
func TestRewindTo(t *testing.T) {
	t.Parallel()
	h := store.History{Back: "s0", BackTurn: 9, Turns: []store.Past{{Turn: 3, SessionID: "s1", Prompt: "one\ntwo"}, {Turn: 5, Before: 3, SessionID: "s2", Prompt: strings.Repeat("é", 60)}}}
	for _, c := range []struct {
		to, turn       int64
		session, words string
		ok             bool
	}{
		{5, 3, "s2", "to before “" + strings.Repeat("é", 50) + "…”", true},
		{3, 0, "s1", "to before “one two”", true},
		{0, 9, "s0", "to what it was before the last rewind", true},
		{4, 0, "", "That is no message of this thread. Write “rewind” to choose one.", false},
	} {
		to, words, ok := rewindTo(h, c.to)
		if to.Turn != c.turn || to.SessionID != c.session || words != c.words || ok != c.ok {
			t.Errorf("%d: %+v, %q, %v", c.to, to, words, ok)
		}
	}
	if _, _, ok := rewindTo(store.History{}, 0); ok {
		t.Error("a thread that was not rewound goes back")
	}
}
