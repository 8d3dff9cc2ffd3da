package postgres

import (
	"fmt"
	"os"
)

// canEnterByFD: /proc/self/fd/N leads to a folder without a look at its
// parents.
const canEnterByFD = true

// servesFolder reports whether the process is a PostgreSQL server whose data
// folder is data: the server's working directory is that folder.
func servesFolder(pid int, data string) bool {
	cwd, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	folder, err := os.Stat(data)
	return err == nil && os.SameFile(cwd, folder)
}
