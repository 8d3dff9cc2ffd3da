package policy

import (
	"bytes"
	"encoding/binary"
	"os"
)

// maxIndex bounds the index of git that is read.
const maxIndex = 16 << 20

// tracked are the files that git tracks in a repository, of which git diff and git
// grep show the content; ok is false when they cannot be told, as with an index
// that is split or that of a format unknown here.
func tracked(repository string) (files []string, ok bool) {
	at := repository + "/.git/index"
	if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, false
	}
	raw, err := os.ReadFile(at)
	if err != nil {
		return nil, false
	}
	return readIndex(raw)
}

// readIndex lists the paths of an index of version 2, 3 or 4 with SHA-1 names.
func readIndex(raw []byte) (files []string, ok bool) {
	const header, hash, fixed = 12, 20, 62
	if len(raw) < header+hash || string(raw[:4]) != "DIRC" {
		return nil, false
	}
	version, n := binary.BigEndian.Uint32(raw[4:]), binary.BigEndian.Uint32(raw[8:])
	if version < 2 || version > 4 {
		return nil, false
	}
	rest := raw[header : len(raw)-hash]
	last := ""
	for range n {
		if len(rest) < fixed {
			return nil, false
		}
		size := fixed
		if binary.BigEndian.Uint16(rest[fixed-2:])&0x4000 != 0 {
			size += 2
		}
		if len(rest) < size {
			return nil, false
		}
		name := rest[size:]
		keep := 0
		if version == 4 { // what is kept of the name before
			strip, length := offset(name)
			if length == 0 || strip > len(last) {
				return nil, false
			}
			keep, name, size = len(last)-strip, name[length:], size+length
		}
		end := bytes.IndexByte(name, 0)
		if end < 0 || end == 0 && version < 4 {
			return nil, false
		}
		last = last[:keep] + string(name[:end])
		files = append(files, last)
		if size += end + 1; version < 4 {
			size = (size + 7) / 8 * 8
		}
		if size > len(rest) {
			return nil, false
		}
		rest = rest[size:]
	}
	return files, plainExtensions(rest)
}

// offset reads a number as git writes those of variable length; length is 0 when
// there is none.
func offset(b []byte) (n, length int) {
	for i, c := range b {
		if i > 4 {
			break
		}
		n = n<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}

// plainExtensions reports whether what follows the entries of an index leaves them
// complete: no other file holds more of them, and none stands for a folder.
func plainExtensions(rest []byte) bool {
	for len(rest) > 0 {
		if len(rest) < 8 {
			return false
		}
		size := uint64(binary.BigEndian.Uint32(rest[4:]))
		if sig := string(rest[:4]); sig == "link" || sig == "sdir" || size > uint64(len(rest)-8) {
			return false
		}
		rest = rest[8+size:]
	}
	return true
}
