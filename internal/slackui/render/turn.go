package render

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
)

// view is a turn being rendered.
type view struct {
	t         agent.Turn
	o         Options
	workspace string
	ended     bool
	children  map[string][]*claude.Item // of a subagent, by the item that started it
}

// Turn renders a turn into the messages that show it, in order: none while there
// is nothing to show, at most four. Each page but the last is full, and its text
// stays as it is in all later renderings of the turn. When the last page must
// leave text out it says how much, and is marked Cut.
func Turn(t agent.Turn, o Options) []Page {
	v := &view{t: t, o: o, workspace: o.Workspace, ended: t.State.Ended()}
	if v.workspace == "" {
		v.workspace = t.Workspace
	}
	segments := v.segments()
	if len(segments) == 0 && !v.ended && !v.hasNews() {
		return nil
	}
	sheets, cut := layout(segments)
	pages := make([]Page, len(sheets))
	for i, s := range sheets {
		last := i == len(sheets)-1
		pages[i] = v.page(s, i, last, cut && last)
	}
	return pages
}

// FullText is all that the model wrote in the turn, as it wrote it, secrets
// excepted: what is attached as a file when the pages leave text out.
func FullText(t agent.Turn, o Options) string {
	var b strings.Builder
	for i := range t.Content.Items {
		it := &t.Content.Items[i]
		if it.Kind != claude.ItemText || it.ParentID != "" {
			continue
		}
		text := strings.TrimSpace(it.Text)
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(text)
	}
	return o.redact(b.String())
}

// segment is a piece of a turn in its order: text, a run of tools, or a line of ours.
type segment struct {
	text string // cleaned markdown
	run  *run
	line string // mrkdwn
}

func (s segment) cost() int {
	switch {
	case s.run != nil:
		return s.run.cost()
	case s.line != "":
		return width(s.line)
	}
	return width(s.text)
}

// segments puts the turn's items in order. What subagents do stands in the line of
// the call that started them.
func (v *view) segments() []segment {
	items := v.t.Content.Items
	out := make([]segment, 0, len(items))
	var current *run
	var parents map[string]bool
	for i := range items {
		if it := &items[i]; it.Tool != nil && isAgent(it.Tool.Name) {
			if parents == nil {
				parents = map[string]bool{}
			}
			parents[it.ID] = true
		}
	}
	for i := range items {
		it := &items[i]
		if it.ParentID != "" && parents[it.ParentID] {
			if it.Tool != nil {
				if v.children == nil {
					v.children = map[string][]*claude.Item{}
				}
				v.children[it.ParentID] = append(v.children[it.ParentID], it)
			}
			continue
		}
		if it.Kind == claude.ItemToolUse {
			if it.Tool == nil || listTools[it.Tool.Name] {
				continue
			}
			if current == nil {
				current = &run{}
				out = append(out, segment{run: current})
			}
			current.tools = append(current.tools, it)
			current.agent = current.agent || isAgent(it.Tool.Name)
			continue
		}
		s := v.words(it)
		if s == (segment{}) {
			continue
		}
		current = nil
		out = append(out, s)
	}
	return out
}

// words renders an item that is no tool call; an empty segment means nothing.
func (v *view) words(it *claude.Item) segment {
	text := it.Text
	if !it.Final && !v.ended {
		text = holdBack(text)
	}
	switch it.Kind {
	case claude.ItemText:
		return segment{text: strings.TrimSpace(cleanMarkdown(v.o.redact(text)))}
	case claude.ItemThinking:
		text = strings.TrimSpace(text)
		if !v.o.ShowThinking || text == "" {
			return segment{}
		}
		quoted := "> 💭 " + strings.ReplaceAll(printable(v.o.redact(text)), "\n", "\n> ")
		return segment{text: cleanMarkdown(quoted)}
	case claude.ItemCommandOutput:
		text = strings.Trim(printable(v.o.redact(text)), "\n")
		if text == "" {
			return segment{}
		}
		fence := fenceFor(text)
		return segment{text: cleanMarkdown(fence + "\n" + text + "\n" + fence)}
	case claude.ItemImage:
		return segment{line: "🖼️ _an image_"}
	case claude.ItemNotice:
		icon := "ℹ️ "
		if it.Error {
			icon = "⚠️ "
		}
		if text = oneLine(visibleText(v.o.redact(text))); text != "" {
			return segment{line: icon + escape(clip(text, 300))}
		}
	case claude.ItemToolUse:
	}
	return segment{}
}

// fenceFor is a fence that nothing in text closes.
func fenceFor(text string) string {
	n := 3
	for i := 0; i < len(text); i++ {
		if text[i] == '`' {
			run := runLength(text[i:])
			n = max(n, run+1)
			i += run
		}
	}
	return strings.Repeat("`", n)
}

// hasNews reports whether there is something to say before there is any text. A
// text that is about to begin is not news: posting early would delay its first
// words by a call.
func (v *view) hasNews() bool {
	if v.t.Waiting > 0 || v.t.Content.Status != "" {
		return true
	}
	for i := range v.t.Content.Items {
		if it := &v.t.Content.Items[i]; it.Kind == claude.ItemThinking && it.Text != "" {
			return true
		}
	}
	return false
}

// sheet is what stands on one page.
type sheet struct {
	segments []segment
	before   string // a sentence in front, mrkdwn
}

// layout distributes segments over pages. What stands on a page that is not the
// last depends only on what is in front of it, see placeToCut and run.cost.
func layout(segments []segment) (sheets []sheet, cut bool) {
	sheets = []sheet{{}}
	used := 0
	next := func() {
		sheets = append(sheets, sheet{})
		used = 0
	}
	lastAt := 0 // the segment that the last page allowed begins with …
	lastText := ""
	for i, s := range segments {
		for {
			page := &sheets[len(sheets)-1]
			room := pageText - used
			cost := s.cost()
			switch {
			case len(page.segments) >= pageBlocks:
			case cost <= room:
				page.segments = append(page.segments, s)
				used += cost
				goto placed
			case s.text != "" && room >= 1000+lookahead:
				head, tail := cutMarkdown(s.text, room-lookahead)
				page.segments = append(page.segments, segment{text: head})
				s = segment{text: tail}
			}
			if len(sheets) == pagesMax {
				rest := append([]segment{{text: lastText}}, segments[lastAt+1:]...)
				if lastText == "" {
					rest[0] = segments[lastAt]
				}
				sheets[len(sheets)-1] = ending(rest)
				return sheets, true
			}
			next()
			if len(sheets) == pagesMax {
				lastAt, lastText = i, s.text
			}
		}
	placed:
	}
	return sheets, false
}

// ending is a last page that cannot hold what is left: the end of it, and a
// sentence for the rest.
func ending(rest []segment) sheet {
	const room = pageText - 500
	var kept []segment
	used, left := 0, 0
	for _, s := range slices.Backward(rest) {
		cost := s.cost()
		switch {
		case used+cost <= room && len(kept) < pageBlocks && left == 0:
			kept = append(kept, s)
			used += cost
		case s.text == "":
		case left == 0 && room-used >= 1000 && len(kept) < pageBlocks:
			tail := markdownTail(s.text, room-used)
			kept = append(kept, segment{text: tail})
			left = max(1, utf8.RuneCountInString(s.text)-utf8.RuneCountInString(tail))
		default:
			left += utf8.RuneCountInString(s.text)
		}
	}
	slices.Reverse(kept)
	return sheet{segments: kept, before: "✂️ *" + count(left) + " characters* are left out here."}
}

// page builds the message of one sheet.
func (v *view) page(s sheet, n int, last, cut bool) Page {
	blocks := make([]slack.Block, 0, len(s.segments)+5)
	id := func(kind string) string {
		return "turn:" + strconv.FormatInt(v.t.ID, 10) + ":" + strconv.Itoa(n) + ":" + kind + strconv.Itoa(len(blocks))
	}
	if cut {
		sentence := " The whole text comes as a file when the turn ends."
		if v.ended {
			sentence = " The whole text, " + count(utf8.RuneCountInString(FullText(v.t, v.o))) + " characters, is in the attached file."
		}
		blocks = append(blocks, contextBlock(id("cut"), s.before+sentence))
	}
	text := ""
	for _, p := range s.segments {
		switch {
		case p.run != nil:
			blocks = append(blocks, contextBlock(id("tools"), v.lines(p.run)))
		case p.line != "":
			blocks = append(blocks, contextBlock(id("note"), p.line))
		default:
			blocks = append(blocks, slack.NewMarkdownBlock("", p.text))
			if len(text) < excerptMax {
				text += p.text + "\n\n"
			}
		}
	}
	if !last {
		return Page{Text: v.excerpt(text, ""), Blocks: blocks}
	}
	if todos := v.todos(); todos != "" {
		blocks = append(blocks, section(id("todos"), todos))
	}
	if v.ended && v.t.Problem != "" {
		blocks = append(blocks, section(id("problem"), escape(clip(v.o.redact(v.t.Problem), 1000))))
	}
	status := v.status()
	blocks = append(blocks, contextBlock(id("status"), status))
	if !v.ended {
		blocks = append(blocks, slack.NewActionBlock(id("stop"),
			button(ActionStop, strconv.FormatInt(v.t.ID, 10), "Stop", "")))
	}
	return Page{Text: v.excerpt(text, status), Blocks: blocks, Cut: cut}
}

// excerptMax is how much of a page's text stands in its fallback.
const excerptMax = 1500

// excerpt is a page in mrkdwn, for notifications and where blocks are not shown.
func (v *view) excerpt(text, status string) string {
	text = strings.TrimSpace(text)
	if width(text) > excerptMax {
		text = prefix(text, excerptMax) + "…"
	}
	out := Mrkdwn(text)
	if v.ended && v.t.Problem != "" && status != "" {
		out += "\n" + escape(clip(v.o.redact(v.t.Problem), 500))
	}
	if status != "" {
		out += "\n" + status
	}
	out = strings.TrimSpace(out)
	if out == "" {
		out = "…"
	}
	return clipEscaped(out, fallbackMax)
}

// todos is the model's list of work, while something is left of it. It may be left
// from an earlier turn.
func (v *view) todos() string {
	const most = 12
	list := v.t.Content.Todos
	done := 0
	for _, todo := range list {
		if todo.State == "completed" {
			done++
		}
	}
	if done == len(list) {
		return ""
	}
	// The list is shown around what is being worked on.
	first := 0
	if len(list) > most {
		first = min(max(0, done-2), len(list)-most)
	}
	var b strings.Builder
	if first > 0 {
		b.WriteString("☑ " + plural(first, "earlier step", "earlier steps") + "\n")
	}
	for _, todo := range list[first:min(len(list), first+most)] {
		text := escape(clip(oneLine(v.o.redact(todo.Text)), 120))
		switch todo.State {
		case "completed":
			b.WriteString("☑ ~" + strings.ReplaceAll(text, "~", "") + "~\n")
		case "in_progress":
			b.WriteString("▸ *" + strings.ReplaceAll(text, "*", "") + "*\n")
		default:
			b.WriteString("☐ " + text + "\n")
		}
	}
	if more := len(list) - first - most; more > 0 {
		b.WriteString("… and " + plural(more, "more step", "more steps"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// status says what the turn is doing, or how it ended.
func (v *view) status() string {
	if v.ended {
		return v.footer()
	}
	switch {
	case v.t.Waiting == 1:
		return "✋ Waiting for approval"
	case v.t.Waiting > 1:
		return "✋ Waiting for " + count(v.t.Waiting) + " approvals"
	case v.t.Content.Status != "":
		return "⏳ " + escape(clip(oneLine(v.o.redact(v.t.Content.Status)), 200))
	}
	if items := v.t.Content.Items; len(items) > 0 {
		if it := &items[len(items)-1]; it.Kind == claude.ItemThinking && !it.Final {
			return "💭 Thinking…"
		}
	}
	return "⏳ Working…"
}

// footer sums an ended turn up.
func (v *view) footer() string {
	t := v.t
	var parts []string
	switch t.State {
	case agent.TurnInterrupted:
		parts = append(parts, "⏹️ Stopped")
	case agent.TurnFailed:
		parts = append(parts, "❌ Failed")
	case agent.TurnDone, agent.TurnRunning:
		parts = append(parts, "✅ Done")
	}
	if t.AgentTurns > 0 {
		parts = append(parts, plural(t.AgentTurns, "turn", "turns"))
	}
	if !t.StartedAt.IsZero() && !t.EndedAt.IsZero() {
		parts = append(parts, span(t.EndedAt.Sub(t.StartedAt)))
	}
	switch {
	case t.Estimated:
		parts = append(parts, "about "+roughUSD(t.CostMicroUSD)+" (estimated)")
	case t.CostMicroUSD != 0 || t.AgentTurns > 0:
		parts = append(parts, roughUSD(t.CostMicroUSD))
	}
	if t.Content.Model != "" {
		parts = append(parts, escape(clip(ModelName(t.Content.Model), 60)))
	}
	return strings.Join(parts, " · ")
}

// ModelName shortens a model's id for people: claude-sonnet-4-5-20250929 is
// "sonnet 4.5".
func ModelName(id string) string {
	name := strings.TrimPrefix(id, "claude-")
	name, suffix, _ := strings.Cut(name, "[") // as in claude-sonnet-4-5[1m]
	parts := strings.Split(name, "-")
	var words, numbers []string
	for _, p := range parts {
		switch _, err := strconv.Atoi(p); {
		case err != nil:
			words = append(words, p)
		case len(p) <= 2:
			numbers = append(numbers, p)
		}
	}
	if len(words) == 0 || len(words) > 2 || words[0] == "" || name == id {
		return id
	}
	out := strings.Join(words, " ")
	if len(numbers) > 0 {
		out += " " + strings.Join(numbers, ".")
	}
	if suffix != "" {
		out += " [" + suffix
	}
	return out
}
