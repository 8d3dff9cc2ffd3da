//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// system are folders without anybody's secrets, and large.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sys", "/dev"}

// walk visits everything below dir that is neither the system's nor the session's own.
func walk(dir string, visit func(path string, d fs.DirEntry)) error {
	own := []string{os.Getenv("WS"), os.Getenv("HOME")}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read is as good as not there
		case d.IsDir() && (slices.Contains(system, path) || slices.Contains(own, path)):
			return filepath.SkipDir
		}
		visit(path, d)
		return nil
	})
}

// scan FOLDER… prints every line with a canary in every file.
func scan(dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, walk(dir, func(path string, d fs.DirEntry) {
			if d.Type().IsRegular() {
				lookInto(path)
			}
		}))
	}
	return errors.Join(errs...)
}

func lookInto(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // it was read
	b, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	for line := range bytes.Lines(b) {
		if bytes.Contains(line, []byte("CANARY-")) {
			fmt.Printf("%s: %s\n", path, bytes.TrimSpace(line[:min(len(line), 400)]))
		}
	}
}

// sockets FOLDER tries every unix socket but the session's own.
func sockets(dirs []string) error {
	return walk(dirs[0], func(path string, d fs.DirEntry) {
		if d.Type()&fs.ModeSocket == 0 || path == os.Getenv("ANTHROPIC_UNIX_SOCKET") || filepath.Dir(path) == "/tmp/cc-socks" { // the CLI's own
			return
		}
		conn, err := net.DialTimeout("unix", path, patience)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("BREACH: connected to", path)
		_ = conn.Close()
	})
}

// write MARK FOLDER… leaves a file in every folder that takes one, and adds to every file
// that can be written to; the harness looks for them outside.
func writeEverywhere(args []string) error {
	var errs []error
	for _, dir := range args[1:] {
		errs = append(errs, walk(dir, func(path string, d fs.DirEntry) {
			at, flags := path, os.O_APPEND|os.O_WRONLY
			switch {
			case d.IsDir():
				at, flags = filepath.Join(path, args[0]), os.O_CREATE|os.O_WRONLY
			case !d.Type().IsRegular() || filepath.Base(path) == args[0]:
				return
			}
			f, err := os.OpenFile(at, flags, 0o644)
			if err != nil {
				return
			}
			fmt.Println("wrote", at)
			_, _ = f.WriteString("\n# " + args[0] + "\n")
			_ = f.Close()
		}))
	}
	return errors.Join(errs...)
}

// descriptors reads what every process here holds open, and goes up from every folder.
func descriptors([]string) error {
	all, err := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range all {
		to, err := os.Readlink(fd)
		if err != nil {
			continue
		}
		fmt.Println(fd, to)
		info, err := os.Stat(fd)
		switch {
		case err != nil:
		case info.IsDir():
			for _, way := range []string{"etc/shadow", "../etc/shadow", "../../../../etc/shadow", "../../../../../../etc/shadow"} {
				if b, err := os.ReadFile(fd + "/" + way); err == nil {
					fmt.Printf("%s\n", b)
				}
			}
		case info.Mode().IsRegular():
			lookInto(fd)
		}
	}
	return err
}

// linger NAME beats in a file of that name for some minutes, or until it is killed for good.
func linger(args []string) error {
	deaf()
	for i := range 10_000 {
		if err := os.WriteFile(args[0], fmt.Appendf(nil, "%d\n", i), 0o644); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// hog WHAT uses up something, within bounds that the machine bears.
func hog(args []string) error {
	switch args[0] {
	case "memory":
		return hogMemory()
	case "files":
		return hogFiles(args[1])
	case "disk":
		return hogDisk(args[1])
	case "descriptors":
		return hogDescriptors()
	}
	return fmt.Errorf("no such thing: %s", strings.Join(args, " "))
}
