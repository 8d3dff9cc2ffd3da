package claude_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// below lists the processes below pid, as /proc has them.
func below(pid int) []int {
	children := make(map[int][]int)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		children[parent] = append(children[parent], child)
	}
	var out []int
	for todo := children[pid]; len(todo) > 0; todo = todo[1:] {
		out = append(out, todo[0])
		todo = append(todo, children[todo[0]]...)
	}
	return out
}

// commandLine is what a living process runs; empty for zombies too.
func commandLine(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return string(b)
}
