//go:build !linux

package store

import (
	"syscall"
	"time"
)

// unheard does nothing: only Linux bounds how long it waits for what was sent.
func unheard(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
