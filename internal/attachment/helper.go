package attachment

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// helperName is this binary's name as the process that reads one file.
const helperName = "read-attachment"

// The helper's limits, enforced by the kernel; macOS does not limit memory.
var (
	// helperSeconds is its CPU time, which does not depend on the machine's load. The largest accepted pictures
	// need two.
	helperSeconds uint64 = 20
	// helperMemory is what it may allocate, in bytes. The largest picture, a rotated progressive CMYK JPEG, needs
	// 700 MB.
	helperMemory uint64 = 1 << 30
)

// helperOutput bounds its answer, in bytes.
const helperOutput = 128 << 20

// order is the helper's request, and answer its answer, as gobs.
type (
	order struct {
		Clean   bool // see [Clean]; else [Read]
		Name    string
		Content []byte
	}
	answer struct {
		File    File
		Refused *Refusal
	}
)

// RunHelper must be called first in main, and in TestMain of packages that use [Read] or [Clean]: this binary may
// be the process that reads a file.
func RunHelper() {
	if filepath.Base(os.Args[0]) != helperName {
		return
	}
	if err := help(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func help(in io.Reader, out io.Writer) error {
	for resource, most := range map[int]uint64{unix.RLIMIT_CPU: helperSeconds, unix.RLIMIT_DATA: helperMemory, unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit the reading of a file: %w", err)
		}
	}
	debug.SetMemoryLimit(int64(helperMemory / 2)) // above this, memory is collected eagerly
	var o order
	if err := gob.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("get the file to read: %w", err)
	}
	do := read
	if o.Clean {
		do = clean
	}
	var a answer
	var err error
	if a.File, err = do(o.Name, o.Content); err != nil && !errors.As(err, &a.Refused) {
		return err
	}
	return gob.NewEncoder(out).Encode(a)
}

// reading serialises the reading of files.
var reading = make(chan struct{}, 1)

// inHelper reads the file in a separate process. Its error is a [*Refusal], joined with the cause if that process
// failed, or the context's.
func inHelper(ctx context.Context, o order) (File, error) {
	select {
	case reading <- struct{}{}:
		defer func() { <-reading }()
	case <-ctx.Done():
		return File{}, context.Cause(ctx)
	}
	a, err := ask(ctx, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return File{}, context.Cause(ctx)
	case err != nil:
		return File{}, errors.Join(Refuse("cannot be read: it is damaged, or takes more time or memory than one file is given"), err)
	case a.Refused != nil:
		return File{}, a.Refused
	}
	return a.File, nil
}

// ask starts the helper and waits for it.
func ask(ctx context.Context, o order) (a answer, err error) {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	var in, said bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(o); err != nil {
		return a, fmt.Errorf("ask for a file to be read: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return a, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args, cmd.Env, cmd.Dir = []string{helperName}, []string{"GOMAXPROCS=1"}, "/"
	cmd.Stdin, cmd.Stderr = &in, &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return a, fmt.Errorf("read a file: %w", err)
	}
	if err = gob.NewDecoder(io.LimitReader(out, helperOutput)).Decode(&a); err != nil {
		kill()
	}
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return a, fmt.Errorf("read a file: %w: %s", err, said.Bytes())
	}
	return a, nil
}
