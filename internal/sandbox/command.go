package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"deckhand/internal/sandbox/stage"
)

// command starts sessions with an admin's launcher, which passes standard input, output and error on: ssh, kubectl,
// a script. The launcher is responsible for what a session can see and do, for bringing its folders and the way to
// the model there, and for ending everything with itself. Only the arrival of arguments, variables and bytes is
// checked here.
//
// In the launcher's arguments {name}, {workspace}, {home} and {socket} stand for the session's. What runs follows
// them: a shell that goes to the workspace and starts the program with only the session's environment. Other users
// of both machines can read this command line: it must hold no credential that is useful beyond the session (see
// [Spec.HasSocket]).
type command struct {
	spec Spec
}

func newCommand(spec Spec) (Sandbox, error) {
	if len(spec.Command) == 0 {
		return nil, errors.New("the sandbox command takes a launcher; write command: with its words")
	}
	return &command{spec}, nil
}

func (c *command) String() string { return c.spec.String() }

// awkward is changed by launchers that let a shell read their arguments.
const awkward = `it's  "one" $HOME \ * value`

func (c *command) Check(ctx context.Context, run Run) error {
	// Whatever the other side is, it has a root folder.
	s := Session{
		Name: "deckhand-check", Workspace: "/", Home: "/", Socket: "/nowhere/socket", Program: []string{"/bin/sh"},
		Env: []string{"PATH=" + os.Getenv("PATH"), "DECKHAND_CHECK=" + awkward},
	}
	out, err := tryIn(ctx, run, c, s, `printf '%s\n' "$DECKHAND_CHECK"; read -r word && echo "$word"`)
	const hint = "if it has a shell read its words, as a script around ssh has, give it a name that begins with ssh: they are quoted then"
	switch {
	case errors.Is(err, errTrial):
		return fmt.Errorf("the launcher %s does not work: %w; %s", c.spec.Command[0], err, hint)
	case err != nil:
		return err
	case out != awkward+"\n":
		return fmt.Errorf("the launcher %s changes what it is given: the value %q arrived as %q; %s", c.spec.Command[0], awkward, strings.TrimSuffix(out, "\n"), hint)
	}
	return nil
}

func (c *command) Prepare(_ context.Context, s Session) (*Box, error) {
	names := strings.NewReplacer("{name}", s.Name, "{workspace}", s.Workspace, "{home}", s.Home, "{socket}", s.Socket)
	launcher := make([]string, len(c.spec.Command))
	for i, word := range c.spec.Command {
		launcher[i] = names.Replace(word)
	}
	program, err := exec.LookPath(launcher[0])
	if err != nil {
		return nil, fmt.Errorf("the launcher %s cannot be found: %w", launcher[0], err)
	}
	launcher[0] = program
	words := slices.Concat([]string{"/bin/sh", "-c", `cd "$0" && exec env -i "$@"`, s.dir()}, s.Env, s.Program)
	box := &Box{Command: slices.Concat(launcher, words), Env: launcherEnviron()}
	if strings.HasPrefix(filepath.Base(program), "ssh") {
		box.Command, err = staged(Command, stage.Launcher{Launcher: launcher, Words: words})
	}
	return box, err
}
