//go:build unix && !linux

package place

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long this process has run. Nobody can set it.
func uptime() time.Duration { return time.Since(started) }

// kernel names the kernel that runs here since its start.
func kernel() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid") // what cannot be told is never the same
	return id
}
