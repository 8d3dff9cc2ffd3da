package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
)

// sandboxes tries every project's sandbox, and checks that the programs of the bot's PATH are visible in it.
// Projects with the same one share a finding.
func (d *Doctor) sandboxes(ctx context.Context) []Finding {
	const name = "sandboxes"
	if d.FileErr != nil {
		return []Finding{{name, Skipped, "this check needs the configuration"}}
	}
	alike := map[string][]string{} // projects by their sandbox's key
	for _, project := range slices.Sorted(maps.Keys(d.File.Projects)) {
		key := fmt.Sprintf("%#v", d.File.Projects[project].Sandbox)
		alike[key] = append(alike[key], project)
	}
	out := []Finding{{name, OK, sandbox.Here()}}
	for _, projects := range slices.SortedFunc(maps.Values(alike), slices.Compare) {
		p := d.File.Projects[projects[0]]
		who, where := strings.Join(projects, ", "), d.File.Where("$.projects."+projects[0]+".sandbox")
		inForce, err := p.CheckSandbox(ctx)
		if err != nil {
			out = append(out, Finding{name, Warning, fmt.Sprintf("%s: nothing runs in %s, since the sandbox does not work: %v", where, who, err)})
			continue
		}
		wall, err := p.Wall(ctx)
		if err != nil {
			out = append(out, Finding{name, Warning, fmt.Sprintf("%s: what shuts the sessions of %s in could not be seen: %v", where, who, err)})
			continue
		}
		if wall != "" {
			wall = ". Seen inside: " + wall
		}
		out = append(out, Finding{name, OK, who + ": " + inForce + wall})
		for _, project := range projects {
			if p := d.File.Projects[project]; p.Preview.Run != "" {
				if err := p.CheckPreview(ctx); err != nil {
					out = append(out, Finding{name, Warning, fmt.Sprintf("%s: no page of %s can be seen: %v", d.File.Where("$.projects."+project+".preview"), project, err)})
				}
			}
		}
		if unseen := sandbox.Unseen(p.Sandbox, d.path()); len(unseen) > 0 {
			out = append(out, Finding{name, Warning, fmt.Sprintf(
				"%s: the programs of %s are in the bot's PATH and not seen in the sandbox of %s; name what they need under sandbox.see, or take the folder out of PATH",
				where, strings.Join(unseen, ", "), who)})
		}
	}
	return append(out, d.contained()...)
}

// contained describes the sandbox of projects with a contained posture.
func (d *Doctor) contained() []Finding {
	by := map[sandbox.Kind][]string{}
	for _, project := range slices.Sorted(maps.Keys(d.File.Projects)) {
		if d.File.Contained(project) {
			kind := cmp.Or(d.File.Projects[project].Sandbox.Kind, sandbox.Bwrap)
			by[kind] = append(by[kind], project)
		}
	}
	var out []Finding
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		kernel := "this machine's kernel: a hole in either is a way out, so keep both up to date"
		if kind == sandbox.GVisor {
			kernel = "gVisor's kernel: a hole in it is half a way out, so keep it up to date"
		}
		out = append(out, Finding{"sandboxes", OK, "posture: contained in " + strings.Join(by[kind], ", ") + " rests on " + string(kind) + " and " + kernel +
			". What leaves passes the bot's gateway, which asks"})
	}
	return out
}

// path is the bot's PATH.
func (d *Doctor) path() string { return d.getenv("PATH") }
