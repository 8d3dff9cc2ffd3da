package slackui

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"deckhand/internal/playground/slack"
)

// sayings are texts, with the command that each is and what follows its name; "" is
// what the model gets, or what the slash command does not understand.
var sayings = []struct{ text, command, rest string }{
	{"help", "help", ""},
	{"HELP!", "help", ""},
	{"help me", "", ""},
	{"stop", "stop", ""},
	{"Stop!", "stop", ""},
	{"stop the server from crashing", "", ""},
	{"stop stop", "", ""},
	{"grant", "grants", ""},
	{"Grants?", "grants", ""},
	{"grants for me", "", ""},
	{"costs", "costs", ""},
	{"COST", "costs", ""},
	{"costs?", "costs", ""},
	{"costs:  last   month\tby project", "costs", "last   month\tby project"},
	{"costs last moth", "costs", "last moth"}, // and told so
	{"costly", "", ""},
	{"what does it cost", "", ""},
	{"approvals", "approvals", ""},
	{"approvals 30 days", "approvals", "30"},
	{"Approvals  of  the  last  7d.", "approvals", "7"},
	{"approvals for 90 days", "approvals", "90"},
	{"approvals 0 days", "", ""},
	{"approvals 1000 days", "", ""},
	{"approvals 30", "", ""},
	{"approvals by user", "", ""},
	{"approve 7K2QX", "approve", "7K2QX"},
	{"APPROVE   7k2qx confirm", "approve", "7k2qx confirm"},
	{"approve", "", ""},
	{"approve of this", "", ""},
	{"approve 7K2QX\nand deploy it", "", ""},
	{"deny 7k2qx not today", "deny", "7k2qx not today"},
	{"deny 7K2QX\nnot today,\nnor tomorrow", "deny", "7K2QX\nnot today,\nnor tomorrow"},
	{"deny", "", ""},
	{"", "", ""},
	{"fix the test", "", ""},
}

func TestCommandsAreWholeMessages(t *testing.T) {
	t.Parallel()
	list := allCommands()
	tried := map[string]bool{}
	for _, s := range sayings {
		got, rest := list.find(s.text)
		name := ""
		if got != nil {
			name = got.name
		}
		if name != s.command || rest != s.rest {
			t.Errorf("%q is %q with %q, want %q with %q", s.text, name, rest, s.command, s.rest)
		}
		tried[name] = true
	}
	for _, c := range list {
		if !tried[c.name] {
			t.Errorf("no text here is the command %s", c.name)
		}
	}
}

// FuzzCommand: a command is what it is in upper case and with blanks around it, it
// begins with its name, and no text is two commands.
func FuzzCommand(f *testing.F) {
	for _, s := range sayings {
		f.Add(s.text)
	}
	list := allCommands()
	f.Fuzz(func(t *testing.T, text string) {
		c, rest := list.find(said(text))
		if shouted, _ := list.find(said("\t " + strings.ToUpper(text) + " ")); isASCII(text) && shouted != c {
			t.Errorf("%q is another command when it is shouted", text)
		}
		if c == nil {
			return
		}
		if lower := strings.ToLower(said(text)); !strings.HasPrefix(lower, strings.TrimSuffix(c.name, "s")) || !strings.HasSuffix(strings.TrimRight(said(text), ".!?"), strings.TrimRight(rest, ".!?")) && c.name != "approvals" {
			t.Errorf("%q is %s with %q", text, c.name, rest)
		}
		for _, other := range list {
			if other.name != c.name && other.shape.MatchString(said(text)) {
				t.Errorf("%q is %s and %s", text, c.name, other.name)
			}
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// TestEveryCommand says every command by a mention and after /deckhand, in several
// ways each, and what makes no sense to the slash command.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	const (
		elsewhere = "not in a thread"
		odd       = "not understood"
	)
	for _, c := range []struct{ text, mention, slash string }{
		{"help", "help", "help"},
		{"", "help", "help"},
		{"grants", "grants", "grants"},
		{"costs today", "costs", "costs"},
		{"costs last moth", odd, odd},
		{"approvals 7 days", "approvals", "approvals"},
		{"approvals 7 moons", "accepted", odd},
		{"stop", "nothing to stop", elsewhere},
		{"approve 7K2QX", "no such approval", elsewhere},
		{"approve", "accepted", odd},
		{"deny 7K2QX no", "no such approval", elsewhere},
		{"fix the test", "accepted", odd},
	} {
		for _, text := range []string{c.text, strings.ToUpper(c.text), "  " + strings.ReplaceAll(c.text, " ", "   ") + " \t"} {
			mention := m.event(object{"type": "app_mention", "user": slack.UserAda, "channel": slack.ChannelEngineering, "ts": m.ts(), "text": "<@" + slack.BotUser + "> " + text})
			if got := m.act(mention); got != c.mention {
				t.Errorf("mention %q: %q, want %q", text, got, c.mention)
			}
			slash := m.envelope("slash_commands", object{"team_id": slack.TeamID, "channel_id": slack.ChannelEngineering, "user_id": slack.UserAda, "command": "/deckhand", "text": text})
			if got := m.act(slash); got != c.slash {
				t.Errorf("/deckhand %q: %q, want %q", text, got, c.slash)
			}
		}
	}
}

// TestTheHelpTextIsTrue: what the help text says can be said.
func TestTheHelpTextIsTrue(t *testing.T) {
	t.Parallel()
	list := allCommands()
	for _, c := range list {
		for _, text := range append(c.help.Say, c.hint) {
			if text == "" {
				continue
			}
			if got, _ := list.find(strings.ReplaceAll(text, "CODE", "7K2QX")); got == nil || got.name != c.name {
				t.Errorf("%q is not the command %s", text, c.name)
			}
		}
		if c.inThread && c.hint != "" {
			t.Errorf("%s cannot be said after /deckhand, and its hint shows it", c.name)
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
		} `yaml:"features"`
	}
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	if got := manifest.Features.SlashCommands; len(got) != 1 || got[0].UsageHint != allCommands().hint() {
		t.Errorf("usage_hint is to be %q: %+v", allCommands().hint(), got)
	}
}

// TestREADMEShowsTheCommands: its table has every command, and none that is not.
func TestREADMEShowsTheCommands(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(raw), "### In Slack")
	table, _, _ = strings.Cut(table, "\n### ")
	list := allCommands()
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
			c, _ := list.find(strings.ReplaceAll(text, "CODE", "7K2QX"))
			if c == nil || slash && c.inThread {
				t.Errorf("README's %q is no command", quoted[1])
				continue
			}
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.name })
		}
	}
	if len(missing) > 0 {
		t.Errorf("README's table lacks %q", missing)
	}
}
