package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/agent/policy"
	"deckhand/internal/settings"
)

func policyCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and explain its policy, rule by rule",
		Long: `Checks the configuration and explains its policy, rule by rule: also which patterns
are wider or narrower than they look, which are reached by no call, which rules
together allow anything, and what bounds them. With --tool and --input it says what would become of that call,
and why.`,
		Example: `  bot policy check
  bot policy check --project web --tool Bash --input 'git push --force'
  bot policy check --tool SandboxNetworkAccess --input registry.npmjs.org:443
  bot policy check --tool Edit --input docs/x.md --json`,
		Args: knownCommand,
	}
	file, asJSON, posture := configFlag(c), jsonFlag(c), postureFlag(c)
	var call policy.Call
	c.Flags().StringVar(&call.Tool, "tool", "", "a call's tool, such as Bash")
	input := c.Flags().String("input", "", "its input as JSON, or a command, file, address or host alone")
	c.Flags().StringVar(&call.Project, "project", "", "the project that it is made in")
	c.Flags().StringVar(&call.Channel, "channel", "", "the channel's id")
	c.Flags().StringVar(&call.Workspace, "workspace", "", "the folder (default: the project's, else this one)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if call.Tool == "" {
			for _, needless := range []string{"input", "project", "channel", "workspace"} {
				if c.Flags().Changed(needless) {
					return fmt.Errorf("--%s is about a call: name its tool with --tool: %w", needless, errUsage)
				}
			}
		}
		cfg, err := settings.ReadFile(configFile(*file))
		if err != nil {
			return err
		}
		if err := usePosture(&cfg, *posture); err != nil {
			return err
		}
		if call.Tool == "" {
			if *asJSON {
				return writeJSON(c, newPolicyLines(cfg))
			}
			explainPolicy(c.OutOrStdout(), cfg)
			return nil
		}
		if err := completeCall(cfg, &call, *input); err != nil {
			return err
		}
		d := newDecision(&cfg, call)
		if *asJSON {
			return writeJSON(c, d)
		}
		d.explain(c.OutOrStdout())
		return nil
	}
	return c
}

// policyLines is the policy in JSON.
type policyLines struct {
	File  string     `json:"file"`
	Rules []ruleLine `json:"rules"`
	// Postures are by project and, where a channel has its own, by project and channel.
	Postures []postureLine `json:"postures"`
	Sums     []sumLine     `json:"rules_that_add_up"`
	// Unreached are, by project, the rules that cannot fetch anything without a network.
	Unreached map[string][]string `json:"unreached,omitempty"`
	// Idle are the rules for hosts that apply in no project which asks about hosts.
	Idle []string `json:"idle,omitempty"`
	// Doubts are parts without effect, or that may leave somebody waiting.
	Doubts    []string       `json:"doubts,omitempty"`
	Default   termsLine      `json:"default"`
	Reminders []reminderLine `json:"reminders"`
}

type ruleLine struct {
	Verdict  policy.Verdict `json:"verdict"`
	Patterns []string       `json:"patterns"`
	Projects []string       `json:"projects,omitempty"`
	Channels []string       `json:"channels,omitempty"`
	Because  string         `json:"because,omitempty"`
	Terms    *termsLine     `json:"terms,omitempty"` // of a rule that asks
	Notes    []string       `json:"notes,omitempty"` // on patterns that are wider or narrower than they look
	Source   string         `json:"source"`
}

// termsLine are the terms of a question. Without approvers, those with the role decide.
type termsLine struct {
	Approvers           []string         `json:"approvers"`
	Quorum              int              `json:"quorum"`
	RequesterMayApprove bool             `json:"requester_may_approve"`
	TimeoutSeconds      int64            `json:"timeout_seconds"`
	OnTimeout           policy.OnTimeout `json:"on_timeout"`
	Dangerous           bool             `json:"dangerous"`
	Edit                bool             `json:"edit"`
}

type reminderLine struct {
	AfterSeconds int64    `json:"after_seconds"`
	To           []string `json:"to"`
}

func newTermsLine(t policy.Terms) *termsLine {
	return &termsLine{
		Approvers: append([]string{}, t.Approvers...), Quorum: max(t.Quorum, 1), RequesterMayApprove: t.RequesterMayApprove,
		TimeoutSeconds: int64(cmp.Or(t.Timeout, policy.DefaultTimeout) / time.Second), OnTimeout: cmp.Or(t.OnTimeout, policy.Pause), Dangerous: t.Dangerous, Edit: !t.Fixed,
	}
}

func newPolicyLines(c settings.File) policyLines {
	out := policyLines{File: c.Name, Rules: []ruleLine{}, Postures: newPostureLines(c), Sums: newSumLines(c), Unreached: map[string][]string{}, Idle: c.Idle(), Doubts: c.Doubts, Default: *newTermsLine(c.Policy.Default), Reminders: []reminderLine{}}
	for _, r := range c.Policy.Rules {
		l := ruleLine{Verdict: r.Verdict, Patterns: []string{}, Projects: r.Projects, Channels: r.Channels, Because: r.Because, Notes: widths(r), Source: r.Source}
		for _, p := range r.Patterns {
			l.Patterns = append(l.Patterns, p.String())
		}
		if r.Verdict == policy.Ask {
			l.Terms = newTermsLine(r.Terms(c.Policy.Default))
		}
		out.Rules = append(out.Rules, l)
	}
	for name := range c.Projects {
		if rules := c.Unreached(name); len(rules) > 0 {
			out.Unreached[name] = rules
		}
	}
	for _, r := range c.Reminders {
		out.Reminders = append(out.Reminders, reminderLine{int64(r.After / time.Second), r.To})
	}
	return out
}

// explainPolicy explains the file rule by rule.
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
	explainPostures(out, c)
	explainSums(out, c)
	explainUnreached(out, c)
	explainIdle(out, c)
	for _, doubt := range c.Doubts {
		fmt.Fprintf(out, "\n%s %s\n", marksFor(out).warning, doubt)
	}
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
	lines = append(lines, widths(r)...)
	if r.Verdict == policy.Ask {
		lines = append(lines, explainTerms(r.Terms(c.Policy.Default), c.Policy.Default)...)
	}
	return lines
}

// explainTerms explains the terms of a question, except those common to all.
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
		lines = append(lines, fmt.Sprintf("after %s without a decision %s", cmp.Or(t.Timeout, policy.DefaultTimeout), then))
	}
	if t.Dangerous {
		lines = append(lines, "dangerous: allowing it takes a second confirmation")
	}
	if t.Fixed {
		lines = append(lines, "whoever decides may not change it")
	}
	return lines
}

// completeCall fills in what the command line left out.
func completeCall(cfg settings.File, c *policy.Call, input string) error {
	if _, ok := cfg.Projects[c.Project]; c.Project != "" && !ok {
		return fmt.Errorf("--project: there is no project %q in %s%s: %w", c.Project, cfg.Name, didYouMean("", c.Project, slices.Sorted(maps.Keys(cfg.Projects))), errUsage)
	}
	if c.Workspace == "" {
		if c.Workspace = cfg.Projects[c.Project].Dir; c.Workspace == "" {
			var err error
			if c.Workspace, err = os.Getwd(); err != nil {
				return err
			}
		}
	}
	if c.Input = json.RawMessage(input); strings.HasPrefix(strings.TrimSpace(input), "{") {
		return nil
	}
	if c.Tool == policy.NetworkTool {
		var err error
		c.Input, err = hostInput(input)
		return err
	}
	field, ok := map[string]string{
		"Bash": "command", "Monitor": "command", "PowerShell": "command", "WebFetch": "url", "WebSearch": "query", "Glob": "pattern", "Grep": "path", "NotebookEdit": "notebook_path",
	}[c.Tool]
	if !ok {
		field = "file_path"
	}
	b, err := json.Marshal(map[string]string{field: input})
	c.Input = b
	return err
}

// hostInput parses a host with its port, 443 by default, into the gateway's form.
func hostInput(input string) (json.RawMessage, error) {
	host, digits, err := net.SplitHostPort(input)
	if err != nil {
		host, digits = strings.Trim(input, "[]"), "443"
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("--input: %q is no host with a port; write one such as go.dev:443: %w", input, errUsage)
	}
	return policy.NetworkInput(strings.ToLower(host), uint16(port)), nil
}

// decision is the decision about a call, in JSON.
type decision struct {
	Verdict   policy.Verdict `json:"verdict"`
	Rule      string         `json:"rule"`
	Source    string         `json:"source,omitempty"`
	Why       string         `json:"why,omitempty"`
	Posture   string         `json:"posture"` // its part in the verdict
	Push      bool           `json:"push,omitempty"`
	Terms     *termsLine     `json:"terms,omitempty"` // of a call that is asked
	Risks     []policy.Risk  `json:"risks,omitempty"`
	Grantable []grantLine    `json:"grantable,omitempty"`

	terms policy.Terms
}

// grantLine is a permission that a person may give.
type grantLine struct {
	Pattern  string `json:"pattern"`
	Sentence string `json:"sentence"`
}

func newDecision(cfg *settings.File, c policy.Call) decision {
	d := decide(cfg, c)
	out := decision{Verdict: d.Verdict, Rule: d.Rule, Source: d.Source, Why: graphic(d.Why), Posture: posturePart(cfg, c, d), terms: d.Terms}
	out.Push, _ = policy.Pushes(c)
	if d.Verdict != policy.Ask {
		return out
	}
	out.Terms, out.Risks = newTermsLine(d.Terms), policy.Assess(c)
	if d.Grantable {
		for _, s := range policy.Suggest(c) {
			out.Grantable = append(out.Grantable, grantLine{fmt.Sprint(s.Pattern), s.Sentence})
		}
	}
	return out
}

func (d decision) explain(out io.Writer) {
	fmt.Fprintf(out, "%s: %s\n", d.Verdict, d.Rule)
	if d.Source != "" {
		fmt.Fprintf(out, "  (%s)\n", d.Source)
	}
	if d.Why != "" {
		fmt.Fprintf(out, "  %s\n", d.Why)
	}
	if d.Push {
		fmt.Fprintln(out, "  it is a push: the verdict is about what leaves the sandbox")
	}
	fmt.Fprintf(out, "  posture: %s\n", d.Posture)
	if d.Terms == nil {
		return
	}
	for _, line := range explainTerms(d.terms, d.terms) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	for _, risk := range d.Risks {
		fmt.Fprintf(out, "  ⚠ %s\n", risk)
	}
	for _, g := range d.Grantable {
		fmt.Fprintf(out, "  a person may allow from then on: %s  (%s)\n", g.Pattern, g.Sentence)
	}
}
