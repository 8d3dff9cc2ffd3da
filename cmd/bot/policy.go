package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"deckhand/internal/agent/policy"
	"deckhand/internal/settings"
	"deckhand/internal/store"
)

const policyUsage = `usage: bot policy check [--config FILE] [--tool NAME --input JSON] [--project NAME] [--channel ID] [--workspace DIR]
       bot policy test  [--config FILE] [--since 30d] [--all]

check reads the file and explains it rule by rule; with --tool and --input it says
what would become of that call, and why. For a command, --tool Bash --input
'git push' will do. test replays the recorded tool calls since then against the
file, and shows which would be decided otherwise; --all lists every one of them.
It changes nothing. DATABASE_URL names the database.

The file is DECKHAND_CONFIG (deckhand.yaml) unless --config names another.`

func policyCommand(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("policy", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprintln(f.Output(), policyUsage) }
	what := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		what, args = args[0], args[1:]
	}
	file := cmp.Or(os.Getenv("DECKHAND_CONFIG"), settings.DefaultFile)
	f.StringVar(&file, "config", file, "")
	var c policy.Call
	f.StringVar(&c.Tool, "tool", "", "")
	input := f.String("input", "", "")
	f.StringVar(&c.Project, "project", "", "")
	f.StringVar(&c.Channel, "channel", "", "")
	f.StringVar(&c.Workspace, "workspace", "", "")
	since := f.String("since", "30d", "")
	all := f.Bool("all", false, "")
	if err := parseFlags(f, args, out, 0); err != nil {
		return err
	}
	if what != "check" && what != "test" {
		return fmt.Errorf("write bot policy check or bot policy test: %w", errUsage)
	}
	cfg, err := settings.ReadFile(file)
	if err != nil {
		return err
	}
	if what == "test" {
		from, err := parseTime("--since", *since)
		if err != nil {
			return err
		}
		return policyTest(ctx, out, cfg, from, *all)
	}
	if c.Tool == "" {
		explainPolicy(out, cfg)
		return nil
	}
	return explainCall(out, cfg, c, *input)
}

// explainPolicy says what the file means, rule by rule.
func explainPolicy(out io.Writer, c settings.File) {
	p := c.Policy
	fmt.Fprintf(out, "%s: %d rule(s). The first that fits a call decides; of a shell command every part is decided, and the strictest verdict holds.\n\n", c.Name, len(p.Rules))
	for i, r := range p.Rules {
		fmt.Fprintf(out, "%3d  %s\n", i+1, r)
		for _, line := range explainRule(c, r) {
			fmt.Fprintf(out, "     %s\n", line)
		}
		fmt.Fprintf(out, "     (%s)\n", r.Source)
	}
	fmt.Fprintln(out, "\nWhat no rule decides: reading inside the workspace (but for files that look like secrets) and the agent's own")
	fmt.Fprintln(out, "bookkeeping are allowed. Everything else is asked.")
	fmt.Fprintf(out, "\nA question that no rule says otherwise of:\n     %s\n", strings.Join(explainTerms(p.Default, p.Default), "\n     "))
	for _, r := range c.Reminders {
		fmt.Fprintf(out, "     after %s without a decision, a reminder to %s\n", r.After, strings.Join(r.To, ", "))
	}
}

func explainRule(c settings.File, r policy.Rule) []string {
	var lines []string
	if len(r.Projects) > 0 {
		lines = append(lines, "in the projects "+strings.Join(r.Projects, ", "))
	}
	if len(r.Channels) > 0 {
		lines = append(lines, "in the channels "+strings.Join(r.Channels, ", "))
	}
	if r.Because != "" {
		lines = append(lines, "because "+r.Because)
	}
	if r.Verdict == policy.Ask {
		lines = append(lines, explainTerms(r.Terms(c.Policy.Default), c.Policy.Default)...)
	}
	return lines
}

// explainTerms says how a question is decided; of terms that are those of every
// question it says nothing twice.
func explainTerms(t, common policy.Terms) []string {
	var lines []string
	whole := reflect.DeepEqual(t, common)
	if whole || len(t.Approvers) > 0 {
		who := "those with the role of an approver"
		if len(t.Approvers) > 0 {
			who = strings.Join(t.Approvers, ", ") + ", and nobody else"
		}
		lines = append(lines, "decided by "+who)
	}
	if whole || t.Quorum != common.Quorum {
		lines = append(lines, fmt.Sprintf("%d must allow it, one denial is enough", max(t.Quorum, 1)))
	}
	if whole || t.RequesterMayApprove != common.RequesterMayApprove {
		may := "may"
		if !t.RequesterMayApprove {
			may = "may not"
		}
		lines = append(lines, "the person who asked for the work "+may+" decide")
	}
	if whole || t.Timeout != common.Timeout || t.OnTimeout != common.OnTimeout {
		then := "the turn is paused"
		if t.OnTimeout == policy.DenyOnTimeout {
			then = "it counts as not allowed"
		}
		timeout := t.Timeout
		if timeout == 0 {
			timeout = policy.DefaultTimeout
		}
		lines = append(lines, fmt.Sprintf("after %s without a decision %s", timeout, then))
	}
	if t.Dangerous {
		lines = append(lines, "dangerous: allowing it takes a second confirmation")
	}
	return lines
}

// explainCall says what becomes of one call.
func explainCall(out io.Writer, cfg settings.File, c policy.Call, input string) error {
	if c.Project != "" {
		if _, ok := cfg.Projects[c.Project]; !ok {
			return fmt.Errorf("--project: there is no project %q in %s: %w", c.Project, cfg.Name, errUsage)
		}
	}
	if c.Workspace == "" {
		if c.Workspace = cfg.Projects[c.Project].Dir; c.Workspace == "" {
			var err error
			if c.Workspace, err = os.Getwd(); err != nil {
				return err
			}
		}
	}
	if c.Input = json.RawMessage(input); !strings.HasPrefix(strings.TrimSpace(input), "{") {
		field, ok := map[string]string{"Bash": "command", "WebFetch": "url"}[c.Tool]
		if !ok {
			field = "file_path"
		}
		b, err := json.Marshal(map[string]string{field: input})
		if err != nil {
			return err
		}
		c.Input = b
	}
	d := cfg.Policy.Decide(c)
	fmt.Fprintf(out, "%s: %s\n", d.Verdict, d.Rule)
	if d.Source != "" {
		fmt.Fprintf(out, "  (%s)\n", d.Source)
	}
	if d.Why != "" {
		fmt.Fprintf(out, "  %s\n", graphic(d.Why))
	}
	if d.Verdict == policy.Ask {
		for _, line := range explainTerms(d.Terms, d.Terms) {
			fmt.Fprintf(out, "  %s\n", line)
		}
		for _, risk := range policy.Assess(c) {
			fmt.Fprintf(out, "  ⚠ %s\n", risk)
		}
		if d.Grantable {
			for _, s := range policy.Suggest(c) {
				fmt.Fprintf(out, "  a person may allow from then on: %s  (%s)\n", s.Pattern, s.Sentence)
			}
		}
	}
	return nil
}

// policyExamples is how many calls of each change are listed.
const policyExamples = 5

// policyTest replays recorded calls and shows what would change.
func policyTest(ctx context.Context, out io.Writer, cfg settings.File, since time.Time, all bool) error {
	s, err := openStore(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	p := cfg.Policy
	type change struct {
		count    int
		examples []string
	}
	changes, calls, same := map[string]*change{}, 0, 0
	err = s.RecordedCalls(ctx, since, func(r store.RecordedCall) error {
		calls++
		d := p.Decide(policy.Call{Tool: r.ToolName, Input: r.Input, Workspace: r.Workspace, Project: r.Project, Channel: r.ChannelID})
		if string(d.Verdict) == r.Verdict {
			same++
			return nil
		}
		key := r.Verdict + " → " + string(d.Verdict)
		ch := changes[key]
		if ch == nil {
			ch = &change{}
			changes[key] = ch
		}
		ch.count++
		if all || len(ch.examples) < policyExamples {
			ch.examples = append(ch.examples, fmt.Sprintf("%s  %s  %s\n      was: %s\n      now: %s", r.At.UTC().Format(time.DateTime), graphic(r.ToolName), brief(r.Input), graphic(r.Rule), graphic(d.Rule+"  "+d.Why)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d recorded call(s) since %s: %d decided as before, %d otherwise\n", calls, since.UTC().Format(time.DateTime), same, calls-same)
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		ch := changes[key]
		fmt.Fprintf(out, "\n%s: %d\n", key, ch.count)
		for _, e := range ch.examples {
			fmt.Fprintf(out, "    %s\n", e)
		}
		if n := ch.count - len(ch.examples); n > 0 {
			fmt.Fprintf(out, "    … and %d more: --all lists them\n", n)
		}
	}
	return nil
}

// brief is what matters of an input, on one line.
func brief(input json.RawMessage) string {
	var in map[string]any
	if json.Unmarshal(input, &in) == nil {
		for _, field := range []string{"command", "file_path", "notebook_path", "url", "path", "pattern", "query"} {
			if s, ok := in[field].(string); ok {
				input = json.RawMessage(s)
				break
			}
		}
	}
	line := []rune(graphic(string(input)))
	if len(line) > 160 {
		line = append(line[:160], '…')
	}
	return string(line)
}

// graphic is a text on one line without anything that a terminal would obey: what
// the model wrote is shown here.
func graphic(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}
