// Package doctor checks what the bot needs. `bot doctor` and `bot run` share its checks: what the bot cannot start
// without ([Doctor.Essentials]), and what else would keep it from working ([Doctor.Advice]).
//
// The checks run concurrently, each for a limited time and whatever the others find. They change nothing, and only
// count as calls for Slack. All goroutines end before the methods return.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"deckhand/internal/settings"
	"deckhand/internal/slackui"
)

// Status is a check's result.
type Status string

// The statuses.
const (
	OK Status = "ok"
	// Warning: the bot runs, and something will not work.
	Warning Status = "warning"
	// Failed: the bot does not start.
	Failed Status = "failed"
	// Skipped: it could not be checked because something else failed.
	Skipped Status = "skipped"
)

// Finding is a check's finding.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Text describes the state, and for a problem its place and cure.
	Text string `json:"text"`
}

// Setup is the bot's setup: both parts as far as they could be read, with their errors.
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

// Doctor checks one setup.
type Doctor struct {
	Setup
	// CallModel makes Advice call each project's model once, for one token, which costs less than a tenth of a
	// cent.
	CallModel bool
	// CLIVersion and Workspace are found by Essentials; else empty and nil.
	CLIVersion string
	Workspace  *slackui.Workspace
}

// New returns a doctor that has checked nothing yet.
func New(s Setup) *Doctor { return &Doctor{Setup: s} }

// check is a check. It returns nothing if ctx ends first.
type check struct {
	limit time.Duration
	run   func(ctx context.Context) []Finding
}

// Essentials checks what the bot cannot start without, and keeps what it found.
func (d *Doctor) Essentials(ctx context.Context) []Finding {
	return run(ctx, []check{
		{time.Second, d.environment},
		{time.Second, d.configuration},
		{10 * time.Second, d.place},
		{40 * time.Second, d.cli},
		{20 * time.Second, d.database},
		{40 * time.Second, d.slack},
	})
}

// Advice checks what else would keep the bot from working. It needs the results of Essentials, and reports what it
// skips without them.
func (d *Doctor) Advice(ctx context.Context) []Finding {
	return run(ctx, []check{
		{2 * time.Minute, d.model},
		{time.Second, d.scopes},
		{30 * time.Second, d.features},
		{time.Minute, d.references},
		{10 * time.Second, d.bindings},
		{30 * time.Second, d.projects},
		{30 * time.Second, d.sandboxes},
		{5 * time.Second, d.policy},
	})
}

// run runs checks concurrently and returns their findings in order.
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
	return slices.Concat(found...)
}

// problems turns an error, which may be joined, into findings.
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
