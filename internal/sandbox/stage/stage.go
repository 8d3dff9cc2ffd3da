// Package stage is what stands between the bot and a sandbox: this same binary once more,
// outside, which does what can only be done where the sandbox begins, and becomes the
// sandbox's program.
//
// It begins in the package's init, as a session's reaper does and for the same reason:
// what a session waits for is not to make the bot's tables first. What it imports is
// bounded by TestWhatStartsWithASessionIsLight.
package stage

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// flag and a name make this binary that stage. It looks like a flag, so that a program
// that has no such stage stumbles over it.
const flag = "--deckhand-sandbox-stage="

// A Stage makes of its plan and the program's further arguments what is started, and
// becomes that. It returns only if it fails.
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

// Words are the words that start a stage with its plan, by a path of this program; the
// program's further arguments follow. The plan can be read by other users of the machine:
// nothing in it is secret.
func Words(self, name string, plan any) ([]string, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return []string{self, flag + name, string(text)}, nil
}

// Run is for the init of packages that have stages. In a process that was started as one
// of them it never returns; in any other it does nothing.
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

// Launcher is the plan of what starts a launcher that gives its words to a shell: ssh,
// sshpass, or a script that is called so.
type Launcher struct {
	Launcher []string `json:"launcher"`
	Words    []string `json:"words"`
}

// becomeLauncher quotes the words, the program's further arguments too. It returns only
// if it fails.
func becomeLauncher(p Launcher, arguments []string) error {
	argv := p.Launcher
	for _, word := range append(p.Words, arguments...) {
		argv = append(argv, quoted(word))
	}
	return fmt.Errorf("start %s: %w", argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}

// quoted is the word as a shell reads it.
func quoted(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// File is one that is made inside, of a content or of that of a file of this machine.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty"`
	Source  string `json:"source,omitempty"`
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
