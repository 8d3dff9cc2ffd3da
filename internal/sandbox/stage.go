package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// stageFlag and a kind make this binary that kind's outer stage. It looks like a flag,
// so that a program that does not call [RunStage] stumbles over it.
const stageFlag = "--deckhand-sandbox-stage="

// A stage makes of its plan and the program's further arguments what is started, and
// becomes that. It returns only if it fails.
type stage func(plan string, arguments []string) error

// staged is the kind's outer stage with its plan; the program's further arguments follow.
// The plan can be read by other users of the machine: nothing in it is secret.
func staged(kind Kind, plan any) ([]string, error) {
	self, err := thisProgram()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return stagedAs(self, kind, plan)
}

// stagedAs is a stage of this program by another of its paths.
func stagedAs(self string, kind Kind, plan any) ([]string, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return []string{self, stageFlag + string(kind), string(text)}, nil
}

// stageFor is the stage of a kind whose plan is a P.
func stageFor[P any](become func(plan P, arguments []string) error) stage {
	return func(text string, arguments []string) error {
		var p P
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return fmt.Errorf("read the plan: %w", err)
		}
		return become(p, arguments)
	}
}

// insideStage is a stage that begins inside, or nil.
func insideStage(kind Kind) stage {
	switch kind {
	case forwarded:
		return stageFor(becomeForwarded)
	case forwarder:
		return stageFor(becomeForwarder)
	}
	return nil
}

// RunStage must be called at the beginning of main, beside claude.RunReaper, and in
// TestMain of packages that start what [Sandbox.Prepare] has prepared. In a process that
// was started as an outer stage it never returns: such a process does what can only be
// done where the sandbox begins, and becomes its program. Nor in a session's forwarder and
// what starts that one, inside. In any other it does nothing.
func RunStage() {
	if len(os.Args) < 3 {
		return
	}
	kind, ok := strings.CutPrefix(os.Args[1], stageFlag)
	if !ok {
		return
	}
	err := inheritNothing()
	become := insideStage(Kind(kind))
	if become == nil {
		become = stageOf(Kind(kind))
	}
	if err == nil && become != nil {
		err = become(os.Args[2], os.Args[3:])
	} else if err == nil {
		err = fmt.Errorf("no stage of a sandbox is called %q", kind)
	}
	fmt.Fprintln(os.Stderr, "sandbox:", err)
	os.Exit(126)
}

// inheritNothing keeps files from what is started, but for the standard ones: whoever
// started the bot may have left it some, such as a shell's or a supervisor's.
func inheritNothing() error {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("look which files are open: %w", err)
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
