//go:build !linux

package pg

import (
	"syscall"
	"time"
)

// userTimeout does nothing: only Linux has such a bound.
func userTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
