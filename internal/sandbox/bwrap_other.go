//go:build !linux

package sandbox

import (
	"fmt"
	"runtime"
)

func newBwrap(Spec) (Sandbox, error) {
	return nil, fmt.Errorf("bwrap is made of namespaces, which only Linux has; on %s write sandbox: container, or sandbox: none if nothing shall be shut in", runtime.GOOS)
}

// Unseen are none: no sandbox of this system shows folders of it.
func Unseen(Spec, string) []string { return nil }
