package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/price"
	"deckhand/internal/workspace"
)

// Efforts are how much people may have a model think, least first.
var Efforts = []string{"low", "medium", "high"}

// The modes that people may have a thread in: plan has it show a plan before it changes
// anything.
const (
	ModePlan    = "plan"
	ModeDefault = "default"
)

// steer has the process do its next turn as people want it in this thread. The model that
// the budgets want comes first. An error of the database's is no [*steerError].
func (s *session) steer(ctx context.Context, budgets string) error {
	want, err := s.store.Steering(ctx, s.threadID)
	if err != nil {
		return err
	}
	wrong := ""
	if want.Model != "" && !slices.Contains(s.project.Models, want.Model) {
		wrong = "The model " + want.Model + ", which was chosen here, is no longer among the models of this project, so the project's own is used."
		want.Model = ""
	}
	s.sayOnce(s.thread, &s.unsteered, wrong)
	if s.servers == nil {
		s.servers = want.MCPSeen // an earlier process's: what was said of them is not said again
	}
	if err := s.serversOff(ctx, want); err != nil {
		return &steerError{"Claude Code does not switch an MCP server off that is to be off here: " + strings.Join(want.MCPOff, ", ") + ". Nothing was begun. Send your message again; if it happens again, switch it on with “mcp on”.", err}
	}
	if err := s.useModel(ctx, cmp.Or(budgets, want.Model, s.project.Model)); err != nil {
		return err
	}
	if want.Effort != s.effort {
		if err := s.proc.SetEffort(ctx, want.Effort); err != nil {
			return &steerError{"Claude Code does not take the effort " + want.Effort + ". Choose another one with “effort”.", err}
		}
		s.effort = want.Effort
	}
	// A plan that was accepted has ended plan mode in the process by itself.
	mode := cmp.Or(want.Mode, s.project.PermissionMode, ModeDefault)
	if mode != s.mode || want.Mode != "" {
		if err := s.proc.SetPermissionMode(ctx, mode); err != nil {
			return &steerError{"Claude Code does not take the mode " + mode + ". Choose another one with “mode”.", err}
		}
		s.mode = mode
	}
	return nil
}

// effortNow is what the present process was told.
func (s *session) effortNow() string {
	if s == nil {
		return ""
	}
	return s.effort
}

// steerError is a choice that the process does not take. Its sentence is for people.
type steerError struct {
	sentence string
	err      error
}

func (e *steerError) Error() string { return "steer the session: " + e.err.Error() }
func (e *steerError) Unwrap() error { return e.err }

// useModel has the process answer with a model; empty is Claude Code's own choice.
func (s *session) useModel(ctx context.Context, model string) error {
	if s.model == model {
		return nil
	}
	name := cmp.Or(model, "default")
	if err := s.proc.SetModel(ctx, s.project.Provider.Model(name)); err != nil {
		sentence := "Claude Code does not take the model " + name + ". Choose another one with “model”, or ask an admin to check the models, and cheaper_model of the budgets, in deckhand.yaml."
		return &steerError{sentence, fmt.Errorf("switch to the model %s: %w", name, err)}
	}
	s.model = model
	return nil
}

// ModelChoice is a model that people may choose, with its price in micro-USD per million
// tokens; Priced is false where there is none.
type ModelChoice struct {
	Name          string
	Input, Output int64
	Priced        bool
}

// Models are those that people may choose in a project, its default first.
func (s *Supervisor) Models(project string) []ModelChoice {
	p := s.projects[project]
	out := make([]ModelChoice, len(p.Models))
	for i, name := range p.Models {
		out[i] = s.choice(p, name)
	}
	return out
}

// KeepsWork reports whether what a project's threads make is saved after each turn.
func (s *Supervisor) KeepsWork(project string) bool {
	return s.projects[project].Workspace == workspace.Worktree && s.works != nil
}

// CheckBranch says to people why a project's new threads cannot start from a branch; empty if they can.
func (s *Supervisor) CheckBranch(ctx context.Context, project, branch string) (refused string) {
	refused, err := s.projects[project].CheckBranch(ctx, branch)
	if err != nil {
		s.log.Warn("look for a branch", zap.String("project", project), zap.String("branch", branch), zap.Error(err))
	}
	return refused
}

func (s *Supervisor) choice(p place.Project, name string) ModelChoice {
	c := ModelChoice{Name: name, Priced: true}
	id := cmp.Or(p.Provider.Models[name], claude.ModelOf(name))
	for _, contract := range []price.Contract{p.Prices, s.prices} {
		if t, ok := contract.Of(id); ok {
			c.Input, c.Output = int64(t.Input)/1000, int64(t.Output)/1000
			return c
		}
	}
	m, known := price.Of(id)
	c.Input, c.Output, c.Priced = m.Input*1000, m.Output*1000, known
	return c
}

// KnowsModel reports whether a word is the name of a model, whatever a project allows.
func KnowsModel(word string) bool { return claude.KnowsModel(strings.ToLower(word)) }
