package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/sandbox"
	"deckhand/internal/settings"
)

// sumLine is two rules that together allow anything in a project, in JSON: one allows writing what the other runs.
type sumLine struct {
	Project string   `json:"project,omitempty"` // empty in a file without projects
	Write   halfLine `json:"write"`
	Run     halfLine `json:"run"`
	// BoundedBy is the project's sandbox; empty if there is none.
	BoundedBy string `json:"bounded_by,omitempty"`

	text string
}

// halfLine is one of the two rules.
type halfLine struct {
	Patterns []string `json:"patterns"`
	Source   string   `json:"source"`
}

func newHalfLine(r policy.Rule, list []policy.Pattern) halfLine {
	h := halfLine{Source: r.Source}
	for _, p := range list {
		h.Patterns = append(h.Patterns, p.String())
	}
	return h
}

// newSumLines are such rules by project.
func newSumLines(c settings.File) []sumLine {
	out := []sumLine{}
	projects := slices.Sorted(maps.Keys(c.Projects))
	if len(projects) == 0 {
		projects = []string{""}
	}
	for _, name := range projects {
		bounded := ""
		if spec := c.Projects[name].Sandbox; name != "" && spec.Kind != sandbox.None {
			bounded = spec.String()
		}
		for _, s := range c.Policy.Sums(name) {
			out = append(out, sumLine{name, newHalfLine(s.Write, s.Writes), newHalfLine(s.Run, s.Runs), bounded, s.String()})
		}
	}
	return out
}

// explainSums names such rules, and the sandboxes that limit them.
func explainSums(out io.Writer, c settings.File) {
	lines := newSumLines(c)
	if len(lines) == 0 {
		return
	}
	warning := marksFor(out).warning
	fmt.Fprintln(out, "\nRules that add up to anything, because what the one writes the other runs:")
	told := map[string]bool{}
	for _, pair := range lines {
		if told[pair.text] {
			continue
		}
		told[pair.text] = true
		fmt.Fprintf(out, "     %s\n", pair.text)
		for _, l := range lines {
			switch {
			case l.text != pair.text:
			case l.BoundedBy != "":
				fmt.Fprintf(out, "       in %s its sandbox bounds them: %s\n", l.Project, l.BoundedBy)
			case l.Project == "":
				fmt.Fprintf(out, "     %s only a sandbox bounds them\n", warning)
			default:
				fmt.Fprintf(out, "     %s in %s nothing bounds them: narrow one of the two, or give the project a sandbox\n", warning, l.Project)
			}
		}
	}
}

// explainUnreached names the rules that cannot fetch anything without a network.
func explainUnreached(out io.Writer, c settings.File) {
	for _, name := range slices.Sorted(maps.Keys(c.Projects)) {
		for _, rule := range c.Unreached(name) {
			fmt.Fprintf(out, "\n%s %s can fetch nothing in %s: its sandbox has no network: %s\n", marksFor(out).warning, rule, name, settings.ReachAdvice)
		}
	}
}

// explainIdle names the rules for hosts without effect, since nobody is asked about hosts.
func explainIdle(out io.Writer, c settings.File) {
	for _, rule := range c.Idle() {
		fmt.Fprintf(out, "\n%s %s lets nothing be reached, since nobody is asked about hosts in any project where it holds: %s\n", marksFor(out).warning, rule, settings.AskAdvice)
	}
}

// widths describes unobvious effects of a rule's patterns.
func widths(r policy.Rule) []string {
	var lines []string
	if r.Verdict != policy.Allow {
		return nil
	}
	for _, p := range r.Patterns {
		if w := p.Width(); w != "" {
			lines = append(lines, strings.TrimSpace(p.String()+": "+w))
		}
	}
	return lines
}
