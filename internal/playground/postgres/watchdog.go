package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchdog is a shell that waits on a pipe. Its end of the pipe closes when
// this process dies, by whatever signal, and then it ends the process that it
// watches. It is for systems without a parent-death signal.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// A line on the pipe means that all is well: the watched process is gone and
// its id may belong to somebody else by now.
const watchdogScript = `read -r line || kill -INT "$0"`

func watch(pid int) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	//nolint:noctx // it must outlive every context: it ends with this process
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, strconv.Itoa(pid))
	cmd.Stdin = r
	// A Ctrl-C in the terminal goes to the whole process group: not to this one.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: w}, nil
}

// release ends the watchdog without harm to the process it watched.
func (w *watchdog) release() {
	_, _ = w.pipe.WriteString("done\n") // a watchdog that is gone already is fine
	_ = w.pipe.Close()
	_ = w.cmd.Wait()
}
