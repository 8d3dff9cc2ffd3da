package render_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render"
)

// turnOf makes a turn of bytes: a program for items, with pieces of words as text.
func turnOf(program []byte, words string) agent.TurnView {
	kinds := []claude.ItemKind{
		claude.ItemText, claude.ItemText, claude.ItemThinking, claude.ItemToolUse, claude.ItemToolUse,
		claude.ItemNotice, claude.ItemCommandOutput, claude.ItemImage,
	}
	states := []claude.ToolState{
		claude.ToolStreaming, claude.ToolAsked, claude.ToolRunning, claude.ToolDone, claude.ToolFailed, claude.ToolDenied, claude.ToolInterrupted,
	}
	names := []string{"Bash", "Read", "Edit", "Write", "Task", "TodoWrite", "mcp__a__b", words}
	t := running()
	for i := 0; i+2 < len(program) && i < 90; i += 3 {
		a, b, c := program[i], program[i+1], program[i+2]
		piece := words
		if len(words) > 0 {
			piece = strings.Repeat(words[:int(b)*len(words)/255], 1+int(c)/16)
		}
		it := claude.Item{Kind: kinds[a%8], ID: fmt.Sprint(i), Text: piece, Final: a&8 == 0, Error: a&32 != 0}
		if a&16 != 0 && i >= 3 {
			it.ParentID = fmt.Sprint(int(c) % i / 3 * 3)
		}
		if it.Kind == claude.ItemToolUse {
			input, err := json.Marshal(map[string]string{"command": piece, "file_path": piece, "old_string": words, "new_string": piece, "content": piece})
			if err != nil {
				panic(err)
			}
			it.Tool = &claude.ToolUse{
				ID: it.ID, Name: names[b%8], Input: input[:len(input)-int(c)%2], State: states[c%7], Result: piece, ResultBytes: len(piece) + int(c),
			}
		}
		if a&64 != 0 {
			t.Content.Todos = append(t.Content.Todos, claude.Todo{Text: piece, State: []string{"pending", "in_progress", "completed"}[c%3]})
		}
		t.Content.Items = append(t.Content.Items, it)
		if a&128 != 0 {
			t.Content.Status, t.Waiting = piece, int(c)%3
		}
	}
	return t
}

// holds checks a turn that grows item by item, and at its end.
func holds(t *testing.T, turn agent.TurnView, words string) {
	t.Helper()
	o := render.Options{Files: len(words)%2 == 1}
	var before []render.Page
	for i := range turn.Content.Items {
		part := turn
		part.Content.Items = turn.Content.Items[:i+1]
		pages := render.Turn(part, o)
		grew(t, before, pages)
		before = pages
	}
	turn.EndedAt, turn.Problem = began, words
	turn.State = []agent.TurnState{agent.TurnDone, agent.TurnFailed, agent.TurnInterrupted}[len(words)%3]
	o.Redact = redact.New(words).Redact
	ended := render.Turn(turn, o)
	if files, cut := render.Files(turn, o), slices.ContainsFunc(ended, func(p render.Page) bool { return p.Cut }); o.Files && cut && len(files) == 0 {
		t.Error("something is left out, and in no file")
	}
	for _, pages := range [][]render.Page{before, ended} {
		if len(pages) > 4 {
			t.Errorf("%d pages", len(pages))
		}
		for i, p := range pages {
			for _, problem := range checkPage(p) {
				t.Errorf("page %d: %s", i, problem)
			}
			if p.Cut && i != len(pages)-1 && !o.Files {
				t.Errorf("page %d of %d is cut", i, len(pages))
			}
		}
	}
}

// TestAnyTurn holds random turns, made of what is hard to render, against the
// rules: Slack's limits, no live mention, full pages stay as they were.
func TestAnyTurn(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"a", "<", "!channel>", "`", "```\n", "\n", "\n\n", "| a | b |\n|---|---|\n", "[", "](", ")", "漢", "👩‍👩‍👧",
		"https://a.com", "@here", "&lt;", "\\", "- ", " ", "\xff", "\u202e", "word word word ", "<@U123>", "~~~", "![",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		program := make([]byte, r.IntN(90))
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		var words strings.Builder
		for n := r.IntN(600); words.Len() < n; {
			words.WriteString(pieces[r.IntN(len(pieces))])
		}
		holds(t, turnOf(program, words.String()), words.String())
		if t.Failed() {
			t.Fatalf("program %q, words %q", program, words.String())
		}
	}
}

// FuzzTurn looks for turns that break the rules.
func FuzzTurn(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz"), "Hi <!channel> `<@U1>` ")
	f.Add([]byte{0, 255, 255, 3, 1, 3, 0, 255, 200, 4, 4, 2, 8, 255, 255}, "```go\n<b>&lt;!here> | a | b |\n|---|---|\n\n")
	f.Add([]byte{16, 255, 90, 0, 255, 220, 6, 255, 80, 64, 9, 9, 128, 200, 7}, "漢字👩‍👩‍👧 [https://a.com](https://b.com) ![x](y) @here\n")
	f.Add([]byte("0\xff\xff#\x01B"), "` ") // says nothing
	f.Add([]byte("00080A"), "0000000000000000")
	f.Fuzz(func(t *testing.T, program []byte, words string) {
		if len(words) > 500 || len(program) > 60 {
			t.Skip()
		}
		holds(t, turnOf(program, words), words)
	})
}
