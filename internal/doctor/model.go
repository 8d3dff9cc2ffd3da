package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/beginning"
	"deckhand/internal/gateway"
	"deckhand/internal/scratch"
)

// model checks every project's way to the model, and the models' names. Projects with the same way share a finding.
func (d *Doctor) model(ctx context.Context) []Finding {
	const name = "model"
	if d.FileErr != nil {
		if _, err := gateway.Check(ctx, gateway.Provider{}, d.getenv); err != nil {
			return []Finding{{name, Warning, err.Error()}}
		}
		return []Finding{{name, OK, "there is a credential to reach it with"}}
	}
	alike := map[string][]string{} // projects by their way
	for _, project := range slices.Sorted(maps.Keys(d.File.Projects)) {
		p := d.File.Projects[project]
		key := fmt.Sprintf("%#v %v", p.Provider, p.Sandbox.HasSocket())
		if d.CallModel {
			key += " " + p.Model
		}
		alike[key] = append(alike[key], project)
	}
	all := slices.SortedFunc(maps.Values(alike), slices.Compare)
	found := make([]Finding, len(all))
	var looking errgroup.Group
	looking.SetLimit(atOnce)
	for i, projects := range all {
		looking.Go(func() error {
			found[i] = d.way(ctx, projects)
			return nil
		})
	}
	_ = looking.Wait() // they return no errors
	return slices.Concat(found, d.modelNames())
}

// way checks the way to the model of projects that share it.
func (d *Doctor) way(ctx context.Context, projects []string) Finding {
	p, who := d.File.Projects[projects[0]], strings.Join(projects, ", ")
	said, err := gateway.Check(ctx, p.Provider, d.getenv)
	if err == nil && !p.Sandbox.HasSocket() && d.Environment.GatewayListen == "" {
		err = gateway.ErrNoListener
	}
	if err == nil && d.CallModel {
		said, err = d.call(ctx, p, said)
	}
	if err != nil {
		return Finding{"model", Warning, fmt.Sprintf("%s: nothing can be done in %s, since the model is not reached: %v", d.File.Where("$.projects."+projects[0]+".provider"), who, err)}
	}
	return Finding{"model", OK, who + ": " + said}
}

// call calls the project's model once.
func (d *Doctor) call(ctx context.Context, p place.Project, who string) (string, error) {
	if d.CLIVersion == "" {
		return who + " (not called: it takes Claude Code)", nil
	}
	trial, err := gateway.Try(ctx, p.Provider, d.getenv, func(ctx context.Context, env []string) error { return d.ask(ctx, p, env) })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s answered in %d ms, for %d + %d tokens", who, trial.Model, trial.Took.Milliseconds(), trial.Input, trial.Output), nil
}

// ask makes the CLI ask its model something, in a folder of its own.
func (d *Doctor) ask(ctx context.Context, p place.Project, env []string) (err error) {
	folder, err := scratch.Make(scratch.Doctor)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	home := folder.Path
	words := append(d.Environment.Command(), "-p", "--setting-sources", "", "--strict-mcp-config", "--no-session-persistence")
	if model := p.Provider.Model(p.Model); model != "" {
		words = append(words, "--model", model)
	}
	out := beginning.Buffer{Most: mostSaid}
	status, signal, err := claude.Program{Command: append(words, "Hi"), Dir: home, Out: &out, Env: append(env, "PATH="+d.path(), "HOME="+home, "CLAUDE_CONFIG_DIR="+filepath.Join(home, ".claude"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=0")}.Run(ctx)
	if err == nil && (status != 0 || signal != 0) { // a refusal is the expected result
		err = fmt.Errorf("exit status %d, signal %d: %s", status, signal, out.String())
	}
	return err
}

// mostSaid bounds what is kept of the CLI's output, in bytes.
const mostSaid = 64 << 10

// modelNames checks the names of models in the file.
func (d *Doctor) modelNames() (out []Finding) {
	for _, m := range d.File.ModelNames() {
		out = append(out, knownModel(m)...)
	}
	return out
}

// getenv reads the examined environment, from which sessions get variables.
func (d *Doctor) getenv(name string) string {
	value, _ := d.lookupenv(name)
	return value
}

func (d *Doctor) lookupenv(name string) (value string, ok bool) {
	for _, entry := range d.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
