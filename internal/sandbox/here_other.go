//go:build !linux

package sandbox

import "runtime"

func kernelRelease() string { return "" }

// Here says for people what this machine has to build sandboxes of.
func Here() string { return runtime.GOOS + ", which has containers alone" }
