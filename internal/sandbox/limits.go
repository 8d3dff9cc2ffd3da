package sandbox

import (
	"errors"
	"fmt"
	"strconv"
)

// Limits are what all processes of a session together may use. Zero is no limit.
type Limits struct {
	Memory, Disk int64 // bytes
	// Processes includes threads, as in the kernel.
	Processes int
	// Files is how many files each process may have open.
	Files int
	CPU   float64 // cores
}

// describe lists the limits for people.
func (l Limits) describe() []string {
	var out []string
	if l.Memory > 0 {
		out = append(out, Size(l.Memory))
	}
	if l.Processes > 0 {
		out = append(out, strconv.Itoa(l.Processes)+" processes")
	}
	if l.CPU > 0 {
		out = append(out, strconv.FormatFloat(l.CPU, 'f', -1, 64)+" cores")
	}
	if l.Disk > 0 {
		out = append(out, Size(l.Disk)+" disk")
	}
	return out
}

// The units of sizes.
const (
	mib = 1 << 20
	gib = 1 << 30
)

// The least that a session can be given; with less, the CLI itself does not run. It alone takes a quarter of
// LeastMemory and half of LeastProcesses.
const (
	LeastMemory    = gib
	LeastDisk      = 64 * mib
	LeastProcesses = 64
	LeastFiles     = 256
)

// DefaultLimits exceed what builds and tests of a large project need, and keep the machine alive. Cores are
// unlimited, since the kernel shares them.
func DefaultLimits() Limits {
	return Limits{Memory: 8 * gib, Disk: 20 * gib, Processes: 2048, Files: 20000}
}

// shareOf is the part of the memory that a folder in memory may use: half of it for /tmp, a quarter for each of the
// others.
func shareOf(memory int64, path string) int64 {
	if path == "/tmp" {
		return memory / 2
	}
	return memory / 4
}

// Size formats bytes for people: "8 GiB".
func Size(n int64) string {
	unit, name := float64(mib), "MiB"
	if n >= gib {
		unit, name = gib, "GiB"
	}
	return strconv.FormatFloat(float64(int64(float64(n)/unit*10))/10, 'f', -1, 64) + " " + name
}

// A session that reaches a limit is stopped, and its thread gets one of these.

func overMemory(limit int64, used string) string {
	return stopped(fmt.Sprintf("It used %s of memory and may use %s", used, Size(limit)), "memory")
}

func overProcesses(limit int, used string) string {
	return stopped(fmt.Sprintf("It had %s processes and threads at once and may have %d", used, limit), "processes")
}

func overDisk(limit, used int64) string {
	return stopped(fmt.Sprintf("Its workspace and its home have grown to %s on disk and may have %s", Size(used), Size(limit)), "disk") +
		" What it wrote is still there: have it deleted first."
}

func stopped(why, key string) string {
	return "The session was stopped. " + why + ". Write “continue” to go on from here with less; if the work needs more, ask an admin to raise sandbox.limits." + key + " in deckhand.yaml."
}

// errNoCPU: nothing here can enforce the limit.
var errNoCPU = errors.New("limits.cpu cannot be kept: the bot has no cgroup (version 2) of its own to limit cores with; start it as a service with Delegate=yes in its unit, use containers (sandbox: {kind: container, image: …}), or leave cpu out")

// enforceable says which limit cannot be enforced.
func (l Limits) enforceable() error {
	if l.CPU > 0 && ownGroups() == nil {
		return errNoCPU
	}
	return nil
}
