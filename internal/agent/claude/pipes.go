package claude

import (
	"os"
)

// pipes are the five pipes between a host and its reaper: the ends of the
// child in the order of its file descriptors, and the host's own.
type pipes struct {
	child, own []*os.File
}

func (f *pipes) open() (stdin, stdout, stderr, orders, report *os.File, err error) {
	pipe := func(childReads bool) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		child, own := w, r
		if childReads {
			child, own = r, w
		}
		f.child = append(f.child, child)
		f.own = append(f.own, own)
		return own, nil
	}
	for _, end := range []struct {
		file       **os.File
		childReads bool
	}{{&stdin, true}, {&stdout, false}, {&stderr, false}, {&orders, true}, {&report, false}} {
		if *end.file, err = pipe(end.childReads); err != nil {
			return
		}
	}
	return
}

func (f *pipes) closeChildEnds() {
	for _, file := range f.child {
		_ = file.Close()
	}
	f.child = nil
}

func (f *pipes) closeOwnEnds() {
	for _, file := range f.own {
		_ = file.Close()
	}
}
