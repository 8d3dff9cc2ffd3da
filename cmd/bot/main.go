// Command bot is Deckhand: it puts Claude Code into a team's Slack.
//
// This package is the command line, a file for each command, and the wiring of the
// packages that docs/architecture.md describes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"deckhand/internal/agent/claude/reaper"
	"deckhand/internal/attachment"
	"deckhand/internal/gateway/gitway"
)

func main() {
	gitway.RunHelper()
	attachment.RunHelper()
	os.Exit(process())
}

// process runs the program as a process that hides its environment from others of its user; as a container's first
// process it starts itself again (see runAsInit).
func process() (code int) {
	if err := reaper.HideProcess(); err != nil {
		fmt.Fprintln(os.Stderr, "bot: hide the environment from what runs beside:", err)
		return 1
	}
	if os.Getpid() != 1 {
		return run(os.Args[1:], os.Stdout, os.Stderr)
	}
	code, err := runAsInit("/proc/self/exe", os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bot: start as a container's first process:", err)
	}
	return code
}

// run is the program without its process, and returns its exit code.
func run(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second signal ends the bot at once.
	context.AfterFunc(ctx, stop)

	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(errOut, "bot:", strings.TrimSuffix(err.Error(), ": "+errUsage.Error()))
		return 2
	case !errors.Is(err, errTold):
		fmt.Fprintln(errOut, "bot:", err)
	}
	return 1
}
