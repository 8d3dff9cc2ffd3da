package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
)

// lessers are what may be sent of a page where Slack refuses some of it.
func lessers(p render.Page) []render.Page {
	worded, _ := p.Worded()
	return []render.Page{p.Least(), worded, p.Plain()}
}

// FuzzLesser looks for pages that break a rule when they are told with less: Slack's limits,
// and no mention but ours.
func FuzzLesser(f *testing.F) {
	f.Add("Hi <!channel> `<@U1>`\n```\n<!here> ``` <@U2>\n```\n| a | <#C1|x> |\n|---|---|\n| &lt;!here> | [https://a.com](https://b.com) |\n", uint16(1))
	f.Add("# <!subteam^S1> *bold* [x](javascript:y) ![a](b)\n- <!date^1^{time}|x>\n", uint16(900))
	f.Add("&lt;&amp;lt;!here&gt; \u202e<\u200b!everyone> ```` ``` ", uint16(400))
	f.Fuzz(func(t *testing.T, words string, n uint16) {
		if len(words) > 400 {
			t.Skip()
		}
		long := strings.Repeat(words, 1+int(n)%200)
		pages := render.Turn(ended(agent.TurnDone, text(long), tool("Bash", `{"command":`+quoted(words)+`}`, "done", words)), render.Options{})
		pages = append(pages,
			render.Card([]approvals.Approval{ask("Bash", `{"command":`+quoted(long)+`,"description":`+quoted(words)+`}`)}, render.Options{}),
			render.Card([]approvals.Approval{plan(long)}, render.Options{}))
		for _, page := range pages {
			for i, less := range lessers(page) {
				for _, problem := range checkLesser(less) {
					t.Errorf("%q in a lesser page (%d): %s", words, i, problem)
				}
			}
		}
	})
}

// checkLesser is checkPage, but for how much the blocks hold in all: what is too much is sent
// as text.
func checkLesser(p render.Page) []string {
	return slices.DeleteFunc(checkPage(p), func(problem string) bool { return strings.HasPrefix(problem, "the blocks have") })
}

// What every golden card becomes keeps what is asked for.
func TestLesserPagesSayWhatTheWholeOnesDo(t *testing.T) {
	t.Parallel()
	page := render.Card([]approvals.Approval{ask("Bash", `{"command":"go test ./..."}`)}, render.Options{})
	for i, less := range lessers(page) {
		said := less.Text
		for _, b := range less.Blocks {
			if s, ok := b.(*slack.SectionBlock); ok {
				said += s.Text.Text
			}
		}
		if i > 0 && !strings.Contains(said, "go test ./...") || !strings.Contains(said, "approve 7K2QX") {
			t.Errorf("lesser page %d does not say what is asked for, or how to decide: %q", i, said)
		}
		for _, problem := range checkPage(less) {
			t.Errorf("lesser page %d: %s", i, problem)
		}
	}
	if all := page.Everything(); !strings.Contains(all, "go test ./...") {
		t.Errorf("the file does not have the command: %q", all)
	}
}
