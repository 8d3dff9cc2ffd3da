package chat

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"deckhand/internal/playground/slack"
)

// sayings are texts, with the command that each is and what follows its name; with nearly,
// what is answered with what to write; "" is what the model gets, or what the slash
// command does not understand.
const nearly = "nearly "

var sayings = []struct{ text, command, rest string }{
	{"help", "help", ""},
	{"HELP!", "help", ""},
	{"help me", nearly + "help", ""},
	{"help me fix the test", "", ""},
	{"stop", "stop", ""},
	{"Stop!!", "stop", ""},
	{": stop", "stop", ""}, // “@deckhand: stop”
	{"*stop*", "stop", ""},
	{"`stop`", "stop", ""},
	{"stop please", "stop", ""},
	{"Stop, now please!", "stop", ""},
	{"stop it", "stop", ""}, // and many more, see stopwords_test.go
	{"stop using tabs", "", ""},
	{"stpo", nearly + "stop", ""}, //nolint:misspell // that is the point
	{"Stopp now!", "stop", ""},
	{"stpo using tabs", "", ""}, //nolint:misspell // that is the point
	{"hlep", nearly + "help", ""},
	{"connect", "connect", ""},
	{"Connect!", "connect", ""},
	{"conect", nearly + "connect", ""},
	{"connect the database to the app", "", ""},
	{"disconnect", "disconnect", ""},
	{"disconect", nearly + "disconnect", ""},
	{"disconnect the socket when it idles", "", ""},
	{"hepl!", nearly + "help", ""},
	{"hlep me", "", ""},
	{"csots", nearly + "costs", ""},
	{"Csots last month by user", nearly + "costs", ""},
	{"cotss today", nearly + "costs", ""},
	{"coats of paint", "", ""},
	{"csots of this function", "", ""},
	{"gratns", nearly + "grants", ""},
	{"aprovals 30 days", nearly + "approvals", ""},
	{"aproval of the plan", "", ""}, //nolint:misspell // that is the point
	{"feedbcak", nearly + "feedback", ""},
	{"aprove 7K2QX", nearly + "approve", ""},
	{"dney 7K2QX not today", nearly + "deny", ""},
	{"host", "", ""},
	{"shop", "", ""},
	{"step", "", ""},
	{"stop using tabs in main.go", "", ""},
	{"stop the server from crashing", "", ""},
	{"`stop` does not return", "", ""},
	{"stop() does not return", "", ""},
	{"stop-the-world pauses", "", ""},
	{"grant", "grants", ""},
	{"Grants?", "grants", ""},
	{"grants all", nearly + "grants", ""},
	{"grants of the people in this channel, please", nearly + "grants", ""},
	{"grants.sql fails", "", ""},
	{"costs", "costs", ""},
	{"COST", "costs", ""},
	{"Costs…", "costs", ""},
	{"costs?", "costs", ""},
	{"costs:  last   month\tby project", "costs", "last   month by project"},
	{"costs:today", "costs", "today"},
	{"costs\u00a0last month", "costs", "last month"},
	{"\u200bcosts\nlast month", "costs", "last month"},
	{"costs - last month", "costs", "last month"},
	{"costs <@U1>", "costs", "<@U1>"},
	{"costs last moth", "costs", "last moth"}, // and told so
	{"costs for project '; DROP TABLE ledger; --", "costs", "for project '; DROP TABLE ledger; --"},
	{"costs of this function: can we reduce them?", "costs", "of this function: can we reduce them?"},
	{"costs/2026", "costs", "/2026"},
	{"costs\u200bsay: x", "costs", "\u200bsay: x"},
	{"“costs” of last month", "costs", "of last month"},
	{"(costs) today", "costs", "today"},
	{"> costs today", "costs", "today"},
	{"- costs today", "costs", "today"},
	{"costs@ada", "costs", "@ada"},
	{"\"stop\" is what he said", "", ""},
	{"> approve 7K2QX", "", ""}, // somebody else is quoted
	{"costly", "", ""},
	{"costs.go does not compile", "", ""},
	{"cost-benefit analysis of the cache", "", ""},
	{"what does it cost", "", ""},
	{"approvals", "approvals", ""},
	{"approvals 30 days", "approvals", "30"},
	{"Approvals  of  the  last  7d.", "approvals", "7"},
	{"approvals for 90 days", "approvals", "90"},
	{"approvals 0 days", nearly + "approvals", ""},
	{"approvals 1000 days", nearly + "approvals", ""},
	{"approvals nonsense", nearly + "approvals", ""},
	{"approvals by user of the last month", nearly + "approvals", ""},
	{"feedback", "feedback", ""},
	{"Feedback of the last 90 days", "feedback", "90"},
	{"feedback form", nearly + "feedback", ""},
	{"feedback on this pull request, please", "", ""},
	{"approve 7K2QX", "approve", "7K2QX"},
	{"approve: 7k2qx.", "approve", "7k2qx."},
	{"APPROVE   7k2qx confirm", "approve", "7k2qx confirm"},
	{"approve", nearly + "approve", ""},
	{"approve this", nearly + "approve", ""},
	{"approve KQXAB", nearly + "approve", ""}, // a code has a digit
	{"approve of this design?", "", ""},
	{"approve 7K2QX\nand deploy it", nearly + "approve", ""},
	{"deny 7k2qx not today", "deny", "7k2qx not today"},
	{"deny 7K2QX\nnot today,\nnor tomorrow", "deny", "7K2QX\nnot today,\nnor tomorrow"},
	{"deny", nearly + "deny", ""},
	{"deny 7K2", nearly + "deny", ""},
	{"deny access to what guests see", "", ""},
	{"model", "model", ""},
	{"Model: opus.", "model", "opus."},
	{"model claude-opus-5-5[1m]", "model", "claude-opus-5-5[1m]"},
	{"modl opus", nearly + "model", ""},
	{"model the data as a graph", "", ""},
	{"effort high", "effort", "high"},
	{"effrot high", nearly + "effort", ""},
	{"effort is needed here", "", ""},
	{"plan", "plan", ""},
	{"plna", nearly + "plan", ""},
	{"plan the release", "", ""},
	{"mode default", "mode", "default"},
	{"mdoe plan", nearly + "mode", ""},
	{"retry", "retry", ""},
	{"rtery", nearly + "retry", ""},
	{"retry the upload when it fails", "", ""},
	{"rewind", "rewind", ""},
	{"Rewind back.", "rewind", "back"},
	{"rewind 12", "rewind", "12"},
	{"rewind 12 yes 15 0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", "rewind", "12 yes 15 0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"},
	{"rewnid", nearly + "rewind", ""},
	{"rewind the tape before it is read", "", ""},
	{"rewind 12 yes", nearly + "rewind", ""},
	{"fork", "fork", ""},
	{"fork from", "fork", "from"},
	{"fork 12", "fork", "12"},
	{"frok", nearly + "fork", ""},
	{"fork the parser into its own package", "", ""},
	{"new", "new", ""},
	{"neww", nearly + "new", ""},
	{"new feature", "", ""},
	{"sessions", "sessions", ""},
	{"sesions", nearly + "sessions", ""},
	{"sessions expire too early", "", ""},
	{"session", nearly + "sessions", ""},
	{"context", "context", ""},
	{"contxt", nearly + "context", ""},
	{"context.Background is used here", "", ""},
	{"compact", "compact", ""},
	{"comapct", nearly + "compact", ""},
	{"trust", "trust", ""},
	{"Trust.", "trust", ""},
	{"trsut", nearly + "trust", ""},
	{"trust nobody in this test", "", ""},
	{"trust yes commands", "", ""},
	{"trust yes commands " + strings.Repeat("0a", 32), "trust", "yes commands " + strings.Repeat("0a", 32)},
	{"setup", "setup", ""},
	{"Setup project web-2", "setup", "web-2"},
	{"setup eslint", "", ""},
	{"setup project web for me", "", ""},
	{"setpu", nearly + "setup", ""},
	{"mcp", "mcp", ""},
	{"MCP off linear.", "mcp", "off linear"},
	{"mcp reconnect our-docs", "mcp", "reconnect our-docs"},
	{"mcp off", nearly + "mcp", ""},
	{"mcp bogus", nearly + "mcp", ""},
	{"mode accept edits", nearly + "mode", ""},
	{"what can you do?", "help", ""},
	{"Hilfe!", "help", ""},
	{"what can you do about the slow tests?", "", ""},
	{"never mind", "stop", ""},
	{"mcp servers are slow here", "", ""},
	{"mcpp on linear", nearly + "mcp", ""},
	{"", "", ""},
	{"fix the test", "", ""},
}

// understood is what a text is, as the sayings have it.
func understood(list commands, text string) (name, rest string) {
	c := list.find(text)
	switch {
	case c == nil:
		return "", ""
	case c.nearly:
		return nearly + c.name, ""
	}
	return c.name, c.rest
}

func TestWhatIsACommand(t *testing.T) {
	t.Parallel()
	list := allCommands(nil)
	tried := map[string]bool{}
	for _, s := range sayings {
		name, rest := understood(list, s.text)
		if name != s.command || rest != s.rest {
			t.Errorf("%q is %q with %q, want %q with %q", s.text, name, rest, s.command, s.rest)
		}
		tried[name] = true
	}
	for _, c := range list {
		if !tried[c.name] || !tried[nearly+c.name] {
			t.Errorf("no text here is the command %s, or nearly", c.name)
		}
	}
}

// FuzzCommand: what a text is does not depend on blanks around it or on its case, and
// what begins with a noun of ours, or is short and begins with a verb, is never work.
func FuzzCommand(f *testing.F) {
	for _, s := range sayings {
		f.Add(s.text)
	}
	list := allCommands(nil)
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
		name, rest := understood(list, text)
		if shouted, _ := understood(list, "\t "+strings.ToUpper(text)+" \u00a0"); isASCII(text) && shouted != name {
			t.Errorf("%q is %q, and %q when it is shouted", text, name, shouted)
		}
		if !strings.Contains(bared(text), rest) {
			t.Errorf("%q is %s with %q", text, name, rest)
		}
		words := strings.Fields(strings.ToLower(text))
		for _, c := range list {
			for _, own := range c.names() {
				if name == "" && len(words) > 0 && words[0] == own && c.name != "stop" && !c.steers && (c.noun || len(words) <= longestNearly) {
					t.Errorf("%q is work", text)
				}
			}
		}
		if c := list.find(text); c != nil && c.nearly && c.complaint(text) == "" {
			t.Errorf("no complaint of %q", text)
		}
	})
}

// TestComplaintsSayWhatToWrite, and what they say is understood; so is what a button stands
// for.
func TestComplaintsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	list := allCommands(nil)
	for _, s := range sayings {
		c := list.find(s.text)
		if c == nil || !c.nearly {
			continue
		}
		said := c.complaint(s.text)
		_, example, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(said, "Write “", "\x00"), "Did you mean “", "\x00"), "\x00")
		example, _, _ = strings.Cut(example, "”")
		if name, _ := understood(list, strings.ReplaceAll(example, "CODE", "7K2QX")); name != c.name {
			t.Errorf("%q is told %q", s.text, said)
		}
		if name, _ := understood(list, c.meant); c.meant != "" && name != c.name {
			t.Errorf("%q has a button that says %q", s.text, c.meant)
		}
	}
}

// TestTheHelpTextIsTrue: what the help text says can be said.
func TestTheHelpTextIsTrue(t *testing.T) {
	t.Parallel()
	list := allCommands(nil)
	for _, c := range list {
		for _, text := range c.help.Say {
			if got, _ := understood(list, strings.ReplaceAll(text, "CODE", "7K2QX")); got != c.name {
				t.Errorf("%q is not the command %s", text, c.name)
			}
		}
	}
}

func TestTheManifestShowsTheCommands(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../deploy/slack-manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Features struct {
			SlashCommands []struct {
				Command   string `yaml:"command"`
				UsageHint string `yaml:"usage_hint"`
			} `yaml:"slash_commands"`
			Shortcuts []slack.Shortcut `yaml:"shortcuts"`
		} `yaml:"features"`
	}
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	if n := len(manifest.Features.SlashCommands); n != 1 {
		t.Fatalf("%d slash commands", n)
	}
	list := allCommands(nil)
	for text := range strings.SplitSeq(strings.Trim(manifest.Features.SlashCommands[0].UsageHint, "[]"), " | ") {
		if c := list.find(text); c == nil || c.nearly || c.inThread || !slices.Contains(c.help.Say, text) {
			t.Errorf("the usage_hint has %q, which the help text does not have, or which cannot be said after /deckhand", text)
		}
	}
	shortcuts := manifest.Features.Shortcuts
	if !slices.Equal(shortcuts, slack.Shortcuts()) {
		t.Errorf("the playground's app has other shortcuts than the manifest: %+v, %+v", slack.Shortcuts(), shortcuts)
	}
	if len(shortcuts) != 2 || shortcuts[0].CallbackID != ShortcutAbout || shortcuts[1].CallbackID != ShortcutAsk {
		t.Errorf("the code knows other shortcuts: %+v", shortcuts)
	}
	for _, s := range shortcuts { // Slack's limits, and its menus cut longer names
		if len(s.Name) > 24 || len(s.Description) > 150 {
			t.Errorf("too long: %+v", s)
		}
	}
}

// TestTheDocumentsShowTheCommands: the table of docs/using.md has every command, and none that is not.
func TestTheDocumentsShowTheCommands(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/using.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(raw), "\n## ")
	list := allCommands(nil)
	var missing []string
	for _, c := range list {
		missing = append(missing, c.name)
	}
	for row := range strings.Lines(table) {
		if !strings.HasPrefix(row, "|") {
			continue
		}
		first := strings.Split(row, "|")[1]
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			text, slash := strings.CutPrefix(quoted[1], "/deckhand ")
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, "@deckhand "), "…"))
			if text == "" {
				continue // a prompt
			}
			c := list.find(strings.ReplaceAll(text, "CODE", "7K2QX"))
			if c == nil || c.nearly || slash && c.inThread {
				t.Errorf("docs/using.md: %q is no command", quoted[1])
				continue
			}
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.name })
		}
	}
	if len(missing) > 0 {
		t.Errorf("the table of docs/using.md lacks %q", missing)
	}
}
