package gitway

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of a fetch from the forge.
const (
	// fetchTimeout bounds all of it, and quietTimeout the time without new data.
	fetchTimeout = 4 * time.Minute
	quietTimeout = 30 * time.Second
	// maxFetched bounds the data, in bytes on the disk.
	maxFetched = 10 << 30
	// fetchPace is the interval between checks of the folder's size.
	fetchPace = 500 * time.Millisecond
)

// fetchLimits bound a fetch.
type fetchLimits struct {
	all, quiet, pace time.Duration
	bytes            int64
}

// Fetch fetches the branches and tags of the repository, with all their objects, into a git folder of ours: the
// branches below heads, the tags below tags, which are refs such as refs/fetched/heads. It returns the branch that
// the repository's HEAD names, without refs/heads/; empty if it names none. Objects arrive in packs. It gives up on
// a forge that is silent, too slow or sends too much; the error is a sentence.
func (r Remote) Fetch(ctx context.Context, dir, heads, tags string) (head string, err error) {
	return r.fetch(ctx, dir, heads, tags, fetchLimits{all: fetchTimeout, quiet: quietTimeout, pace: fetchPace, bytes: maxFetched})
}

func (r Remote) fetch(ctx context.Context, dir, heads, tags string, p fetchLimits) (head string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.all, fmt.Errorf("it came to no end in %s", p.all))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.watch(ctx, filepath.Join(dir, "objects"), stop)
	}()
	defer func() { stop(nil); <-watched }()
	out, err := r.run(ctx, dir, "ls-remote", "--symref", "--", r.address(), "HEAD")
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	for line := range strings.Lines(out) {
		if to, ok := strings.CutPrefix(strings.TrimSuffix(line, "\tHEAD\n"), "ref: refs/heads/"); ok {
			head = to
		}
	}
	_, err = r.run(ctx, dir, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--",
		r.address(), "+refs/heads/*:"+heads+"/*", "+refs/tags/*:"+tags+"/*")
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	return head, nil
}

// watch stops a fetch into a folder when nothing has come for too long, or too much has.
func (p fetchLimits) watch(ctx context.Context, dir string, stop context.CancelCauseFunc) {
	tick := time.NewTicker(p.pace)
	defer tick.Stop()
	last, moved := int64(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		size := sizeOf(dir)
		if size != last {
			last, moved = size, time.Now()
		}
		switch {
		case size > p.bytes:
			stop(fmt.Errorf("it sent more than %d MiB", p.bytes>>20))
			return
		case time.Since(moved) > p.quiet:
			stop(fmt.Errorf("it said nothing for %s", p.quiet))
			return
		}
	}
}

// sizeOf is the total size of a folder's readable files, in bytes.
func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
