package pulls

import (
	"bytes"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/tools"
	playforge "deckhand/internal/playground/forge"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
)

// TestAPullRequestHasThePictures: those that people were asked about go along, once; others are
// left for the next time; and a forge that does not take them stops nothing.
func TestAPullRequestHasThePictures(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	th := b.thread("two.txt", "two\n")
	take := func(width int) {
		var picture bytes.Buffer
		if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, width, 20))); err != nil {
			t.Fatal(err)
		}
		b.pictures = place.Pictures{Base: "c0ffee", Head: "decade", Before: picture.Bytes(), After: picture.Bytes()}
	}
	page := func() string {
		t.Helper()
		answer, err := http.Get(b.url + playforge.Root + "web/pulls/1") //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // read
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	asked := func() approvals.Approval {
		t.Helper()
		head := b.git("rev-parse", "HEAD")
		push := &forges.Push{Refs: []forges.PushRef{{Name: "refs/heads/" + th.Branch, New: head, Commits: forges.PushCommits{Count: 1}}}}
		push, err := b.Look(t.Context(), th.ID, "U1", policy.Call{Tool: tools.Prefix + "open_pull_request", Input: []byte(`{"title": "A title", "body": ""}`)}, push)
		if err != nil {
			t.Fatal(err)
		}
		a := b.approval(th)
		a.Push = push
		return a
	}
	open := func(a approvals.Approval, says string) {
		t.Helper()
		a.Push.Refs[0].Old = "" // whatever it is
		said, err := b.open(t.Context(), tools.Call{ThreadID: th.ID, Approval: a}, opening{Title: "A title", Body: "A text."})
		if err != nil || (says == "") == strings.Contains(said, "pictures") || !strings.Contains(said, says) {
			t.Errorf("%q, %v", said, err)
		}
	}
	shown := func(n int) {
		t.Helper()
		if got := strings.Count(page(), `<img src="`+b.url+"/attachments/"); got != n {
			t.Errorf("%d pictures are shown, want %d:\n%s", got, n, page())
		}
	}

	take(30)
	a := asked()
	if a.Push.Pull.Pictures != b.pictures.ID() {
		t.Errorf("people are shown the pictures %q", a.Push.Pull.Pictures)
	}
	open(a, "It has the pictures of the page")
	shown(2)
	if text := page(); !strings.Contains(text, "c0ffee") || !strings.Contains(text, "decade") {
		t.Errorf("the page says\n%s", text)
	}
	b.commit("two.txt", "three\n")
	if a = asked(); a.Push.Pull.Pictures != "" {
		t.Error("pictures are shown twice")
	}
	take(40) // while people are asked
	open(a, "other pictures of the page than when this was approved")
	shown(2)

	b.commit("two.txt", "four\n")
	b.fault(map[string]any{"method": "POST", "path": "/assets", "status": 502, "times": 1})
	open(asked(), "could not be put there")
	shown(2)
	b.commit("two.txt", "five\n")
	open(asked(), "It has the pictures of the page")
	shown(4)
}
