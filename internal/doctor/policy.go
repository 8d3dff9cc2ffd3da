package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
)

// policy warns of rules that add up to anything where no sandbox bounds them.
func (d *Doctor) policy(context.Context) []Finding {
	const name = "policy"
	if d.FileErr != nil {
		return []Finding{{name, Skipped, "it takes the configuration"}}
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
	if len(unbounded) == 0 {
		return []Finding{{name, OK, "where no sandbox bounds them, no two rules add up to anything"}}
	}
	var out []Finding
	for _, rules := range slices.Sorted(maps.Keys(unbounded)) {
		out = append(out, Finding{name, Warning, rules + " add up to anything in " + strings.Join(unbounded[rules], ", ") +
			", without a sandbox (sandbox: none): what the one writes, the other runs as the bot's own user; narrow one of the two, or have a sandbox"})
	}
	return out
}
