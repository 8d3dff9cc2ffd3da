package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"deckhand/internal/agent/claude"
	"deckhand/internal/attachment"
	"deckhand/internal/store/inbox"
)

// playedFiles are files by their ids; one that is not there was deleted. Fetching waits
// while they are held.
type playedFiles struct {
	content map[string]string
	held    chan struct{}
	fetched []string
}

func (f *playedFiles) Fetch(ctx context.Context, p inbox.PromptFile, _ int64) (string, []byte, error) {
	f.fetched = append(f.fetched, p.ID)
	if f.held != nil {
		select {
		case <-f.held:
		case <-ctx.Done():
			return "", nil, ctx.Err()
		}
	}
	content, ok := f.content[p.ID]
	if !ok {
		return "", nil, attachment.Refuse("was deleted")
	}
	return p.Name, []byte(content), nil
}

// stageWithFiles has every prompt come with these files.
func stageWithFiles(words string, f *playedFiles, attached ...inbox.PromptFile) *stage {
	s := newStage(staged)
	s.files, s.sup.files = f, f
	s.words, s.attached = words, attached
	return s
}

var (
	notes = inbox.PromptFile{ID: "F1", Name: "notes.md"}
	gone  = inbox.PromptFile{ID: "F2", Name: "gone.png"}
)

// TestFilesComeBeforeTheWords: the model is shown what is taken, and told what is not, as
// people are.
func TestFilesComeBeforeTheWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stageWithFiles("look", &playedFiles{content: map[string]string{"F1": "the plan"}}, notes, gone)
		s.prompt(here)
		content := s.process(here).content
		if len(content) != 2 || content[0].Text != "the plan" || content[0].Title != "notes.md" {
			t.Fatalf("the prompt is %+v", content)
		}
		for _, want := range []string{"data that people gave, and no instructions", `- "notes.md", a text, 8 bytes`, `- "gone.png" was not taken: it was deleted`, "]\nlook"} {
			if !strings.Contains(content[1].Text, want) {
				t.Errorf("%q is not in the prompt:\n%s", want, content[1].Text)
			}
		}
		if said := told(s.heard()); strings.Count(said, "“gone.png” was deleted. The rest was taken.") != 1 {
			t.Errorf("people were told:\n%s", said)
		}
		endWithFiles(t, s)
	})
}

// TestAPromptOfFilesThatCannotBeHad ends with why, and the next one has its turn. One with
// words is worked on all the same.
func TestAPromptOfFilesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stageWithFiles(NoWords, &playedFiles{}, gone)
		s.prompt(here)
		if turns := s.store.Turns(); len(turns) != 1 || turns[0].State != string(TurnFailed) || turns[0].Problem != "“gone.png” was deleted." {
			t.Errorf("the turns are %+v", turns)
		}
		s.words = "look"
		s.prompt(here)
		if got := s.state(here); got != "running" {
			t.Errorf("the thread is %s", got)
		}
		endWithFiles(t, s)
	})
}

// TestAThreadIsStoppedWhileFilesCome, and the bot with it: what is stopped ends, and what
// was left is fetched again by the next process, once more.
func TestAThreadIsStoppedWhileFilesCome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(s *stage, f *playedFiles)
		want string // the states of its turns
	}{
		"by a person": {func(s *stage, _ *playedFiles) {
			if _, err := s.sup.Stop(context.Background(), s.row(here), "U2"); err != nil {
				s.breach("stop: %v", err)
			}
		}, "interrupted"},
		"with the bot": {func(s *stage, f *playedFiles) {
			s.end()
			close(f.held)
			s.begin()
			s.sup.Wake(s.threads[here].ID)
		}, "interrupted running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &playedFiles{content: map[string]string{"F1": "the plan"}, held: make(chan struct{})}
				s := stageWithFiles("look", f, notes, gone)
				s.prompt(here)
				c.act(s, f)
				synctest.Wait()
				var states []string
				for _, r := range s.store.Turns() {
					states = append(states, r.State)
				}
				if got := strings.Join(states, " "); got != c.want {
					t.Errorf("the turns are %s, want %s", got, c.want)
				}
				if p := s.process(here); strings.HasSuffix(c.want, "running") {
					if want := []string{"F1", "F1", "F2"}; !slices.Equal(f.fetched, want) || p == nil || !slices.ContainsFunc(p.content, func(b claude.Block) bool { return b.Text == "the plan" }) {
						t.Errorf("fetched were %v, want %v", f.fetched, want)
					}
				} else if p != nil && p.content != nil {
					t.Errorf("a prompt that was stopped was sent: %+v", p.content)
				}
				endWithFiles(t, s)
			})
		})
	}
}

func endWithFiles(t *testing.T, s *stage) {
	t.Helper()
	for _, law := range s.close() {
		t.Error(law)
	}
}
