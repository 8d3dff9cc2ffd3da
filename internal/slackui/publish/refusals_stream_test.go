package publish_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/agent/claude"
	playground "deckhand/internal/playground/slack"
	"deckhand/internal/slackui/publish"
)

// refuse has the workspace refuse a type of block in streams.
func (w *town) refuse(kind string, silent bool) {
	w.t.Helper()
	body := fmt.Sprintf(`{"block":%q,"place":"stream","silent":%v}`, kind, silent)
	req := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://127.0.0.1/_control/refuse", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.srv.Handler().ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		w.t.Fatal(rec.Body.String())
	}
}

// look is how a turn stands, and by which calls it came there since the last look.
func (w *town) look(a *actor, seen *int) string {
	time.Sleep(15 * time.Second)
	root, ours := a.root, map[string]bool{}
	var kinds, calls []string
	for _, m := range w.replies(a.turn.Thread.ChannelID, root) {
		ours[m.Timestamp] = true
		for _, b := range m.Blocks.BlockSet {
			kinds = append(kinds, string(b.BlockType()))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.answers[*seen:] {
		if x.args.Get("thread_ts") != root && !ours[x.args.Get("ts")] {
			continue
		}
		call := strings.TrimPrefix(string(x.method), "chat.")
		if x.err != "" {
			call += " (" + x.err + ")"
		}
		calls = append(calls, call)
	}
	*seen = len(w.answers)
	slices.Sort(kinds)
	return strings.Join(calls, ", ") + ": " + strings.Join(slices.Compact(kinds), ", ")
}

// TestWhatPeopleSeeOfStreamsThatAreRefused has the workspace refuse every type of block that a
// stream has, and long texts, before it begins or while it grows. The table of docs/slack.md
// is what people saw: what edits show, and that the next turn does not try again.
func TestWhatPeopleSeeOfStreamsThatAreRefused(t *testing.T) {
	var table strings.Builder
	table.WriteString("| refused | a turn begins | a tool runs | more is said | the next turn begins |\n|---|---|---|---|---|\n")
	for _, c := range []struct {
		kind         string
		late, silent bool
		next         publish.Method // begins the next turn, and the one after it
		after        publish.Method
	}{
		{kind: "actions", next: publish.PostMessage, after: publish.PostMessage},
		{kind: "markdown", next: publish.PostMessage, after: publish.PostMessage},
		{kind: "task_card", next: publish.PostMessage, after: publish.PostMessage},
		{kind: "markdown", late: true, next: publish.PostMessage, after: publish.PostMessage},
		{kind: "text", next: publish.StartStream, after: publish.StartStream},
		{kind: "*", next: publish.PostMessage, after: publish.PostMessage},
		{kind: "*", silent: true, next: publish.StartStream, after: publish.PostMessage},
	} {
		inTown(t, publish.Options{}, func(w *town) {
			defer w.busy()()
			if !c.late {
				w.refuse(c.kind, c.silent)
			}
			seen := 0
			a := w.actor(playground.ChannelEngineering, w.thread(playground.ChannelEngineering))
			a.write("Let me look. ")
			a.show()
			begun := w.look(a, &seen)
			if c.late {
				w.refuse(c.kind, c.silent)
			}
			a.use(claude.ToolRunning)
			a.show()
			works := w.look(a, &seen)
			a.use(claude.ToolDone)
			a.write(strings.Repeat("This is it, and it is said at length. ", 10))
			a.show()
			said := w.look(a, &seen)
			a.end()
			time.Sleep(20 * time.Second)
			if diff := cmp.Diff(a.shownAs(), w.stands(a)); diff != "" {
				t.Errorf("where %s is refused: %s", c.kind, diff)
			}
			w.stopped(a)
			var first string
			for i, want := range []publish.Method{c.next, c.after} {
				w.mu.Lock()
				seen = len(w.answers)
				w.mu.Unlock()
				b := w.actor(playground.ChannelEngineering, w.thread(playground.ChannelEngineering))
				b.write("Let me look. ")
				b.show()
				got := w.look(b, &seen)
				if !strings.HasPrefix(got, strings.TrimPrefix(string(want), "chat.")) {
					t.Errorf("where %s is refused turn %d begins with %s, want %s", c.kind, i+2, got, want)
				}
				if i == 0 {
					first = got
				}
				b.end()
				time.Sleep(10 * time.Second)
				if diff := cmp.Diff(b.shownAs(), w.stands(b)); diff != "" {
					t.Errorf("where %s is refused: %s", c.kind, diff)
				}
			}
			name := c.kind
			if c.late {
				name += ", while it grows"
			}
			if c.silent {
				name += ", without its name"
			}
			fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", name, begun, works, said, first)
		})
	}
	compareTable(t, "-run StreamsThatAreRefused", table.String())
}
