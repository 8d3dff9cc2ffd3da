package agent

import (
	"time"

	"github.com/google/uuid"
)

var (
	started = time.Now()
	// unknownKernel stands for one that has no name: it is another for each process.
	unknownKernel = uuid.NewString()
)

func (h *host) uptime() time.Duration { return uptime() }

func (h *host) kernel() string {
	if k := kernel(); k != "" {
		return k
	}
	return unknownKernel
}
