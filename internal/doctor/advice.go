package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/chat"
	"deckhand/internal/settings"
	"deckhand/internal/slackui"
	"deckhand/internal/spelling"
	"deckhand/internal/store"
	"deckhand/internal/workspace/gitdata"
)

const (
	// atOnce is how many questions to Slack and git run concurrently.
	atOnce = 4
	// mostReferences bounds the calls of Slack, which limits them per minute.
	mostReferences = 80
)

func knownModel(m settings.Reference) []Finding {
	if claude.KnowsModel(m.ID) {
		return nil
	}
	text := fmt.Sprintf("%s: %q is no model that is known here", m.Where, m.ID)
	if near := spelling.Nearest(m.ID, claude.KnownModels()); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	} else {
		text += "; correct it, unless it is newer than this binary"
	}
	return []Finding{{"model", Warning, text}}
}

func (d *Doctor) scopes(context.Context) []Finding {
	const name = "Slack's scopes"
	if d.Workspace == nil {
		return []Finding{{name, Skipped, "Slack did not accept the tokens"}}
	}
	missing, superfluous, known := d.Workspace.Scopes()
	if !known {
		return []Finding{{name, Skipped, "Slack did not tell them"}}
	}
	var out []Finding
	if len(missing) > 0 {
		out = append(out, Finding{name, Warning, "the bot token lacks " + strings.Join(missing, ", ") + "; add them to the app as in deploy/slack-manifest.yaml, and install it again"})
	}
	if len(superfluous) > 0 {
		out = append(out, Finding{name, Warning, "the bot token has " + strings.Join(superfluous, ", ") + ", which Deckhand does not use; remove them from the app as in deploy/slack-manifest.yaml, and install it again"})
	}
	if len(out) == 0 {
		out = []Finding{{name, OK, "all of deploy/slack-manifest.yaml, and no others"}}
	}
	return out
}

// features reports Slack's features for agents in this workspace. Missing ones have a fallback; only those that an
// admin can enable are a warning.
func (d *Doctor) features(ctx context.Context) []Finding {
	const name = "Slack's features"
	if d.Workspace == nil {
		return []Finding{{name, Skipped, "Slack did not accept the tokens"}}
	}
	found := d.Workspace.Features(ctx)
	if ctx.Err() != nil {
		return []Finding{{name, Skipped, "Slack did not tell them: " + context.Cause(ctx).Error()}}
	}
	out := []Finding{{name, OK, slackui.FeaturesLine(found)}}
	without := map[string][]string{} // by cure
	for _, f := range found {
		if f.Cure != "" {
			without[f.Cure] = append(without[f.Cure], f.Without)
		}
	}
	for _, cure := range slices.Sorted(maps.Keys(without)) {
		out = append(out, Finding{name, Warning, strings.Join(without[cure], ", ") + "; " + cure})
	}
	return out
}

// references looks up every channel, person and user group of the file in Slack.
func (d *Doctor) references(ctx context.Context) []Finding {
	const name = "channels and people"
	if d.Workspace == nil || d.FileErr != nil {
		return []Finding{{name, Skipped, "this check needs Slack and the configuration"}}
	}
	all := d.File.References()
	untold := max(0, len(all)-mostReferences)
	all = all[:len(all)-untold]
	found := make([]Finding, len(all))
	groups := sync.OnceValues(func() (map[string]slackui.UserGroup, error) { return d.Workspace.UserGroups(ctx) })
	var asking errgroup.Group
	asking.SetLimit(atOnce)
	for i, r := range all {
		asking.Go(func() error {
			problem, err := d.reference(ctx, r, groups)
			switch {
			case err != nil && ctx.Err() != nil:
				err = context.Cause(ctx)
				fallthrough
			case err != nil:
				found[i] = Finding{name, Warning, fmt.Sprintf("%s: %s could not be looked up (%v)", r.Where, r.ID, err)}
			case problem != "":
				found[i] = Finding{name, Warning, r.Where + ": " + problem}
			}
			return nil
		})
	}
	_ = asking.Wait() // they return no errors
	out := slices.DeleteFunc(found, func(f Finding) bool { return f.Status == "" })
	if slices.ContainsFunc(all, func(r settings.Reference) bool { return r.ID[0] == 'S' }) {
		if known, err := groups(); err == nil {
			for _, doubt := range d.File.Undecided(func(group string) []string { return known[group].Users }) {
				out = append(out, Finding{name, Warning, doubt})
			}
		}
	}
	if len(out) == 0 {
		out = []Finding{{name, OK, fmt.Sprintf("all %d that were looked up are there", len(all))}}
	}
	if untold > 0 {
		out = slices.Concat(out, []Finding{{name, Skipped, fmt.Sprintf("%d more were not looked up: Slack counts questions by the minute", untold)}})
	}
	return out
}

func (d *Doctor) reference(ctx context.Context, r settings.Reference, groups func() (map[string]slackui.UserGroup, error)) (problem string, err error) {
	switch r.ID[0] {
	case 'C', 'G':
		return d.Workspace.CheckChannel(ctx, r.ID)
	case 'S':
		all, err := groups()
		group, there := all[r.ID]
		switch {
		case err != nil:
			return "", err
		case !there:
			return "there is no user group " + r.ID + "; correct the id (it ends the group's link)", nil
		case !group.Enabled:
			return "the user group " + r.ID + " is disabled, so nobody is in it; enable it, or leave it out", nil
		}
		return "", nil
	}
	return d.Workspace.CheckUser(ctx, r.ID)
}

// bindings compares the channels that were set up in Slack with the configuration.
func (d *Doctor) bindings(ctx context.Context) []Finding {
	const name = "channels set up in Slack"
	if d.Workspace == nil || d.FileErr != nil {
		return []Finding{{name, Skipped, "this check needs Slack and the configuration"}}
	}
	s, err := store.Open(ctx, d.Environment.DatabaseURL, store.Options{})
	if err != nil {
		return []Finding{{name, Skipped, "this check needs the database"}}
	}
	defer s.Close()
	all, err := s.Bindings(ctx, d.Workspace.TeamID())
	if err != nil {
		return []Finding{{name, Skipped, "the database does not have them yet: bot run brings its schema up"}}
	}
	out := []Finding{}
	for _, line := range chat.Unwritten(all, d.File.Access, func(id string) string { return id }) {
		out = append(out, Finding{name, Warning, line})
	}
	if len(out) == 0 {
		out = []Finding{{name, OK, fmt.Sprintf("%d, and none that deckhand.yaml does not have", len(all))}}
	}
	return out
}

// projects checks folders, repositories and the variables passed on.
func (d *Doctor) projects(ctx context.Context) []Finding {
	const name = "projects"
	if d.FileErr != nil {
		return []Finding{{name, Skipped, "this check needs the configuration"}}
	}
	all := slices.Sorted(maps.Keys(d.File.Projects))
	found := make([][]Finding, len(all))
	var looking errgroup.Group
	looking.SetLimit(atOnce)
	for i, project := range all {
		looking.Go(func() error {
			p, at := d.File.Projects[project], "$.projects."+project
			warn := func(err error) {
				if err != nil {
					found[i] = append(found[i], Finding{name, Warning, fmt.Sprintf("%s: project %s: %v", d.File.Where(at), project, err)})
				}
			}
			err := p.Check(ctx, d.Environment.DataDir)
			warn(err)
			if _, lacks := errors.AsType[gitdata.NotFetchedError](err); lacks || err == nil {
				warn(p.CheckForge(ctx))
			}
			warn(p.CheckSigning())
			for n, v := range p.Env {
				if _, ok := d.lookupenv(v); !ok {
					found[i] = append(found[i], Finding{name, Warning, fmt.Sprintf("%s: project %s: the variable %s is not set, so the agent will not have it; set it, or leave it out", d.File.Where(fmt.Sprintf("%s.env[%d]", at, n)), project, v)})
				}
			}
			found[i] = append(found[i], d.servers(project)...)
			return nil
		})
	}
	_ = looking.Wait() // they return no errors
	out := slices.Concat(found...)
	if len(out) == 0 {
		return []Finding{{name, OK, strings.Join(all, ", ")}}
	}
	return out
}

// servers checks the variables in headers of the project's MCP servers.
func (d *Doctor) servers(project string) (out []Finding) {
	servers := d.File.Projects[project].MCPServers
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		headers := servers[server].Headers
		for _, header := range slices.Sorted(maps.Keys(headers)) {
			for _, variable := range place.Variables(headers[header]) {
				what := place.Unfit(d.getenv(variable))
				if what == "" {
					continue
				}
				at := d.File.Where("$.projects." + project + ".mcp_servers." + server + ".headers." + header)
				out = append(out, Finding{"projects", Warning, fmt.Sprintf("%s: nothing can be done in %s, since the MCP server %s takes %s in its header %s, which %s; set it, or leave the server out", at, project, server, variable, header, what)})
			}
		}
	}
	return out
}
