// Package doctor knows what the bot needs, and looks whether it is there. It has one
// list of checks, for `bot doctor` and for `bot run`: what the bot cannot start without
// ([Doctor.Essentials]), and what else would keep it from working ([Doctor.Advice]).
//
// The checks run side by side, each for a limited time, and all of them whatever the
// others find. They change nothing but what Slack counts as a call. The goroutines end
// before the methods return.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"deckhand/internal/settings"
	"deckhand/internal/slackui"
)

// Status is how a check ended.
type Status string

// The statuses.
const (
	OK Status = "ok"
	// Warning: the bot runs, and something will not work.
	Warning Status = "warning"
	// Failed: the bot does not start.
	Failed Status = "failed"
	// Skipped: it could not be looked at, because of what failed elsewhere.
	Skipped Status = "skipped"
)

// Finding is what a check found.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Text says what is so; of what is not right also where, and what to do.
	Text string `json:"text"`
}

// Setup is what the bot was given. Both parts come as they could be read, with the
// error that says what is wrong with them.
type Setup struct {
	Environment    settings.Environment
	EnvironmentErr error
	Environ        []string // NAME=value, to find misspelt names
	File           settings.File
	FileErr        error
}

// ReadSetup reads the environment and the configuration that it names.
func ReadSetup(environ []string) Setup {
	s := Setup{Environ: environ}
	s.Environment, s.EnvironmentErr = settings.ReadEnvironment()
	s.File, s.FileErr = settings.ReadFile(s.Environment.ConfigFile)
	return s
}

// Doctor examines one setup.
type Doctor struct {
	Setup
	// CallModel has Advice call each project's model once, for one token, which costs less
	// than a tenth of a cent.
	CallModel bool
	// CLIVersion and Workspace are what Essentials found; empty and nil if it did not.
	CLIVersion string
	Workspace  *slackui.Workspace
}

// New returns a doctor that has looked at nothing yet.
func New(s Setup) *Doctor { return &Doctor{Setup: s} }

// check looks at one thing. It says nothing if ctx ends before it has found out.
type check struct {
	name  string
	limit time.Duration
	run   func(ctx context.Context) []Finding
}

// Essentials looks at what the bot cannot start without. It fills in what it found.
func (d *Doctor) Essentials(ctx context.Context) []Finding {
	return run(ctx, []check{
		{"environment", time.Second, d.environment},
		{"configuration", time.Second, d.configuration},
		{"data folder and address", 10 * time.Second, d.place},
		{"Claude Code", 40 * time.Second, d.cli},
		{"database", 20 * time.Second, d.database},
		{"Slack", 40 * time.Second, d.slack},
	})
}

// Advice looks at what else would keep the bot from working. It needs what Essentials
// found, and says what it skips without it.
func (d *Doctor) Advice(ctx context.Context) []Finding {
	return run(ctx, []check{
		{"model", 2 * time.Minute, d.model},
		{"Slack's scopes", time.Second, d.scopes},
		{"Slack's features", 30 * time.Second, d.features},
		{"channels and people", time.Minute, d.references},
		{"projects", 30 * time.Second, d.projects},
		{"sandboxes", 30 * time.Second, d.sandboxes},
		{"policy", 5 * time.Second, d.policy},
	})
}

// run runs checks side by side and returns what they found in their order.
func run(ctx context.Context, checks []check) []Finding {
	found := make([][]Finding, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("no answer in %s", c.limit))
			defer cancel()
			found[i] = c.run(ctx)
		})
	}
	running.Wait()
	var out []Finding
	for _, f := range found {
		out = append(out, f...)
	}
	return out
}

// problems are the findings of an error that may be several.
func problems(check string, err error) []Finding {
	lines := []string{err.Error()}
	if several, ok := errors.AsType[settings.Problems](err); ok {
		lines = several
	}
	var out []Finding
	for _, l := range lines {
		out = append(out, Finding{check, Failed, l})
	}
	return out
}
