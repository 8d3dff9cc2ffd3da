// Command bot is Deckhand: it puts Claude Code into a team's Slack.
//
// This package is the command line, a file for each command, and the wiring of the
// rooms that docs/architecture.md describes.
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

	"deckhand/internal/agent/claude"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/sandbox"
)

func main() {
	claude.RunReaper()
	sandbox.RunStage()
	gitway.RunHelper()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it, and returns its exit code.
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
