package mrkdwn_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

var update = flag.Bool("update", false, "write the golden file anew")

// gallery is what models write, case by case.
var gallery = []struct{ name, markdown string }{
	{"a table with pipes", "| a | b |\n|---|:-:|\n| 1 | pipe \\| in it |\n| a long cell with words that go on | 2 |"},
	{"nested lists", "1. one\n   - two\n     - three\n       1. four\n          text in four\n2. next\n\n   a paragraph in next"},
	{"task lists", "- [ ] task\n- [x] done\n  - [ ] nested"},
	{"footnotes", "See[^1], [^12] and this[^my_note], not `[^1]` or \\[^1].\n\n[^1]: word\n[^my_note]: Second with `code`.\n\n```\n[^1]: code\n```"},
	{"no footnotes", "[^] [^a b] [^1 [^" + strings.Repeat("x", 50) + "]"},
	{"code", "```go\nfunc main() { println(\"x\") }\n```\n\n    indented\n\n~~~python\nprint(1)\n~~~\n\n- in a list\n\n  ```sh\n  ls\n  ```\n- after"},
	{"scripts", "日本語のテキスト。**太字**は効く。`コード`も。\n\nالعربية **مهم** `code` نص \u200f\n\nעברית 123 (abc) `עברית` 5"},
	{"what turns a text around", "run \u202egnp.exe\u202c and \u2066isolated\u2069 `\u202ecode` [\u2067here\u2069](https://example.com)\n\n```\n\u202dcode\n```"},
	{"links with titles", "[a link](https://example.com \"A title\") and [by reference][r], <https://auto.example>\n\n[r]: https://example.com/ref 'T'"},
	{"marks in marks", "***both*** ~~gone~~ **bold with *it* inside** a_b_c `x``y` 2*3*4"},
	{"quotes and headings", "> quote\n> > nested\n\n---\n\n# H1 *x*\n## H2 ##\n####### no heading"},
	{"folded HTML", "<details><summary>Short</summary>\n\ninner <b>bold</b>\n\n</details>\n\n| a |\n|---|\n| one<br>two<br/>@<br>channel `<br>` |"},
	{"marks in words", "太**字**は un*frigging*believable (**a**) x**y** 2~~3~~4"},
	{"a long line", strings.Repeat("word ", 60) + "end"},
}

// TestGallery: what becomes of each, in a markdown block and in mrkdwn.
func TestGallery(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, g := range gallery {
		fmt.Fprintf(&b, "==== %s\n%s\n---- in a markdown block\n%s\n---- in mrkdwn\n%s\n", g.name, visible(g.markdown), visible(mrkdwn.Clean(g.markdown)), visible(mrkdwn.Convert(mrkdwn.Clean(g.markdown))))
	}
	file := filepath.Join("testdata", "gallery.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the gallery has changed (-want +got); if that is right, run the test with -update\n%s", diff)
	}
}

// visible spells what cannot be seen as it is in the file.
func visible(s string) string {
	return strings.NewReplacer("\u200b", "{zwsp}", "\u200f", "{200F}", "\u202a", "{202A}", "\u202c", "{202C}", "\u202d", "{202D}", "\u202e", "{202E}", "\u2066", "{2066}", "\u2067", "{2067}", "\u2068", "{2068}", "\u2069", "{2069}").Replace(s)
}

func TestHeadings(t *testing.T) {
	t.Parallel()
	got := strings.Join(mrkdwn.Headings("# A `b`\ntext\n```\n# code\n```\n### C **d** ##\n#no\n####### seven\n# \n"), "|")
	if want := "A b|C d"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNothingIsCutInsideACharacter, whatever it is made of.
func TestNothingIsCutInsideACharacter(t *testing.T) {
	t.Parallel()
	for _, character := range []string{"🇩🇪", "👩‍👩‍👧‍👦", "e\u0301", "한", "각", "कि", "👍🏽", "\r\n", "字"} {
		s := strings.Repeat(character, 200)
		for n := 20; n < 60; n++ {
			if head := plaintext.Prefix(s, n); len(head)%len(character) != 0 || plaintext.Width(head) > n || head == "" {
				t.Errorf("%q in %d units: %q", character, n, head)
			}
		}
	}
	// One that has no end is cut all the same.
	endless := "e" + strings.Repeat("\u0301", 2000)
	if head := plaintext.Prefix(endless, 1000); plaintext.Width(head) != 1000 {
		t.Errorf("%d units", plaintext.Width(head))
	}
	if head := plaintext.Prefix(strings.Repeat("a", 10)+endless, 30); head != strings.Repeat("a", 10) {
		t.Errorf("%q", head)
	}
}
