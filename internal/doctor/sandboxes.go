package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
)

// sandboxes tries the sandbox of every project, and looks whether the programs of the
// bot's PATH are seen in it. Projects with the same one are told of together.
func (d *Doctor) sandboxes(ctx context.Context) []Finding {
	const name = "sandboxes"
	if d.FileErr != nil {
		return []Finding{{name, Skipped, "it takes the configuration"}}
	}
	alike := map[string][]string{} // projects by their sandbox's key
	for _, project := range slices.Sorted(maps.Keys(d.File.Projects)) {
		key := fmt.Sprintf("%#v", d.File.Projects[project].Sandbox)
		alike[key] = append(alike[key], project)
	}
	var out []Finding
	for _, projects := range slices.SortedFunc(maps.Values(alike), slices.Compare) {
		p := d.File.Projects[projects[0]]
		who, where := strings.Join(projects, ", "), d.File.Where("$.projects."+projects[0]+".sandbox")
		inForce, err := p.CheckSandbox(ctx)
		if err != nil {
			out = append(out, Finding{name, Warning, fmt.Sprintf("%s: nothing runs in %s, since the sandbox does not work: %v", where, who, err)})
			continue
		}
		out = append(out, Finding{name, OK, who + ": " + inForce})
		if unseen := sandbox.Unseen(p.Sandbox, d.path()); len(unseen) > 0 {
			out = append(out, Finding{name, Warning, fmt.Sprintf(
				"%s: the programs of %s are in the bot's PATH and not seen in the sandbox of %s; name what they need under sandbox.see, or take the folder out of PATH",
				where, strings.Join(unseen, ", "), who)})
		}
	}
	return out
}

// path is the bot's PATH.
func (d *Doctor) path() string { return d.getenv("PATH") }
