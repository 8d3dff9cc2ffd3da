package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/settings"
)

// policy warns of rules that together allow anything without a sandbox, and of rules that have no effect because of
// the sandbox or earlier rules.
func (d *Doctor) policy(context.Context) []Finding {
	const name = "policy"
	if d.FileErr != nil {
		return []Finding{{name, Skipped, "this check needs the configuration"}}
	}
	unbounded := map[string][]string{} // projects by the pair of rules
	for _, project := range slices.Sorted(maps.Keys(d.File.Projects)) {
		if d.File.Projects[project].Sandbox.Kind != sandbox.None {
			continue
		}
		for _, sum := range d.File.Policy.Sums(project) {
			unbounded[sum.String()] = append(unbounded[sum.String()], project)
		}
	}
	var out []Finding
	if len(unbounded) == 0 {
		out = append(out, Finding{name, OK, "where no sandbox bounds them, no two rules add up to anything"})
	}
	for _, rules := range slices.Sorted(maps.Keys(unbounded)) {
		out = append(out, Finding{name, Warning, rules + " add up to anything in " + strings.Join(unbounded[rules], ", ") +
			", without a sandbox (sandbox: none): what the one writes, the other runs as the bot's own user; narrow one of the two, or have a sandbox"})
	}
	unreached := map[string][]string{} // projects by the rule
	for _, project := range slices.Sorted(maps.Keys(d.File.Projects)) {
		for _, rule := range d.File.Unreached(project) {
			unreached[rule] = append(unreached[rule], project)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(unreached)) {
		out = append(out, Finding{name, Warning, rule + " can fetch nothing in " + strings.Join(unreached[rule], ", ") +
			", where the sandbox has no network; " + settings.ReachAdvice})
	}
	for _, doubt := range d.File.Doubts {
		out = append(out, Finding{name, Warning, doubt})
	}
	for _, rule := range d.File.Idle() {
		out = append(out, Finding{name, Warning, rule + " lets nothing be reached, since nobody is asked about hosts in any project where it holds; " + settings.AskAdvice})
	}
	return out
}
