package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/agent"
	asked "deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
)

var withFiles = render.Options{Files: true}

// TestALongAnswerIsAMessageAndAFile: its beginning and its last paragraph can be read, it
// says what is left out, and the file has all of it. What is shown while it grows stays.
func TestALongAnswerIsAMessageAndAFile(t *testing.T) {
	t.Parallel()
	const conclusion = "## In short\n\nTHE CONCLUSION is that all of it holds."
	full := strings.TrimSpace(mrkdwntest.Prose(60_000)) + "\n\n" + conclusion
	for name, first := range map[string][]claude.Item{
		"alone":             nil,
		"below a few steps": {text("I look."), tool("Bash", `{"command":"make"}`, claude.ToolDone, "")},
		"below many steps": times(30, func(i int) claude.Item {
			if i%2 == 0 {
				return text(fmt.Sprintf("Step %d.", i))
			}
			return tool("Bash", fmt.Sprintf(`{"command":"make step%d"}`, i), claude.ToolDone, "")
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before []render.Page
			var stream *render.Stream
			for n := 100; n < len(full); n += 1900 {
				for n < len(full) && full[n]&0xc0 == 0x80 {
					n++
				}
				pages := render.Turn(running(append(first, claude.Item{Kind: claude.ItemText, Text: full[:n]})...), withFiles)
				grew(t, before, pages)
				if last := pages[len(pages)-1]; n > 12_000 && (!strings.Contains(string(asJSON(t, last)), "The rest comes as a file") || last.Cut) {
					t.Errorf("%d bytes: it does not say where it goes on, or is cut: %v", n, last.Cut)
				}
				before, stream = pages, pages[len(pages)-1].Stream
			}
			turn := ended(agent.TurnDone, append(first, text(full))...)
			pages := render.Turn(turn, withFiles)
			grew(t, before, pages)
			last := pages[len(pages)-1]
			if len(pages) != 1 || !last.Cut {
				t.Fatalf("%d pages, cut: %v", len(pages), last.Cut)
			}
			raw, shown := string(asJSON(t, last)), markdownOf(last)
			for _, words := range []string{"# In short\\n\\nTHE CONCLUSION is", "more characters*, under the headings “Part ", "in the file `answer-12.md` below"} {
				if !strings.Contains(raw, words) {
					t.Errorf("it does not say %q: %s", words, raw)
				}
			}
			if was, _, _ := strings.Cut(markdownOf(before[len(before)-1]), "✂️"); !strings.HasPrefix(shown, was) {
				t.Errorf("what was shown has changed:\n%.3000q\n%.3000q", was, shown)
			}
			left := number(between(raw, "✂️ *", " more characters"))
			if d := len([]rune(full)) - left - len([]rune(shown)); d < -600 || d > 60 { // steps, and a fence's end
				t.Errorf("%d are left out of %d, and %d are shown", left, len([]rune(full)), len([]rune(shown)))
			}
			for _, problem := range checkPage(last) {
				t.Error(problem)
			}
			pieces := last.Stream.Pieces
			if n := len(stream.Pieces); len(pieces) < n || pieces[n-1] != stream.Pieces[n-1] || pieces[n-2] != stream.Pieces[n-2] {
				t.Errorf("a stream would not lead there:\n%+v\n%+v", stream.Pieces, pieces)
			}
			files := render.Files(turn, withFiles)
			if len(files) != 1 || files[0].Name != "answer-12.md" || !strings.HasSuffix(files[0].Text, full) {
				t.Errorf("%d files: %.200v", len(files), files)
			}
		})
	}
	// What one page holds is whole, and so is all where files cannot be attached.
	short := ended(agent.TurnDone, text(mrkdwntest.Prose(7_000)))
	if pages, files := render.Turn(short, withFiles), render.Files(short, withFiles); len(pages) != 1 || pages[0].Cut || len(files) != 0 {
		t.Errorf("%d pages, %d files", len(pages), len(files))
	}
	if files := render.Files(ended(agent.TurnDone, text(full)), render.Options{}); len(files) != 0 {
		t.Errorf("%d files", len(files))
	}
}

// TestABigTableIsItsBeginningAndAFile, while it grows, too.
func TestABigTableIsItsBeginningAndAFile(t *testing.T) {
	t.Parallel()
	table := func(rows, columns int, cell func(row, column int) string) string {
		var b strings.Builder
		for r := -2; r < rows; r++ {
			for c := range columns {
				switch r {
				case -2:
					fmt.Fprintf(&b, "|c%d", c)
				case -1:
					b.WriteString("|---")
				default:
					b.WriteString("|" + cell(r, c))
				}
			}
			b.WriteString("|\n")
		}
		return b.String()
	}
	small := func(r, c int) string { return fmt.Sprintf("%d.%d", r, c) }
	for name, c := range map[string]struct {
		table, says string
		rows        int // that are shown
	}{
		"many rows":    {table(250, 3, small), "✂️ **230 more rows**: the whole table, 250 rows of 3 columns, comes as the file `table-12-1.csv`.", 20},
		"many columns": {table(10, 25, small), "✂️ **5 more columns**: the whole table, 10 rows of 25 columns, comes as the file `table-12-1.csv`.", 10},
		"much text": {
			table(60, 2, func(int, int) string { return strings.Repeat("word ", 12) }),
			"✂️ **40 more rows**: the whole table, 60 rows of 2 columns, comes as the file `table-12-1.csv`.", 20,
		},
		"enough": {table(90, 3, small), "", 90},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := "Here it is:\n\n" + c.table + "\nThat was it."
			said := ""
			for n := 5; n <= len(full); n += 7 {
				p := render.Turn(running(claude.Item{Kind: claude.ItemText, Text: full[:n]}), withFiles)
				if len(p) == 0 {
					continue
				}
				now := strings.Trim(markdownOf(p[0]), "\x00\n |-")
				if done := strings.TrimRight(said[:strings.LastIndexByte(said, '\n')+1], "\n |"); name != "many columns" && !strings.HasPrefix(now, done) {
					t.Fatalf("what was shown is not there:\n%q\n%q", done, now)
				}
				said = now
			}
			turn := ended(agent.TurnDone, text(full))
			pages, files := render.Turn(turn, withFiles), render.Files(turn, withFiles)
			shown := markdownOf(pages[0])
			if rows := strings.Count(shown, "|\n") - 2; len(pages) != 1 || pages[0].Cut || rows != c.rows || !strings.Contains(shown, c.says) || !strings.Contains(shown, "That was it.") {
				t.Errorf("%d pages, cut: %v, with %d rows of it: %s", len(pages), pages[0].Cut, rows, shown)
			}
			if want := c.says != ""; (len(files) == 1) != want || want && strings.Count(files[0].Text, "\r\n") < 10 {
				t.Errorf("files: %.300v", files)
			}
		})
	}
}

// TestACSVOfAModelsTable: no cell is a formula, and numbers stay numbers. A secret that
// markup parted is none of the file's.
func TestACSVOfAModelsTable(t *testing.T) {
	t.Parallel()
	rows := strings.Repeat("| =HYPERLINK(\"http://evil\") | **@SUM(A1)** | `+1+1` | -3.5% | a \\| b<br>=c;=d | ＝1 | hunter**2**hunter2 |\n", 101)
	turn := ended(agent.TurnDone, text("| a | b | c | d | e | f | g |\n|-|-|-|-|-|-|-|\n"+rows))
	o := withFiles
	o.Redact = redact.New("hunter2hunter2").Redact
	files := render.Files(turn, o)
	want := "a,b,c,d,e,f,g\r\n\"'=HYPERLINK(\"\"http://evil\"\")\",'@SUM(A1),'+1+1,-3.5%,\"a | b\n'=c;'=d\",'＝1,[redacted]\r\n"
	if len(files) != 1 || !strings.HasPrefix(strings.ReplaceAll(files[0].Text, "b\r\n'=c", "b\n'=c"), want) {
		t.Errorf("%.400v\nwant %s", files, want)
	}
}

// TestAFileMisleadsNoMoreThanAMessage: what turns the direction of others around is shown for
// what it is, in code and in cells as well, and is no way around what finds secrets.
func TestAFileMisleadsNoMoreThanAMessage(t *testing.T) {
	t.Parallel()
	rows := strings.Repeat("| a\u202eb\u2066 | \u202e=1+1 | hunter2hunter2 |\n", 101)
	words := "\u200fשלום\n\n```go\nif admin\u202e { // \u2069\x1b[2J\n```\n" + mrkdwntest.Prose(8000) + "\n\nhunter2hunter2"
	turn := ended(agent.TurnDone, text(words+"\n\n| a | b | c |\n|-|-|-|\n"+rows))
	o := withFiles
	o.Redact = redact.New("hunter2hunter2").Redact
	files := render.Files(turn, o)
	if len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	for _, f := range files {
		if strings.ContainsAny(f.Text, "\u202e\u2066\u2069\x1b") || strings.Contains(f.Text, "hunter2") {
			t.Errorf("%s: %.300q", f.Name, f.Text)
		}
	}
	if answer, csv := files[0].Text, files[1].Text; !strings.Contains(answer, "if admin⟨U+202E⟩ { // ⟨U+2069⟩⟨U+001B⟩[2J\n") || !strings.Contains(answer, "שלום") ||
		!strings.Contains(csv, "\r\na⟨U+202E⟩b⟨U+2066⟩,⟨U+202E⟩=1+1,[redacted]\r\n") {
		t.Errorf("%.300s\n%.300s", answer, csv)
	}
}

// TestASubagentsWordsAreNoAnswer: not below a card that was posted meanwhile either, where its
// call stands in the message above, nor in a file, which would be empty.
func TestASubagentsWordsAreNoAnswer(t *testing.T) {
	t.Parallel()
	call := claude.Item{Kind: claude.ItemToolUse, ID: "t0", Tool: &claude.ToolUse{ID: "t0", Name: "Agent", Input: []byte(`{"description":"look"}`), State: claude.ToolDone}, Final: true}
	words := text(strings.Repeat("a subagent's own words ", 2000))
	words.ParentID = "t0"
	turn := ended(agent.TurnDone, call, words, text("It is there."))
	turn.Cards = []asked.Card{{ID: "card", From: 1, Requests: []asked.Request{{ToolUseID: "t9", ToolName: "Bash", Status: approvals.Allowed}}}}
	posted := withFiles
	posted.Posted = true
	pages := render.Turn(turn, posted)
	for _, p := range pages {
		if shown, err := json.Marshal(p); err != nil || strings.Contains(string(shown), "own words") || p.Cut {
			t.Errorf("%v: %.400s", err, shown)
		}
	}
	if files := render.Files(turn, posted); len(files) > 0 || len(pages) != 2 {
		t.Errorf("%d pages, files: %v", len(pages), files)
	}
}
