package place

import (
	"time"

	"github.com/google/uuid"
)

var (
	started = time.Now()
	// unknownKernel stands for one that has no name: it is another for each process.
	unknownKernel = uuid.NewString()
)

// Uptime implements [Machine].
func (h *Host) Uptime() time.Duration { return uptime() }

// Kernel implements [Machine].
func (h *Host) Kernel() string {
	if k := kernel(); k != "" {
		return k
	}
	return unknownKernel
}
