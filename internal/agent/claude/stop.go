package claude

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude/reaper"
)

// giveUp ends the process because what it prints cannot be read.
func (p *Process) giveUp(err error) {
	p.mu.Lock()
	p.fatal = err
	p.mu.Unlock()
	p.log.Error("giving the session's process up", zap.Error(err))
	p.Kill()
	// Let it write on until it is gone.
	_, _ = io.Copy(io.Discard, p.stdout)
}

// dropOrders closes the order pipe, which has the reaper remove the tree.
func (p *Process) dropOrders() {
	p.ordersOnce.Do(func() { _ = p.orders.Close() })
}

// Kill removes the process and everything below it at once. It does not wait;
// see [Process.Done].
func (p *Process) Kill() {
	p.killOnce.Do(func() {
		close(p.killed)
		p.dropOrders()
	})
}

// finish waits for the end and closes up behind it. It is the owner of all the
// other goroutines.
func (p *Process) finish(report io.Closer) {
	said := make(chan reaperReport, 1)
	go func() {
		rep := readExit(p.report)
		_ = p.reaper.Wait() // its status repeats what it reported
		said <- rep
	}()
	watch := time.NewTicker(watchInterval(p.o.SilenceAfter))
	defer watch.Stop()
	var rep reaperReport
	killed := p.killed
	var overdue <-chan time.Time
	for waiting := true; waiting; {
		select {
		case rep = <-said:
			waiting = false
		case <-killed:
			killed = nil
			overdue = time.After(p.o.StopGrace.Kill)
		case <-overdue:
			// The reaper itself hangs: do its work.
			p.log.Error("the reaper does not answer, killing its tree")
			for _, pid := range reaper.Descendants(p.reaper.Process.Pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			_ = p.reaper.Process.Kill()
			overdue = time.After(time.Second)
		case now := <-watch.C:
			if s := p.life.silence(now, p.o.SilenceAfter); s != nil {
				p.out.put(s)
			}
		}
	}
	if !rep.exited {
		// The reaper was killed and could not clean up.
		reaper.Orphans()
	}
	// Nothing holds the other ends any more; the bound is for systems where
	// something may.
	deadline := time.Now().Add(2 * time.Second)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
	<-p.readerDone
	<-p.stderrDone
	_ = p.stdout.Close()
	_ = p.stderr.Close()
	_ = report.Close()
	p.dropOrders()
	p.in.shut()
	p.exit = p.explain(rep)
	p.life.exited()
	p.mcp.stop()
	p.calls.fail(p.exit)
	close(p.done)
	p.out.end()
}

// Stop ends the process in good order: no more input, then SIGTERM, then
// removal, each after the time that [StopGrace] gives, and returns when it and
// everything below it are gone. If ctx ends first the tree is removed at once
// and Stop still waits for that, which is bounded. It may be called any number
// of times and at once; the error is only ever ctx's.
func (p *Process) Stop(ctx context.Context) error {
	p.stopOnce.Do(func() {
		close(p.stopping)
		go p.stop()
	})
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		<-p.done
		return fmt.Errorf("stop claude: killed: %w", context.Cause(ctx))
	}
}

func (p *Process) stop() {
	wait := func(d time.Duration) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-p.done:
			return true
		case <-t.C:
			return false
		}
	}
	busy := p.life.busy()
	p.in.close()
	if !busy && wait(p.o.StopGrace.Close) {
		return
	}
	writeOrder(p.orders, []byte{reaper.Term})
	if wait(p.o.StopGrace.Term) {
		return
	}
	p.Kill()
}
