//go:build !linux

package sandbox

import "runtime"

func kernelRelease() string { return "" }

// Here describes this machine for people.
func Here() string { return runtime.GOOS + ", which has containers alone" }
