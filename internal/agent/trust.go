package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/tools"
	"deckhand/internal/agent/trust"
	"deckhand/internal/store/approvals"
)

// TrustStore keeps what admins trust of what repositories bring: [*store.Store], which tells what
// each method does.
type TrustStore interface {
	SeeTrust(ctx context.Context, t approvals.Trust, again bool) (asked bool, err error)
	Trusted(ctx context.Context, project string) ([]approvals.Trust, error)
}

// bringsLimit bounds a look at a repository.
const bringsLimit = 20 * time.Second

// withTrusted gives a project as its next process has it the agents and skills that are trusted.
// What of its repository is new is noted, and the thread is told: until an admin has decided, what
// was trusted before is used, or nothing.
func (w *worker) withTrusted(ctx context.Context, p *place.Project) {
	if w.trusts == nil || len(p.Trust) == 0 {
		return
	}
	asked, _, err := w.lookAtBrought(ctx, *p, false)
	if err != nil {
		w.log.Warn("look at what the repository brings", zap.Error(err))
	}
	if len(asked) > 0 {
		w.sayTo(ctx, w.thread.Key(), fmt.Sprintf("The repository brings %s that nobody has agreed to yet. Until an admin agrees, only what was trusted before is used. An admin writes “trust” here to see what is new, and decides.", strings.Join(asked, ", ")), p.Name)
	}
	agents, skills, err := w.trustedIn(ctx, p.Name, trust.Agents, trust.Skills)
	if err != nil {
		w.log.Warn("read what is trusted of the repository", zap.Error(err))
		return
	}
	p.Agents, p.Skills = map[string]claude.Agent{}, skills
	for _, e := range agents {
		a := claude.Agent{Description: e.Description, Prompt: e.Body}
		for _, name := range e.Tools {
			if policy.Offers(name) {
				a.Tools = append(a.Tools, name)
			}
		}
		if slices.Contains(p.Models, e.Model) {
			a.Model = p.Provider.Model(e.Model)
		}
		if len(e.Tools) > 0 && len(a.Tools) == 0 {
			continue // none would be all
		}
		p.Agents[policy.TrustedAgent+e.Name] = a
	}
}

// lookAtBrought notes what a project's repository brings. asked are the kinds that an admin has to
// decide about and had not before; left are the files that are not taken.
func (d *dependencies) lookAtBrought(ctx context.Context, p place.Project, fresh bool) (asked, left []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bringsLimit, fmt.Errorf("look at the repository: no end in %s", bringsLimit))
	defer cancel()
	var errs []error
	for _, kind := range p.Trust {
		files, not, err := d.brings(ctx, p, kind, fresh)
		isNew := false
		if err == nil {
			sum := trust.Sum(files)
			isNew, err = d.trusts.SeeTrust(ctx, approvals.Trust{Project: p.Name, Kind: kind, SHA256: sum[:], Files: files}, fresh)
			_, unusable := trust.Read(kind, files)
			left = append(append(left, not...), unusable...)
		}
		if isNew {
			asked = append(asked, kind)
		}
		errs = append(errs, err)
	}
	return asked, left, errors.Join(errs...)
}

// trustedIn are the agents of a project that are trusted, and its entries of other kinds.
func (d *dependencies) trustedIn(ctx context.Context, project string, kinds ...string) (agents, others []trust.Entry, err error) {
	p := d.projects[project]
	if d.trusts == nil || len(p.Trust) == 0 {
		return nil, nil, nil
	}
	all, err := d.trusts.Trusted(ctx, project)
	for _, t := range all {
		if t.Status != approvals.TrustGiven || !slices.Contains(p.Trust, t.Kind) || !slices.Contains(kinds, t.Kind) {
			continue
		}
		entries, _ := trust.Read(t.Kind, t.Files)
		if t.Kind == trust.Agents {
			agents = append(agents, entries...)
		} else {
			others = append(others, entries...)
		}
	}
	return agents, others, err
}

// TrustedCommands are a project's trusted commands and skills, which people use as commands. Of two
// with one name the command counts.
func (s *Supervisor) TrustedCommands(ctx context.Context, project string) ([]trust.Entry, error) {
	_, list, err := s.trustedIn(ctx, project, trust.Commands, trust.Skills)
	slices.SortStableFunc(list, func(a, b trust.Entry) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b trust.Entry) bool { return a.Name == b.Name }), err
}

// Brought looks at what a project's repository brings now, and returns what is trusted of it and
// what is pending, of the kinds that may be trusted, and the paths of what is not taken. There are
// no kinds if the project trusts nothing.
func (s *Supervisor) Brought(ctx context.Context, project string) (kinds []string, list []approvals.Trust, left []string, err error) {
	p := s.projects[project]
	if s.trusts == nil || len(p.Trust) == 0 {
		return nil, nil, nil, nil
	}
	if _, left, err = s.lookAtBrought(ctx, p, true); err != nil {
		return p.Trust, nil, nil, err
	}
	list, err = s.trusts.Trusted(ctx, project)
	return p.Trust, slices.DeleteFunc(list, func(t approvals.Trust) bool { return !slices.Contains(p.Trust, t.Kind) }), left, err
}

// skillTool hands the model the texts of trusted skills. Claude Code's own tool for them runs
// commands before anybody is asked.
func skillTool(skills []trust.Entry) tools.Tool {
	return tools.Tool{
		Name:        "skill",
		Description: "Read a skill of this repository: how its team does something. The system prompt lists them.",
		Schema:      `{"type":"object","properties":{"name":{"type":"string"},"args":{"type":"string"}},"required":["name"],"additionalProperties":false}`,
		Run: func(_ context.Context, c tools.Call) (string, error) {
			var in struct {
				Name string `json:"name"`
				Args string `json:"args"`
			}
			if err := tools.Read(c.Input, &in); err != nil {
				return "", err
			}
			for _, e := range skills {
				if e.Name == in.Name {
					return e.Expand(in.Args), nil
				}
			}
			return "", fmt.Errorf("there is no skill %q", in.Name)
		},
	}
}

// skillsMost bounds what the system prompt says of skills, in bytes, and skillMost of each.
const (
	skillsMost = 16 << 10
	skillMost  = 400
)

// skillList tells the model of skills; empty if there is none.
func skillList(skills []trust.Entry) string {
	if len(skills) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Skills of this repository. Before you do what one is for, read it by the tool skill of the server deckhand:")
	for i, e := range skills {
		line := "\n- " + e.Name + ": " + strings.ToValidUTF8(e.Description[:min(len(e.Description), skillMost)], "")
		if b.Len()+len(line) > skillsMost {
			fmt.Fprintf(&b, "\n%d more are in .claude/skills.", len(skills)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
