package mrkdwn_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
)

// see makes zero-width spaces visible.
func see(s string) string { return strings.ReplaceAll(s, "\u200b", "␣") }

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain *text*, a < b, 1<2 and x <= y <- z": "plain *text*, a < b, 1\\<2 and x <= y <- z",
		"<!channel> <!here|here> <!subteam^S1>":    "<␣!channel> <␣!here|here> <␣!subteam^S1>",
		"<@U123> <#C123|x> <!date^1^{time}|x>":     "<␣@U123> <␣#C123|x> <␣!date^1^{time}|x>",
		"@channel, @Here! (@everyone) @group":      "@␣channel, @␣Here! (@␣everyone) @␣group",
		"ops@here.com @here/maps @channels":        "ops@here.com @here/maps @channels",
		"`<@U123>` `<div>` ``a`<!here>``":          "`<␣@U123>` `<div>` ``a`<␣!here>``",
		"`unclosed <@U123>":                        "`unclosed <␣@U123>",
		"```html\n<!DOCTYPE html>\n<!-- x -->\n<!channel>\n@channel List<@NonNull String>\n```\n<b>": "```html\n<!DOCTYPE html>\n<!-- x -->\n<␣!channel>\n@channel List<@NonNull String>\n```\n\\<b>",
		"~~~\n```\n<a>\n~~~\n<a>":                             "~~~\n```\n<a>\n~~~\n\\<a>",
		"- item\n  ```\n  <a>\n  ```\n<a>":                    "- item\n  ```\n  <a>\n  ```\n\\<a>",
		"> ```\n> <a>\n> ```\n<a>":                            "> ```\n> <a>\n> ```\n\\<a>",
		"```not a fence``` <a>":                               "```not a fence``` \\<a>",
		"<b>x</b> Vec<String> <?php":                          "\\<b>x\\</b> Vec\\<String> \\<?php",
		`already \<b> and \<!here> and \\<b>`:                 `already \<␣b> and \<␣!here> and \\\<b>`,
		"&lt;!channel&gt; &#60;@U1> &#x3C;#C1> &amp;":         "&lt;␣!channel&gt; &#60;␣@U1> &#x3C;␣#C1> &amp;",
		"<https://example.com/a?b=1> <mailto:a@b.c>":          "<https://example.com/a?b=1> <mailto:a@b.c>",
		"<https://evil|https://good> <tel:1|x>":               "<␣https://evil|https://good> <␣tel:1|x>",
		"![alt](http://e/i.png) ![](http://e/i)":              "[alt](http://e/i.png) [image](http://e/i)",
		"![alt][1] wow![x]":                                   "!␣[alt][1] wow!␣[x]",
		"!![](http://e/i) !!![a](http://e/i)":                 "!␣[image](http://e/i) !!␣[a](http://e/i)",
		"[ok](https://ok.com) [docs](../x.md#a)":              "[ok](https://ok.com) [docs](../x.md#a)",
		"[https://good.com](https://evil.com/x)":              "`https://good.com` (`https://evil.com/x`)",
		"[www.good.com](https://good.com/x)":                  "[www.good.com](https://good.com/x)",
		"[main.go](https://example.com/main.go)":              "[main.go](https://example.com/main.go)",
		"[good.com/login](https://evil.com)":                  "`good.com/login` (`https://evil.com`)",
		"[https://good.com@evil.com](https://evil.com)":       "[https://good.com@evil.com](https://evil.com)",
		"[click](javascript:alert(1))":                        "`click` (`javascript:alert(1)`)",
		"[a](slack://open) [https://good.com][1]":             "`a` (`slack://open`) \\[https://good.com][1]",
		"line\r\nend\rx\x00\x1b[31mred\u0085":                 "line\nend\nx⟨U+0000⟩⟨U+001B⟩\\[31mred⟨U+0085⟩",
		"bad \xff utf8 <@U1>":                                 "bad \ufffd utf8 <␣@U1>",
		"|a|b|\n|-|-|\n|`x|<b> @here`|`<i>`|\n":               "|a|b|\n|-|-|\n|`x|\\<b> @␣here`|`<i>`|\n",
		"[x](https://a.com/" + strings.Repeat("y", 700) + ")": "[x](https://a.com/" + strings.Repeat("y", 700) + ")",
		"> ```\n<b>\n- ~~~\n  <c>\n<d>":                       "> ```\n\\<b>\n- ~~~\n  <c>\n\\<d>",
		"`a | <b>`":                                           "`a | <b>`",
		"<":                                                   `\<`,
	} {
		if diff := cmp.Diff(want, see(mrkdwn.Clean(in))); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("<!channel> `<@U1>` ![](x) [https://a.com](https://b.com)\n```\n<#C1>\n```")
	f.Add("\\\\\\<@U1>&lt;!here")
	f.Add("``` <@U1>\n`<!chan`nel>`")
	f.Fuzz(func(t *testing.T, in string) {
		out := mrkdwn.Clean(in)
		for _, problem := range mrkdwntest.Live(out) {
			t.Errorf("%q became %q: %s", in, out, problem)
		}
		// Two pieces that are cleaned apart must be as harmless.
		for _, piece := range []string{in[:len(in)/2], in[len(in)/2:]} {
			for _, problem := range mrkdwntest.Live(mrkdwn.Clean(piece)) {
				t.Errorf("%q: %s", piece, problem)
			}
		}
	})
}

// FuzzRead reads what was cleaned as a program that knows CommonMark does: the whole, and what
// is there of it at any place of its growth, shown as it was cleaned and cleaned as it was
// shown.
func FuzzRead(f *testing.F) {
	f.Add("<!channel> &lt;!here> \\<@U1> <&#33;here> &#60;&#64;U1&gt; @chan**nel**", uint16(9))
	f.Add("> ```\n> <!subteam^S1>\n\n- ~~~\n  <!date^1^{time}|x>\n", uint16(20))
	f.Add("[https://good.com](https://evil.com) [a][b] ![x][b]\n\n[b]: https://evil.com\n", uint16(30))
	f.Add("| <@U1> | a |\n|---|---|\n| <!here> | `<!here>` |\n<<!here>> \u200b<\u200b!here>", uint16(3))
	f.Add("[https://good.com\n](https://evil.com) <\\!channel> <!\\channel>", uint16(12))
	f.Fuzz(func(t *testing.T, in string, n uint16) {
		at := min(len(in), int(n))
		out := mrkdwn.Clean(in)
		for name, text := range map[string]string{
			"all": out, "the beginning of it": mrkdwn.Clean(in[:at]), "the rest of it": mrkdwn.Clean(in[at:]),
			"a part of what was cleaned": strings.ToValidUTF8(out[:min(len(out), int(n))], ""),
		} {
			for _, problem := range mrkdwntest.Read(text) {
				if strings.HasPrefix(name, "a part") && !strings.HasPrefix(problem, "live") {
					continue // it may end in a piece of code, or before where a link leads
				}
				t.Errorf("%s, %q as %q: %s", name, in, text, problem)
			}
		}
	})
}

func TestConvert(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"# Head *x*\n\ntext":            "*Head _x_*\n\ntext",
		"**bold** __b__ _it_ ~~st~~":    "*bold* *b* _it_ ~~st~~",
		"** not bold **":                "** not bold **",
		"a\nb  \nc":                     "a\nb\nc",
		"- a\n- b\n  - c\n    more\n":   "• a\n• b\n    • c\n        more",
		"3. a\n4. b":                    "3. a\n4. b",
		"- [x] done\n- [ ] open":        "• [x] done\n• [ ] open",
		"> q\n> r\n>\n> s":              "> q\n> r\n> \n> s",
		"```go\na < b\n```":             "```\na &lt; b\n```",
		"````\n```\n````":               "```\n`␣`␣`\n```",
		"    indented":                  "```\nindented\n```",
		"`a` `` x`y ``":                 "`a` `xˋy`",
		"<b>raw</b> & <!channel>":       "&lt;b&gt;raw&lt;/b&gt; &amp; &lt;!channel&gt;",
		"<div>\n<!here>\n</div>":        "&lt;div&gt;\n&lt;!here&gt;\n&lt;/div&gt;",
		"[x](https://a.com/?q=1&r=|<>)": "x (https://a.com/?q=1&amp;r=|&lt;&gt;)",
		"[https://a.com](https://b.com) [js](javascript:x) [p](a.md)": "https://a.com (https://b.com) js (javascript:x) p (a.md)",
		"![alt](https://e/x.png)":                                     "alt (https://e/x.png)",
		"<https://a.b/c>":                                             "https://a.b/c",
		`\*not it\* 2 \< 3 &copy; &#x1F600; \&lt;`:                    "*not it* 2 &lt; 3 © 😀 &lt;",
		"---":                    "———",
		"@channel &lt;!here&gt;": "@␣channel &lt;!here&gt;",
		"":                       "",
	} {
		if diff := cmp.Diff(want, see(mrkdwn.Convert(in))); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func FuzzConvert(f *testing.F) {
	f.Add("# a\n- [x] **b** <!channel> [c](https://d|e) `f`\n\n| a |\n|---|\n| <@U1> |\n")
	f.Add(strings.Repeat("> ", 500) + "x")
	f.Fuzz(func(t *testing.T, in string) {
		out := mrkdwn.Convert(in)
		for _, problem := range mrkdwntest.Foreign(out) {
			t.Errorf("%q: %s", in, problem)
		}
		if strings.Contains(out, "<") {
			t.Errorf("%q: a sign of Slack's own in %q", in, out)
		}
	})
}

func TestCut(t *testing.T) {
	t.Parallel()
	paragraphs := mrkdwntest.Prose(4000)
	head, tail := mrkdwn.Cut(paragraphs, 2000)
	if head+tail != paragraphs || !strings.HasSuffix(head, "\n\n") || mrkdwntest.Units(head) < 1000 || mrkdwntest.Units(head) > 2000 {
		t.Errorf("paragraphs: head of %d ends %q", mrkdwntest.Units(head), head[len(head)-20:])
	}

	code := "intro\n\n```go title=\"x\"\n" + strings.Repeat("x := 1\n", 400) + "```\n"
	head, tail = mrkdwn.Cut(code, 1500)
	if !strings.HasSuffix(head, "x := 1\n```\n") || !strings.HasPrefix(tail, "```go title=\"x\"\nx := 1\n") {
		t.Errorf("code: head ends %q, tail begins %q", head[len(head)-20:], tail[:40])
	}
	if got := strings.TrimSuffix(head, "```\n") + strings.TrimPrefix(tail, "```go title=\"x\"\n"); got != code {
		t.Error("code: something is lost")
	}

	table := "| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", 300)
	head, tail = mrkdwn.Cut(table, 1500)
	if !strings.HasPrefix(tail, "| a | b |\n|---|---|\n| 1 | 2 |\n") || head+strings.TrimPrefix(tail, "| a | b |\n|---|---|\n") != table {
		t.Errorf("table: tail begins %q", tail[:60])
	}

	// One long line, of characters that are made of several.
	for _, unit := range []string{"é", "👩‍👩‍👧", "🇩🇪", "👍🏽", "漢"} {
		line := strings.Repeat(unit, 2000)
		head, tail = mrkdwn.Cut(line, 1500)
		if head+tail != line || mrkdwntest.Units(head) > 1500 {
			t.Errorf("%s: head of %d", unit, mrkdwntest.Units(head))
		}
		if unit != "🇩🇪" && !strings.HasSuffix(head, unit) {
			t.Errorf("%s is cut: head ends %q", unit, head[len(head)-12:])
		}
	}
}

// TestWhereCodeEnds: what looks like a fence in code, in a quote or in a list does not make
// code of what is said below it.
func TestWhereCodeEnds(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"```\n- ```\n```\n@here", "```\n> ```\n```\n@here", "- ```\n  > ```\n  ```\n  @here", "> ```\n> > ```\n> ```\n> @here",
		"- - ```\n    x\n    ```\n    @here", "```\n    ```\n```\n@here", "- a\n  ```\n@here", "a\n\n    ```\n@here", "1. ```\n  @here", "> ```\n@here",
	} {
		if out := mrkdwn.Clean(in); !strings.Contains(see(out), "@␣here") {
			t.Errorf("%q is %q", in, see(out))
		}
		for _, problem := range mrkdwntest.Read(mrkdwn.Clean(in)) {
			t.Errorf("%q: %s", in, problem)
		}
	}
	const code = "```\n- ```\n@here\n```\n"
	if out := mrkdwn.Clean(code); out != code {
		t.Errorf("code is changed: %q", see(out))
	}
}

// TestAFenceThatIsCut is closed where it stands, and goes on as long as it was: what ends a
// shorter one does not let out what was code.
func TestAFenceThatIsCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ opener, line, closed string }{
		"plain":                   {"```go\n", "code\n", "```\n"},
		"in a list":               {"- ```\n", "  code\n", "  ```\n"},
		"in a list, after a tab":  {"1.\t```\n", "    code\n", "      ```\n"},
		"in a quote":              {"> ~~~\n", "> code\n", "> ~~~\n"},
		"in a quote of a list":    {"- > ```\n", "  > code\n", "  > ```\n"},
		"long":                    {"`````````\n", "``````\n@here <!channel>\n", "`````````\n"},
		"longer than may be":      {strings.Repeat("`", 900) + "\n", strings.Repeat("`", 19) + "\n@here\n", strings.Repeat("`", 20) + "\n"},
		"with much behind it":     {"``` " + strings.Repeat("x", 80) + "\n", "code\n", "```\n"},
		"long, and in many lists": {"- - - ```````\n", "      ``````\n", "      ```````\n"},
	} {
		s := mrkdwn.Clean(c.opener + strings.Repeat(c.line, 300))
		head, tail := mrkdwn.Cut(s, 1000)
		if mrkdwn.InFence(head) || !strings.HasSuffix(head, c.closed) || !mrkdwn.InFence(tail) {
			t.Errorf("%s: %q | %q", name, head[len(head)-60:], tail[:60])
		}
		for at := range tail {
			if tail[at] == '\n' && !mrkdwn.InFence(tail[:at+1]) {
				t.Fatalf("%s: the code ends too early: %q", name, tail[:at+1])
			}
		}
	}
}

// hard are pieces of which text is made that is hard to cut.
var hard = []string{
	"```\n", "~~~~ go\n", "````\n", "> ```\n", "- ```\n", "  ", "\n", "\n\n", "# T\n\n", "So:\n\n", "| a | b |\n|---|---|\n", "| 1 | 2 |\n", "word ", "漢字", "👩‍👩‍👧", "🇩🇪", "e\u0301",
	"`", "- one\n", "\t", "> ", "\\", "<", "|", "a very long line without an end ",
}

// long makes a text of at least least units of a few bytes: what they choose of hard, and of
// words, over and over. The fuzzer finds its way in small inputs, not in large ones.
func long(program []byte, words string, least int) string {
	var b strings.Builder
	for units := 0; units < least; {
		before := b.Len()
		for _, c := range program {
			piece := words
			if i := int(c) % (len(hard) + 4); i < len(hard) {
				piece = hard[i]
			}
			b.WriteString(strings.Repeat(piece, 1+int(c)/64))
		}
		b.WriteString(words + ".")
		units += mrkdwntest.Units(b.String()[before:])
	}
	return b.String()
}

// deep is a line that stands in many quotes and list items.
var deep = regexp.MustCompile(`(?m)^[ \t>0-9.)*+-]{20,}`)

func FuzzCut(f *testing.F) {
	f.Add([]byte{0, 12, 6}, "word ", uint16(0), uint16(0))
	f.Add([]byte{10, 11, 75, 139, 203, 7}, "a", uint16(500), uint16(900))
	f.Add([]byte{3, 20, 12, 3, 8, 13, 13, 4, 70}, "<@U1>", uint16(4000), uint16(2000))
	f.Fuzz(func(t *testing.T, program []byte, words string, more, beyond uint16) {
		if len(program) > 60 || len(words) > 200 {
			t.Skip()
		}
		room := 1000 + int(more)%7000
		in := mrkdwn.Clean(long(program, strings.ToValidUTF8(words, "?"), room+1+int(beyond)%5000))
		if mrkdwntest.Units(in) <= room {
			t.Skip()
		}
		at := mrkdwn.PlaceToCut(in, room)
		head, tail := mrkdwn.Cut(in, room)
		if head != in[:at.At]+at.Closing || tail != at.Reopening+in[at.At:] {
			t.Error("the head and the tail are not all of it")
		}
		if mrkdwntest.Units(head) > room {
			t.Errorf("head has %d of %d", mrkdwntest.Units(head), room)
		}
		if len(tail) >= len(in) {
			t.Errorf("no progress: %d of %d", len(tail), len(in))
		}
		if len(mrkdwntest.Read(in)) == 0 && !strings.Contains(in, "](") {
			for name, text := range map[string]string{"head": head, "tail": tail} {
				for _, problem := range mrkdwntest.Read(text) {
					if strings.HasPrefix(problem, "live") || strings.Contains(problem, "not muted") {
						t.Errorf("the %s of %q: %s", name, in, problem)
					}
				}
			}
		}
		if deep.MatchString(in) {
			return // a fence there is closed by its message's end alone
		}
		if mrkdwn.InFence(head) || mrkdwn.InFence(in[:at.At]) != mrkdwn.InFence(at.Reopening) || mrkdwn.InFence(tail) != mrkdwn.InFence(in) {
			t.Errorf("a broken fence: %q | %q", head[max(0, len(head)-80):], tail[:80])
		}
		if end := mrkdwn.Tail(in, room); mrkdwntest.Units(end) > room || mrkdwn.InFence(end) != mrkdwn.InFence(in) {
			t.Errorf("the end has %d of %d, or a broken fence: %q", mrkdwntest.Units(end), room, end[:80])
		}
		if last := mrkdwn.Last(tail, 900); mrkdwntest.Units(last) > 900 || !strings.HasSuffix(tail, last) || mrkdwn.InFence(last) || last != "" && mrkdwn.InFence(strings.TrimSuffix(tail, last)) {
			t.Errorf("the last words: %q", last)
		}
	})
}

// FuzzShorten: what is shown of a growing text is only added to, and a text whose tables
// are not to be files stays as it is.
func FuzzShorten(f *testing.F) {
	f.Add([]byte{10, 11, 203, 203, 203, 7}, "| x |\n", uint16(700))
	f.Add([]byte{0, 10, 203, 203, 0, 7, 10, 203, 11}, "a | b\n", uint16(900))
	f.Fuzz(func(t *testing.T, program []byte, words string, cut uint16) {
		if len(program) > 60 || len(words) > 200 {
			t.Skip()
		}
		in := long(program, strings.ToValidUTF8(words, "?"), 3000)
		if got := mrkdwn.Shorten(in, true, func(mrkdwn.BigTable, int, int) (string, bool) { return "", false }); got != in {
			t.Errorf("it does not stay: %q", got)
		}
		tables := 0
		note := func(b mrkdwn.BigTable, rows, columns int) (string, bool) {
			tables++
			for _, row := range b.Rows {
				if len(row) != len(b.Rows[0]) {
					t.Errorf("a row has %d cells of %d", len(row), len(b.Rows[0]))
				}
			}
			if rows >= len(b.Rows) || columns > len(b.Rows[0]) {
				t.Errorf("%d rows of %d, %d columns of %d", rows, len(b.Rows)-1, columns, len(b.Rows[0]))
			}
			return "NOTE", true
		}
		whole := mrkdwn.Shorten(in, true, note)
		if got := strings.Count(whole, "\nNOTE\n"); got != tables && !strings.Contains(in, "NOTE") {
			t.Errorf("%d notes for %d tables", got, tables)
		}
		for line := range strings.Lines(in) {
			if strings.Count(line, "|") > 20 {
				return // its header is there before it is one
			}
		}
		part := mrkdwn.Shorten(in[:int(cut)%len(in)], false, note)
		if part = part[:strings.LastIndexByte(part, '\n')+1]; !strings.HasPrefix(whole, part) {
			t.Errorf("what was shown is not there: %q of %q", part, whole)
		}
	})
}

// warnings are those for a text that hides something.
func warnings(s string) []string {
	_, found := plaintext.Reveal(s)
	return found.Warnings()
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n":          "plain\ttext\n",
		"Ünïcode 漢字 emoji 👍🏽 ❤️": "Ünïcode 漢字 emoji 👍🏽 ❤️",
		"a\u202eb\u2066c\u200f":  "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200F⟩",
		"a\u200bb\u200dc\ufeff":  "a⟨U+200B⟩b⟨U+200D⟩c⟨U+FEFF⟩",
		"a\rb\r\nc":              "a⟨U+000D⟩b\nc",
		"\x1b[2J\x00\x7f\u009b":  "⟨U+001B⟩[2J⟨U+0000⟩⟨U+007F⟩⟨U+009B⟩",
		"a\u00a0b\u3000c\u2028":  "a⟨U+00A0⟩b⟨U+3000⟩c⟨U+2028⟩",
		"\U000e0041\u3164\ue000": "⟨U+E0041⟩⟨U+3164⟩⟨U+E000⟩",
		"a\ufe0f\xff":            "a⟨U+FE0F⟩⟨0xFF⟩",
	} {
		if diff := cmp.Diff(want, plaintext.Visible(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
	for in, want := range map[string]int{
		"ls -la\n\nls":                        0,
		"ls" + strings.Repeat(" ", 60) + "id": 1,
		"ls" + strings.Repeat("\n", 9) + "id": 1,
		"pаypal":                              1, // with a Cyrillic а
		"Привет мир αβγ abc":                  0,
		"x\u202e" + strings.Repeat(" ", 60):   2,
	} {
		if got := warnings(in); len(got) != want {
			t.Errorf("%q: warnings %q, want %d", in, got, want)
		}
	}
}
