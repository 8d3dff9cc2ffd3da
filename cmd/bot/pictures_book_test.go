package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// notice is what somebody's device has shown.
type notice struct {
	User, Reason, Text string
	Channel            string `json:",omitempty"` // another one in each run: not kept
}

// lockScreens is what each story made people's devices show, and how long its thread is, by the
// stories' names, with a bot that is told of as Bot.
type lockScreens struct {
	Bot    string
	Told   map[string][]notice
	Length map[string]length
}

// length is how much of a thread there is to read: the bot's posts, and for whoever asked the
// lines of text and the pixels from top to bottom.
type length struct {
	Posts                  int
	Lines, Pixels          int // on a desktop
	PhoneLines, PhonePixel int
}

func (h lockScreens) keep(t *testing.T, file string) {
	t.Helper()
	text, err := json.MarshalIndent(h, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// kept is what keep has written.
func kept(t *testing.T, file string) (h lockScreens) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (w *world) notices() []notice {
	w.t.Helper()
	var out struct{ Notifications []notice }
	w.must("GET", "/_control/notifications", nil, &out)
	return out.Notifications
}

// codes are those that a card is decided by in a reply; each is another one.
var codes = regexp.MustCompile(`\b(approve|deny) [A-Z0-9]{5}\b`)

// plain are notices without what is another one in each run. What came at once, a card and its
// copies, is in the order of people.
func plain(w *world, list []notice) []notice {
	out := make([]notice, 0, len(list))
	for _, n := range list {
		n.Channel = ""
		n.Text = strings.ReplaceAll(codes.ReplaceAllString(n.Text, "$1 CODE"), w.dir, "DIR")
		out = append(out, n)
	}
	place := func(n notice) int {
		return slices.IndexFunc(people, func(p struct{ id, name string }) bool { return p.id == n.User })
	}
	for from, to := 0, 0; from < len(out); from = to {
		about, _, _ := strings.Cut(out[from].Text, "\n")
		for to = from; to < len(out) && strings.HasPrefix(out[to].Text, about); to++ {
			continue
		}
		slices.SortStableFunc(out[from:to], func(a, b notice) int { return place(a) - place(b) })
	}
	return out
}

// once holds that nobody hears the same twice, or something that is no sentence. A request is
// told again when it is made again.
func once(t *testing.T, story string, list []notice) {
	t.Helper()
	heard := map[notice]bool{}
	for _, n := range list {
		key := notice{User: n.User, Text: n.Text}
		if heard[key] && !strings.Contains(n.Text, "with the buttons") {
			t.Errorf("%s: %s hears twice: %s", story, n.User, n.Text)
		}
		heard[key] = true
		if end := strings.TrimSpace(n.Text); end == "" || strings.HasSuffix(end, ":") || strings.HasSuffix(end, "Working…") || strings.HasSuffix(end, "Thinking…") {
			t.Errorf("%s: %s hears no sentence: %q", story, n.User, n.Text)
		}
	}
}

// people are those of the stories, in the order of the tables.
var people = []struct{ id, name string }{
	{linus, "Linus, who asked"}, {grace, "Grace, approver"}, {ada, "Ada, admin"}, {mallory, "Mallory, who may do nothing"},
}

// stories is the page about all of them: the pictures of each, and who was notified of what.
func stories(then, now lockScreens) string {
	var b strings.Builder
	b.WriteString("# Ten stories, before and now, and who is notified of what\n\n" +
		"Made by `make pictures`. Each story is told to two bots, in the same playground, by the same people, with the same words and the same model: *before* to the bot of " + then.Bot +
		", and *now* to this one. They are seen as Linus sees them, who asked. Who hears what is by Slack's default preferences.\n")
	for _, p := range pictures() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n![%s, before and now](%s.png)\n\n[In dark, and on a phone](%s-dark-phone.png)\n\n", capitalised(p.name), p.says, capitalised(p.name), p.name, p.name)
		if p.name == toGrace {
			fmt.Fprintf(&b, "What Grace's phone shows, who is not in the thread:\n\n![The card as a direct message](%s-grace.png)\n\n", p.name)
		}
		b.WriteString("| | who | why | what the lock screen says |\n|---|---|---|---|\n")
		tell(&b, "before", then.Told[p.name])
		tell(&b, "**now**", now.Told[p.name])
	}
	return b.String()
}

// The lines of docs/pictures.md between which counted stands.
const countedFrom, countedTo = "<!-- make pictures writes this -->\n", "<!-- to here -->\n"

// count writes the table of how many notifications each person got into a page that has a place
// for it.
func count(t *testing.T, file string, then, now lockScreens) {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return // the pictures go elsewhere
	}
	before, rest, begins := strings.Cut(string(text), countedFrom)
	_, after, ends := strings.Cut(rest, countedTo)
	if err != nil || !begins || !ends {
		t.Fatalf("%s: %v; it needs the lines %q and %q", file, err, countedFrom, countedTo)
	}
	if err := os.WriteFile(file, []byte(before+countedFrom+counted(then, now)+countedTo+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// counted are two tables, then and now: how long each thread is, and how many notifications each
// person got.
func counted(then, now lockScreens) string {
	var b strings.Builder
	b.WriteString("| story | posts | lines on a desktop | on a phone | pixels on a desktop | on a phone |\n|---|---|---|---|---|---|\n")
	for _, p := range pictures() {
		was, is := then.Length[p.name], now.Length[p.name]
		fmt.Fprintf(&b, "| [%s](pictures/stories.md#%s) | %s | %s | %s | %s | %s |\n", p.name, p.name,
			led(was.Posts, is.Posts), led(was.Lines, is.Lines), led(was.PhoneLines, is.PhoneLines), led(was.Pixels, is.Pixels), led(was.PhonePixel, is.PhonePixel))
	}
	b.WriteString("\n| story | who | before | now |\n|---|---|---|---|\n")
	for _, p := range pictures() {
		for _, who := range people {
			was, is := summed(then.Told[p.name], who.id), summed(now.Told[p.name], who.id)
			if was != is || was != "0" {
				fmt.Fprintf(&b, "| [%s](pictures/stories.md#%s) | %s | %s | %s |\n", p.name, p.name, who.name, was, is)
			}
		}
	}
	return b.String()
}

// led is a figure then and now, or now alone where the older run has not measured it.
func led(was, is int) string {
	if was == 0 {
		return strconv.Itoa(is)
	}
	return fmt.Sprintf("%d → %d", was, is)
}

// summed is how many notifications somebody got, with the first words of each.
func summed(list []notice, user string) string {
	var first []string
	for _, n := range list {
		if n.User == user {
			first = append(first, "“"+cell(beginning(n.Text, 34))+"”")
		}
	}
	if len(first) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", len(first), strings.Join(first, ", "))
}

// beginning is the first line of a text as far as whole words of it fit.
func beginning(text string, limit int) string {
	line, more, _ := strings.Cut(text, "\n")
	out := ""
	for word := range strings.FieldsSeq(line) {
		if out != "" && len([]rune(out+" "+word)) > limit {
			return out + "…"
		}
		out = strings.TrimPrefix(out+" "+word, " ")
	}
	if more != "" && !strings.HasSuffix(out, "…") {
		out += "…"
	}
	return out
}

// tell writes who was notified of what, in order, as rows of a table.
func tell(b *strings.Builder, when string, list []notice) {
	if len(list) == 0 {
		fmt.Fprintf(b, "| %s | nobody | | |\n", when)
		return
	}
	names := map[string]string{}
	for _, p := range people {
		names[p.id] = p.name
	}
	reasons := map[string]string{"direct": "direct message", "mention": "mentioned", "thread": "in their thread"}
	for _, n := range list {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", when, names[n.User], reasons[n.Reason], cell(n.Text))
	}
}

// cell is a text as a table of Markdown has it.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ⏎ ", "<", "&lt;", "*", `\*`).Replace(text)
}

func capitalised(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
