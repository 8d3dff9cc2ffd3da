package sandbox

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkWatcher is one look at 60 sessions of three processes each, which happens once a
// second: ms-of-CPU is a tenth of the percentage of a core.
func BenchmarkWatcher(b *testing.B) {
	const sessions = 60
	watched := make([]*Watch, sessions)
	for i := range watched {
		cmd := exec.CommandContext(b.Context(), "sh", "-c", "sleep 100000 & sleep 100000 & wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
			_ = cmd.Wait() // it was killed
		})
		watched[i] = &Watch{box: &Box{limits: DefaultLimits()}, root: cmd.Process.Pid, capped: true, end: func() {}}
		watched[i].disk.folders.own = []string{b.TempDir()}
	}
	var w Watcher
	w.check(watched)
	before := cpu(b)
	for b.Loop() {
		w.check(watched)
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(b.N), "ms-of-CPU/look")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
