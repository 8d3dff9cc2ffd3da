//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programs are the system's own, which are the same on every machine.
var programs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu", "/proc", "/sys"}

var secretForm = regexp.MustCompile(`^[A-Za-z0-9-]*`)

// ransack looks for words that something follows, wherever it can read: in all files but
// the system's programs, and in what /proc tells of every process, its memory included. It
// prints a line for each place and text: "place: text".
func ransack(words []string) error {
	out := bufio.NewWriter(os.Stdout)
	told := map[string]bool{}
	look := func(place string, text []byte) {
		for _, word := range words {
			for rest := text; ; {
				at := bytes.Index(rest, []byte(word))
				if at < 0 {
					break
				}
				rest = rest[at+len(word):]
				if line := place + ": " + word + string(secretForm.Find(rest)); !told[line] {
					told[line] = true
					fmt.Fprintln(out, line)
				}
			}
		}
	}
	_ = filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read tells nothing
		case d.IsDir() && slices.Contains(programs, path):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		if f, err := os.Open(path); err == nil {
			text, _ := io.ReadAll(io.LimitReader(f, 4<<20))
			look(path, text)
			_ = f.Close()
		}
		return nil
	})
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		for _, name := range []string{"environ", "cmdline", "comm", "mountinfo"} {
			if text, err := os.ReadFile(filepath.Join(p, name)); err == nil {
				look(filepath.Base(p)+"/"+name, text)
			}
		}
		if filepath.Base(p) != fmt.Sprint(os.Getpid()) {
			lookIntoMemory(p, func(text []byte) { look(filepath.Base(p)+"/mem", text) })
		}
	}
	return out.Flush()
}

// lookIntoMemory shows what a process has of its own in memory, as far as it lets us.
func lookIntoMemory(process string, look func([]byte)) {
	maps, err := os.ReadFile(filepath.Join(process, "maps"))
	if err != nil {
		return
	}
	memory, err := os.Open(filepath.Join(process, "mem"))
	if err != nil {
		return
	}
	defer memory.Close() //nolint:errcheck // it is only read
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var may, offset, device, inode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s %s %s %s", &from, &to, &may, &offset, &device, &inode); n < 6 || !strings.HasPrefix(may, "rw") || to-from > 32<<20 {
			continue
		}
		part := make([]byte, to-from)
		if n, _ := memory.ReadAt(part, from); n > 0 {
			look(part[:n])
		}
	}
}
