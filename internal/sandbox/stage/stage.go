// Package stage runs between the bot and a sandbox: this binary again, outside, does what must be done where the
// sandbox begins, and becomes the sandbox's program.
//
// It runs in the package's init, like a session's reaper: a session must not wait for the bot's tables to be built.
// TestWhatStartsWithASessionIsLight bounds its imports.
package stage

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// flag and a name start this binary as that stage. It looks like a flag, so that a program without stages rejects
// it.
const flag = "--deckhand-sandbox-stage="

// A Stage builds a command from its plan and the program's further arguments, and becomes it. It returns only on
// failure.
type Stage func(plan string, arguments []string) error

// For is a stage whose plan is a P.
func For[P any](become func(plan P, arguments []string) error) Stage {
	return func(text string, arguments []string) error {
		var p P
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return fmt.Errorf("read the plan: %w", err)
		}
		return become(p, arguments)
	}
}

// Words are the command line that starts a stage with its plan, by a path of this program; the program's further
// arguments follow. Other users of the machine can read the plan: it holds no secret.
func Words(self, name string, plan any) ([]string, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return []string{self, flag + name, string(text)}, nil
}

// Run is for the init of packages with stages. It never returns in a process started as one of them, and does
// nothing in others.
func Run(stages map[string]Stage) {
	if len(os.Args) < 3 {
		return
	}
	name, _ := strings.CutPrefix(os.Args[1], flag)
	become := stages[name]
	if become == nil || name == os.Args[1] {
		return
	}
	err := inheritNothing()
	if err == nil {
		err = become(os.Args[2], os.Args[3:])
	}
	fmt.Fprintln(os.Stderr, "sandbox:", err)
	os.Exit(126)
}

func init() { Run(outside) }

// Launcher is the plan for a launcher that passes its arguments to a shell: ssh, sshpass, or a script of that kind.
type Launcher struct {
	Launcher []string `json:"launcher"`
	Words    []string `json:"words"`
}

// becomeLauncher quotes all arguments. It returns only on failure.
func becomeLauncher(p Launcher, arguments []string) error {
	argv := p.Launcher
	for _, word := range append(p.Words, arguments...) {
		argv = append(argv, quoted(word))
	}
	return fmt.Errorf("start %s: %w", argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}

// quoted is the word quoted for a shell.
func quoted(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// File is made inside, with the given content or that of a file of this machine.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty"`
	Source  string `json:"source,omitempty"`
}

// inheritNothing keeps all but the standard files from what is started: whoever started the bot may have left some
// open.
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
