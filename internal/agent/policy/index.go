package policy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
)

// maxIndex bounds the index of git that is read.
const maxIndex = 16 << 20

// tracked are the files that git tracks in a repository, whose content git diff and git grep show; ok is false if
// they cannot be read, for example with a split index or an unknown format.
func tracked(repository string) (files []string, ok bool) {
	at := repository + "/.git/index"
	if _, err := os.Lstat(repository + "/.git/HEAD"); err == nil {
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			return nil, true // nothing was added yet
		}
	}
	if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, false
	}
	raw, err := os.ReadFile(at)
	if err != nil {
		return nil, false
	}
	return readIndex(raw)
}

// readIndex lists the paths of an index of version 2 or 3 with SHA-1 names.
func readIndex(raw []byte) (files []string, ok bool) {
	const header, hash, fixed = 12, 20, 62
	if len(raw) < header+hash || string(raw[:4]) != "DIRC" {
		return nil, false
	}
	version, n := binary.BigEndian.Uint32(raw[4:]), binary.BigEndian.Uint32(raw[8:])
	if version < 2 || version > 3 {
		return nil, false
	}
	rest := raw[header : len(raw)-hash]
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
		end := bytes.IndexByte(rest[size:], 0)
		if end <= 0 {
			return nil, false
		}
		files = append(files, string(rest[size:size+end]))
		size = (size + end + 8) / 8 * 8
		if size > len(rest) {
			return nil, false
		}
		rest = rest[size:]
	}
	return files, plainExtensions(rest)
}

// plainExtensions reports whether the extensions leave the entries complete: no other file holds more entries, and
// none stands for a folder.
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
