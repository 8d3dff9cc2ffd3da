package sandbox

import (
	"context"
	"fmt"
	"os"
	"testing"

	"deckhand/internal/agent/claude"
	"deckhand/internal/gateway/gitway"
)

// roleVariable makes the test binary be a program inside of a sandbox, or one that
// starts a sandbox and is killed.
const roleVariable = "DECKHAND_TEST_ROLE"

// roles are what the test binary can be instead.
var roles = map[string]func() error{}

// insideRole as the first argument makes it the program that is shut in, where the
// environment is what is looked at.
const insideRole = "inside"

// insideProgram is that program.
var insideProgram func(args []string) int

// afterwards is done once, when all tests have run.
var afterwards []func()

func TestMain(m *testing.M) {
	gitway.RunHelper()
	if role, ok := roles[os.Getenv(roleVariable)]; ok {
		if err := role(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == insideRole {
		os.Exit(insideProgram(os.Args[2:]))
	}
	code := m.Run()
	for _, stop := range afterwards {
		stop()
	}
	os.Exit(code)
}

// tryRun runs what a sandbox is tried with, as the bot does.
func tryRun(ctx context.Context, p Program) (status, signal int, err error) {
	return claude.Program{Command: p.Command, Env: p.Env, Dir: p.Dir, In: p.In, Out: p.Out, Err: p.Err}.Run(ctx)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
