package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"deckhand/internal/agent/claude/reaper"
	"deckhand/internal/needtest"
	"deckhand/internal/sandbox"
)

// inContainer runs the test binary in a namespace of its own as firstProcess has it, or
// below another first process.
func inContainer(t *testing.T, role string, command ...string) (out string, code int) {
	t.Helper()
	bwrap := needtest.Program(t, "bwrap")
	cmd := exec.CommandContext(t.Context(), bwrap, append([]string{
		"--unshare-all", "--uid", "10001", "--gid", "10001", "--as-pid-1", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
	}, command...)...)
	cmd.Env = append(os.Environ(), asInit+"="+role, "SLACK_BOT_TOKEN=canary")
	b, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b)), cmd.ProcessState.ExitCode()
}

// TestTheFirstProcessOfAContainer: it reaps what is left to it, hands signals on, ends as
// its program ends, and shows its environment to nobody of its own user.
func TestTheFirstProcessOfAContainer(t *testing.T) {
	t.Parallel()
	const script = `
orphan=$(sh -c 'sleep 0 >/dev/null & echo $!')
while [ -e "/proc/$orphan" ]; do :; done # a zombie is there
echo "reaped, and $(cat /proc/1/environ 2>/dev/null | grep -c canary) of it seen"
trap 'echo told; exit 7' TERM
kill -TERM 1
while :; do sleep 1; done
`
	out, code := inContainer(t, "first", testBinary(t), "sh", "-c", script)
	if code != 7 || out != "reaped, and 0 of it seen\ntold" {
		t.Errorf("exit %d:\n%s", code, out)
	}
	out, code = inContainer(t, "first", testBinary(t), "sh", "-c", "kill -KILL $$")
	if code != 128+9 {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// TestNoneIsRefusedWhereTheFirstProcessTellsTheTokens, as Docker's own init does.
func TestNoneIsRefusedWhereTheFirstProcessTellsTheTokens(t *testing.T) {
	t.Parallel()
	if out, _ := inContainer(t, "none", "sh", "-c", testBinary(t)+"; true"); !strings.Contains(out, "take init: true out of docker-compose.yml") {
		t.Errorf("below a first process that tells: %s", out)
	}
	if out, _ := inContainer(t, "none", "env", "-u", "SLACK_BOT_TOKEN", "sh", "-c", "SLACK_BOT_TOKEN=canary "+testBinary(t)+"; true"); out != "it may" {
		t.Errorf("below one that does not: %s", out)
	}
}

func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// firstProcess is what the test binary is in a container.
func firstProcess(role string) int {
	if role == "none" {
		none, err := sandbox.New(sandbox.Spec{Kind: sandbox.None})
		if err == nil {
			err = none.Check(context.Background(), nil)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("it may")
		return 0
	}
	program, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = reaper.HideProcess()
	}
	code := 1
	if err == nil {
		code, err = runAsInit(program, os.Args[1:])
	}
	if err != nil {
		fmt.Println(err)
	}
	return code
}
