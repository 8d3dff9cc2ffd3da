package main

import (
	"os"
	"path/filepath"
	"syscall"
)

// ownDisk gives a replica's data folder a small disk of its own, which can be filled. It
// takes root.
func (c *chaos) ownDisk(r *chaosReplica) {
	dir := filepath.Join(r.dir, "data")
	if os.Geteuid() != 0 || os.Mkdir(dir, 0o755) != nil {
		return
	}
	if syscall.Mount("chaos", dir, "tmpfs", 0, "size=256m") != nil {
		return // a container that may not
	}
	r.disk = dir
	c.t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			c.t.Error(err)
		}
	})
}

// fillDisk leaves no byte free on the replica's disk until the function that it returns
// is called.
func (r *chaosReplica) fillDisk() (free func()) {
	if r.disk == "" {
		return func() {}
	}
	path := filepath.Join(r.disk, "full")
	f, err := os.Create(path)
	if err != nil {
		return func() {} // it is full already
	}
	defer f.Close() //nolint:errcheck // nothing is wanted of it but its length
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() { _ = os.Remove(path) }
}
