package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/sandbox"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/threads"
	"deckhand/internal/workspace"
)

// Prepared is what a project's setup has done in a thread's workspace.
type Prepared struct {
	Told    string // for people; empty where there is nothing to tell
	Output  string // the end of what it printed
	Entries []audit.Entry
}

// maxSetupOutput bounds what is kept of what a setup prints, in bytes.
const maxSetupOutput = 64 << 10

// Prepare implements [Machine].
func (h *Host) Prepare(ctx context.Context, t threads.Thread, p Project, begins func()) (done Prepared, err error) {
	told, err := h.Keeper.SetUp(ctx, h.worksIn(t, p), p.space(t), func(ctx context.Context) (err error) {
		begins()
		done, err = h.setUp(ctx, t, p)
		return err
	})
	if told != "" {
		done.Told = told
	}
	return done, err
}

// setUp runs the project's setup in the sandbox of a session of the thread. What becomes
// of the command is in what it returns; its error is why it could not run at all.
func (h *Host) setUp(ctx context.Context, t threads.Thread, p Project) (done Prepared, err error) {
	if err := h.homes().Renew(t.ID, t.SessionID); err != nil {
		return done, err
	}
	bash, err := bashOf(p.Sandbox.Kind)
	if err != nil {
		return done, err
	}
	box, err := h.box(ctx, t, p, []string{bash}, noCalls{})
	if err != nil {
		return done, err
	}
	var mu sync.Mutex
	var fetched []audit.Entry
	box.git.OnEvent(func(e gitway.Event) {
		mu.Lock()
		defer mu.Unlock()
		fetched = append(fetched, GitEntry(t.TeamID, t.ID, e))
	})
	limit := cmp.Or(p.Setup.Timeout, workspace.DefaultSetupTimeout)
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, began := ending{most: maxSetupOutput}, time.Now()
	status, signal, over, err := h.runs(timed, box.Box, p.Folder(t.Workspace), []string{"-c", p.Setup.Run}, &out)
	took := time.Since(began)
	if box.web != nil {
		if visits := box.web.Take(); len(visits) > 0 {
			done.Entries = append(done.Entries, audit.Entry{Kind: audit.Web, TeamID: t.TeamID, ThreadID: t.ID, Details: map[string]any{"visits": visits}})
		}
	}
	if err := errors.Join(err, box.Close()); err != nil {
		return done, err
	}
	mu.Lock()
	defer mu.Unlock()
	done.Output = out.String()
	done.Entries = append(append(done.Entries, fetched...), audit.Entry{
		Kind: audit.Setup, TeamID: t.TeamID, ThreadID: t.ID, Details: map[string]any{"run": p.Setup.Run, "status": status, "signal": signal, "ms": took.Milliseconds()},
	})
	why := ""
	switch {
	case timed.Err() != nil:
		why = fmt.Sprintf("it took more than %s (setup.timeout)", limit)
	case over != "":
		why = over
	case signal != 0:
		why = fmt.Sprintf("it was ended by signal %d", signal)
	case status != 0:
		why = fmt.Sprintf("exit status %d", status)
	}
	done.Told = fmt.Sprintf("The folder is set up; that took %s.", took.Round(time.Second))
	if why != "" {
		done.Told = fmt.Sprintf("The setup of project %s (%s) has failed: %s. The session goes on without it; what it printed last is in setup.txt.", p.Name, p.Setup.Run, why)
	}
	return done, nil
}

// runs runs a box's program with these words to its end. over says which limit has ended it.
func (h *Host) runs(ctx context.Context, box *sandbox.Box, dir string, words []string, out io.Writer) (status, signal int, over string, err error) {
	var watch *sandbox.Watch
	status, signal, err = claude.Program{
		Command: append(box.Command, words...), Dir: dir, Env: box.Env, Out: out, Lifeline: &h.line,
		Started: func(reaperPID int, kill func()) { watch = h.watcher.Watch(box, reaperPID, kill) },
	}.Run(ctx)
	if watch != nil {
		watch.Stop()
		over = watch.Over()
	}
	return status, signal, over, err
}

// noCalls lets no call of the model through.
type noCalls struct{}

func (noCalls) Begin(context.Context, gateway.Call) (gateway.Booking, error) {
	return nil, &gateway.Refusal{Status: http.StatusForbidden, Sentence: "a setup has no way to the model"}
}

// ending keeps the end of what is written, in whole lines.
type ending struct {
	most int
	kept []byte
	cut  bool
}

func (e *ending) Write(b []byte) (int, error) {
	e.kept = append(e.kept, b...)
	if more := len(e.kept) - e.most; more > 0 {
		e.kept, e.cut = append(e.kept[:0], e.kept[more:]...), true
	}
	return len(b), nil
}

func (e *ending) String() string {
	text := strings.ToValidUTF8(string(e.kept), "�")
	if e.cut {
		_, text, _ = strings.Cut(text, "\n")
		text = "[What was printed before is left out.]\n" + text
	}
	return text
}
