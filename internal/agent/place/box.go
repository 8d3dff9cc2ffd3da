package place

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/sandbox"
	"deckhand/internal/scratch"
	"deckhand/internal/store/threads"
	"deckhand/internal/workspace"
	"deckhand/internal/workspace/gitdata"
)

// CheckSandbox tries the project's sandbox. It returns what its sessions are shut in, for
// people, or why they cannot be and what to do.
func (p Project) CheckSandbox(ctx context.Context) (inForce string, err error) {
	s, err := sandbox.New(p.Sandbox)
	if err != nil {
		return "", err
	}
	return s.String(), s.Check(ctx, tryRun)
}

// Wall says for people what the project's sessions are seen to be shut in by.
func (p Project) Wall(ctx context.Context) (string, error) { return p.Sandbox.Wall(ctx, tryRun) }

// tryRun runs what a sandbox is tried with below a reaper: a bot that is killed leaves none
// of it.
func tryRun(ctx context.Context, p sandbox.Program) (status, signal int, err error) {
	return claude.Program{Command: p.Command, Env: p.Env, Dir: p.Dir, In: p.In, Out: p.Out, Err: p.Err}.Run(ctx)
}

// SweepSandboxes removes what an earlier run of the replica has left of its sandboxes,
// such as containers and folders. Nothing of it may run any more.
func SweepSandboxes(ctx context.Context, r *Replica, projects map[string]Project) error {
	errs := []error{scratch.Sweep()}
	for _, p := range projects {
		s, err := sandbox.New(p.Sandbox)
		if err != nil {
			continue // it has left nothing, and its project is told why
		}
		if sweeper, ok := s.(sandbox.Sweeper); ok {
			if err := sweeper.Sweep(ctx, r.ID); err != nil {
				errs = append(errs, &needError{needSandbox, p.Name, err})
			}
		}
	}
	return errors.Join(errs...)
}

// cell is the prepared sandbox of one process, with its ways to the model and to the web.
type cell struct {
	*sandbox.Box
	way *gateway.Session
	web *egress.Session // nil where there is none
	git *gitway.Session // nil where there is none
}

// Close ends the ways out and removes the sandbox.
func (c *cell) Close() error {
	c.cut()
	return c.Box.Close()
}

// cut ends the ways out.
func (c *cell) cut() {
	c.git.Close() // its socket is in the folder of the other's
	if c.web != nil {
		c.web.Close()
	}
	c.way.Close()
}

// box prepares the sandbox of the thread's next process. It is tried before the first
// process of a project and again after one that did not start: without a sandbox that
// works nothing runs.
func (h *Host) box(ctx context.Context, t threads.Thread, p Project, program []string, calls gateway.Meter) (*cell, error) {
	s, err := sandbox.New(p.Sandbox)
	if err != nil {
		return nil, &needError{needSandbox, p.Name, err}
	}
	if _, sound := h.sound.Load(p.Name); !sound {
		if err := s.Check(ctx, tryRun); err != nil {
			return nil, &needError{needSandbox, p.Name, err}
		}
		h.sound.Store(p.Name, true)
	}
	bash, err := bashOf(p.Sandbox.Kind)
	if err != nil {
		return nil, err
	}
	borrowed, settings, err := h.repositories(ctx, t, p)
	if err != nil {
		return nil, err
	}
	session := sandbox.Session{
		Owner:     h.Replica,
		Name:      fmt.Sprintf("deckhand-%d-%s", t.ID, strings.ToLower(rand.Text()[:8])),
		Workspace: t.Workspace, Repositories: p.folders(t.Workspace)[1:], Dir: p.Folder(t.Workspace), Home: h.Home(t.ID), Hidden: h.Hidden, ReadOnly: borrowed,
		Program: program, CacheDir: filepath.Join(h.DataDir, "caches", p.Name),
		Env: h.environ(p, t.ID, bash),
	}
	var c cell
	// Nothing runs without a way through the gateway. A launcher may lead to another
	// machine, where no socket of this one can be reached: it comes in by the listener.
	far := !p.Sandbox.HasSocket()
	if c.way, err = h.Gateway.Open(ctx, gateway.Opening{Provider: p.Provider, Env: session.Env, Far: far, Meter: calls}); err != nil {
		return nil, &needError{needModel, p.Name, err}
	}
	if session.Env = c.way.Env(); !far {
		session.Socket = c.way.Socket()
	}
	if settings, err = h.commits(ctx, t, p, &session, settings); err == nil {
		c.git, err = h.openGit(t, p, &session, settings)
	}
	if err != nil {
		c.cut()
		return nil, err
	}
	if c.web, err = h.openWeb(t, p, &session); err != nil {
		c.cut()
		return nil, &needError{needWeb, p.Name, err}
	}
	if c.Box, err = s.Prepare(ctx, session); err != nil {
		c.cut()
		return nil, &needError{needSandbox, p.Name, err}
	}
	return &c, nil
}

// openGit opens the session's way to its project's forge, if it has one, and tells its git
// of it beside other settings.
func (h *Host) openGit(t threads.Thread, p Project, s *sandbox.Session, settings [][2]string) (way *gitway.Session, err error) {
	if p.ReachesForge() && h.Git != nil {
		if way, err = h.Git.Open(filepath.Dir(s.Socket), p.Name, p.remotes()); err != nil {
			return nil, err
		}
	}
	if err := h.sign(t, p, way); err != nil {
		way.Close()
		return nil, err
	}
	s.Env = append(append(s.Env, way.Env()...), gitway.Settings(append(settings, way.Settings()...))...)
	return way, nil
}

// boxed is a process that is gone when its cell is closed, too, and is ended when it
// reaches a limit of its sandbox.
type boxed struct {
	*claude.Process
	git *gitway.Session
	// leaves tells what a push of the working tree in a folder would bring, and its repository's address where it is
	// a further one; its error is why it cannot.
	leaves func(dir string) (l gitdata.Leaving, address string, err error)
	gone   chan struct{}
	over   string // the limit that it was ended for; to be read when it is gone
	web    *egress.Session
	way    *gateway.Session
}

func (b *boxed) Offered(tool string) []gateway.Tool { return b.way.Offered(tool) }

func (b *boxed) Visits() []egress.Visit {
	if b.web == nil {
		return nil
	}
	return b.web.Take()
}

func (b *boxed) Done() <-chan struct{} { return b.gone }

func (b *boxed) AllowPush(toolUseID string, p gitway.Pass) { b.git.AllowPush(toolUseID, p) }
func (b *boxed) AllowCall(toolUseID, tool string, input json.RawMessage) {
	b.web.AllowCall(toolUseID, tool, input)
}

func (b *boxed) EndUse(toolUseID string) {
	b.git.EndPush(toolUseID)
	b.web.EndCall(toolUseID)
}
func (b *boxed) OnGit(tell func(gitway.Event)) { b.git.OnEvent(tell) }

func (b *boxed) OnAsk(a egress.Asker) {
	if b.web != nil {
		b.web.OnAsk(a)
	}
}

// Exit says of a limit that it was one.
func (b *boxed) Exit() *claude.ExitError {
	select {
	case <-b.gone:
	default:
		return nil
	}
	exit := b.Process.Exit()
	if b.over == "" || exit.Reason == claude.ExitClean {
		return exit
	}
	limit := *exit
	limit.Reason, limit.Detail = claude.ExitLimit, b.over
	return &limit
}

func (h *Host) shutIn(t threads.Thread, p Project, proc *claude.Process, box *cell, log *zap.Logger) *boxed {
	b := &boxed{Process: proc, gone: make(chan struct{}), web: box.web, git: box.git, way: box.way}
	b.leaves = func(dir string) (l gitdata.Leaving, address string, err error) {
		for _, q := range p.All() {
			if at := workspace.Within(t.Workspace, q.Of); q.Of == "" || at == repositoryOf(t.Workspace, dir) {
				if l, err = h.Keeper.Leaving(at, q.space(t), policy.GivesOrders); err != nil {
					return l, "", err
				}
				if q.Of != "" {
					address = q.Repo
				}
			}
		}
		return l, address, nil
	}
	watch := h.watcher.Watch(box.Box, proc.ReaperPID(), proc.Kill)
	go func() {
		defer close(b.gone)
		<-proc.Done()
		watch.Stop()
		b.over = watch.Over()
		if err := box.Close(); err != nil {
			log.Warn("close the sandbox", zap.Error(err))
		}
	}()
	return b
}
