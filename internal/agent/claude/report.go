package claude

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// reaperReport is what the reaper said on its report pipe.
type reaperReport struct {
	exited       bool
	code, signal int
}

// readStart reads the first line: the CLI's pid, or why there is none.
func readStart(r *bufio.Reader) (pid int, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		if errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("the reaper said nothing: %w, or package reaper is not in this program", ErrKilled)
		}
		return 0, err
	}
	kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if kind == "error" {
		return 0, errors.New(rest)
	}
	if pid, err = strconv.Atoi(rest); kind != "pid" || err != nil {
		return 0, fmt.Errorf("the reaper said %q", line)
	}
	return pid, nil
}

// readExit reads how the CLI exited.
func readExit(r *bufio.Reader) reaperReport {
	line, err := r.ReadString('\n')
	if err != nil {
		return reaperReport{}
	}
	var rep reaperReport
	if n, err := fmt.Sscanf(line, "exit %d %d", &rep.code, &rep.signal); n == 2 && err == nil {
		rep.exited = true
	}
	return rep
}
