//go:build !linux

package sandbox

import (
	"fmt"
	"runtime"
)

func newGVisor(Spec) (Sandbox, error) {
	return nil, fmt.Errorf("gvisor stands on Linux, and this is %s; write sandbox: container, or sandbox: none if nothing shall be shut in", runtime.GOOS)
}
