package place

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long this machine has been up, suspended or not. Nobody can set it.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(started) // a kernel without: it counts as long as it runs
	}
	return time.Duration(t.Nano())
}

// kernel names the kernel that runs here since its start.
func kernel() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // what cannot be told is never the same
	return strings.TrimSpace(string(b))
}
