//go:build !linux

package postgres

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// canEnterByFD is false: there is no /proc to enter a folder by.
const canEnterByFD = false

// servesFolder reports whether the process is a PostgreSQL server whose data
// folder is data, by the command line that we start it with.
func servesFolder(pid int, data string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+data+" ")
}
