package model

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/sample"
)

// boathouse starts the CLI in a fresh copy of the sample project.
func boathouse(t *testing.T, decide decision) (*Server, *cli) {
	t.Helper()
	needtest.Programs(t, "git", "node", "npm")
	dir := filepath.Join(t.TempDir(), "boathouse")
	if err := sample.Write(dir); err != nil {
		t.Fatal(err)
	}
	s, url := serve(t, Options{})
	return s, startCLI(t, url, cliOptions{Dir: dir, Decide: decide})
}

func (c *cli) file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func testsPass(t *testing.T, c *cli) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "--test") // what npm test runs
	cmd.Dir = c.Dir
	return cmd.Run() == nil
}

func TestTheDemoStory(t *testing.T) {
	t.Parallel()
	s, c := boathouse(t, allowAll)
	if testsPass(t, c) {
		t.Fatal("nothing fails in the sample project")
	}
	for _, turn := range []struct{ prompt, asked, want string }{
		{"what does this repo do?", "", "This is **Boathouse**"},
		{"[Alice in #general]: @deckhand fix the failing test", "Bash Edit Bash", "**All green.**"},
		{"fix the failing test", "Bash", "there is nothing to fix"},
		{"now add a test for three days", "Edit Bash", "Done: **“exactly three days get 10 % off”**"},
		{"now add a test for three days", "", "It is there already"},
		{"fix the failing test", "Bash", "there is nothing to fix"},
		{"explore the code with a subagent", "", "The scout is back"},
		{"thanks!", "", "You're welcome"},
	} {
		before := len(c.tools())
		r := c.turn(turn.prompt)
		if r.IsError || !strings.Contains(r.Result, turn.want) {
			t.Fatalf("%s: got %q, want %q in it", turn.prompt, r.Result, turn.want)
		}
		if got := strings.Join(c.tools()[before:], " "); got != turn.asked {
			t.Errorf("%s: asked for %q, want %q", turn.prompt, got, turn.asked)
		}
		agree(t, s, c, r)
	}
	if !testsPass(t, c) {
		t.Error("the tests fail after the story")
	}
	if got := c.file(t, "src/quote.js"); !strings.Contains(got, "days >= t.days") {
		t.Errorf("the fix is not in the file:\n%s", got)
	}
}

func TestTheTestCanComeFirst(t *testing.T) {
	t.Parallel()
	_, c := boathouse(t, allowAll)
	for _, turn := range []struct{ prompt, want string }{
		{"add a test for three days", "The new test is in, and it fails"},
		{"fix the failing test", "**All green.**"},
	} {
		if r := c.turn(turn.prompt); !strings.HasPrefix(r.Result, turn.want) {
			t.Fatalf("%s: got %q, want %q…", turn.prompt, r.Result, turn.want)
		}
	}
	if !testsPass(t, c) {
		t.Error("the tests fail after the story")
	}
}

func TestTheStoryTakesNoForAnAnswer(t *testing.T) {
	t.Parallel()
	_, c := boathouse(t, allowAll)
	// deny refuses the nth call of the turn that is asked for.
	deny := func(nth int) {
		n := 0
		c.setDecision(func(tool string, input json.RawMessage) map[string]any {
			if n++; n == nth {
				return map[string]any{"behavior": "deny", "message": "not on a Friday."}
			}
			return allowAll(tool, input)
		})
	}
	for _, turn := range []struct {
		prompt string
		nth    int
		want   string
	}{
		{"fix the failing test", 1, "You said no to running the tests (not on a Friday), so I stop here."},
		{"fix the failing test", 2, "You said no to the edit (not on a Friday), so the code is as it was"},
		{"make a plan", 1, "Not this plan, then: not on a Friday. I have changed nothing."},
		{"ask me something", 1, "No answer, then (not on a Friday)."},
		{"now add a test for three days", 1, "You said no to the edit (not on a Friday). Nothing has changed."},
	} {
		deny(turn.nth)
		if r := c.turn(turn.prompt); !strings.HasPrefix(r.Result, turn.want) {
			t.Errorf("%s, call %d denied: got %q, want %q…", turn.prompt, turn.nth, r.Result, turn.want)
		}
	}
	if got := c.file(t, "src/quote.js"); strings.Contains(got, ">=") {
		t.Error("the code was changed")
	}
	if testsPass(t, c) {
		t.Error("the failing test is gone")
	}
	c.send(map[string]any{"type": "control_request", "request_id": "mode", "request": map[string]any{"subtype": "set_permission_mode", "mode": "default"}})
	deny(3)
	if r, want := c.turn("fix the failing test"), "The fix is in `src/quote.js`, but you said no to running the tests again (not on a Friday)"; !strings.HasPrefix(r.Result, want) {
		t.Errorf("got %q, want %q…", r.Result, want)
	}
	if !testsPass(t, c) {
		t.Error("the edit that was allowed is not there")
	}
}

func TestAPlanIsShownWhole(t *testing.T) {
	t.Parallel()
	plans := make(chan string, 8)
	_, c := boathouse(t, func(tool string, input json.RawMessage) map[string]any {
		if tool == "ExitPlanMode" {
			var v struct{ Plan string }
			if err := json.Unmarshal(input, &v); err != nil {
				v.Plan = err.Error()
			}
			plans <- v.Plan
		}
		return allowAll(tool, input)
	})
	for range 2 { // the second time the plan's file is there already
		if r := c.turn("make a plan for the fix"); !strings.HasPrefix(r.Result, "Thank you, the plan stands.") {
			t.Fatalf("result: %q", r.Result)
		}
		if plan := <-plans; !strings.Contains(plan, "Change `>` to `>=`") {
			t.Errorf("the plan that was shown: %q", plan)
		}
	}
}

func TestTwoQuestionsAreAsked(t *testing.T) {
	t.Parallel()
	_, c := boathouse(t, func(_ string, input json.RawMessage) map[string]any {
		var v struct {
			Questions []struct {
				Question string
				Options  []struct{ Label, Description string }
			}
		}
		var whole map[string]any
		if err := errors.Join(json.Unmarshal(input, &v), json.Unmarshal(input, &whole)); err != nil || len(v.Questions) != 2 {
			return map[string]any{"behavior": "deny", "message": "these are not two questions"}
		}
		answers := map[string]string{}
		for _, q := range v.Questions {
			if len(q.Options) != 3 || q.Options[0].Description == "" {
				return map[string]any{"behavior": "deny", "message": "these are not three options"}
			}
			answers[q.Question] = q.Options[1].Label
		}
		whole["answers"] = answers
		return map[string]any{"behavior": "allow", "updatedInput": whole}
	})
	if r := c.turn("ask me something"); !strings.Contains(r.Result, `="Sailing dinghy"`) || !strings.Contains(r.Result, `="Newsletter"`) {
		t.Errorf("result: %q", r.Result)
	}
}

func TestElsewhereTheStorySaysSo(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{})
	c := startCLI(t, url, cliOptions{})
	for prompt, want := range map[string]string{
		"fix the failing test":    "I looked for `CLAUDE.md`",
		"add a test":              "I can only add tests to the Boathouse",
		"what does this repo do?": "This is not the Boathouse",
		"make a plan":             "I can only plan for the Boathouse",
	} {
		if r := c.turn(prompt); !strings.HasPrefix(r.Result, want) {
			t.Errorf("%s: got %q, want %q…", prompt, r.Result, want)
		}
	}
}
