//go:build !linux

package postgres

import "os/exec"

// startWithParent starts cmd so that it is shut down when this process dies.
func startWithParent(cmd *exec.Cmd) (*watchdog, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w, err := watch(cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill() // nothing would end it later
		_ = cmd.Wait()
		return nil, err
	}
	return w, nil
}
