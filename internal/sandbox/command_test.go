package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// aLauncher makes a program of a shell's lines, which is found by its name alone.
func aLauncher(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

func TestLaunchersAreTried(t *testing.T) {
	for _, test := range []struct {
		name, script string
		command      []string
		wrong        string
	}{
		{"passes everything on", `shift; exec "$@"`, []string{"launch", "host"}, ""},
		{"ssh has a shell read its words", `shift; exec /bin/sh -c "$*"`, []string{"ssh", "host"}, ""},
		{"so has a script that is called so", `exec /bin/sh -c "$*"`, []string{"ssh-builder"}, ""},
		{"a script around ssh does, too", `exec /bin/sh -c "$*"`, []string{"launch"}, "a name that begins with ssh"},
		{"drops the input", `exec "$@" </dev/null`, []string{"launch"}, "the launcher launch does not work"},
		{"does not get there", `echo 'no route to host' >&2; exit 255`, []string{"launch"}, "no route to host"},
		{"is not there", "", []string{"nowhere-to-be-found"}, "the launcher nowhere-to-be-found cannot be found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.script != "" {
				aLauncher(t, test.command[0], test.script)
			}
			sandbox, err := New(Spec{Kind: Command, Command: test.command})
			must(t, err)
			err = sandbox.Check(t.Context(), tryRun)
			switch {
			case test.wrong == "" && err != nil:
				t.Error(err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
				t.Errorf("%v, want one with %q", err, test.wrong)
			}
		})
	}
}

// TestLauncherIsGivenTheSession: its folder, its environment and no other, its arguments,
// and its names in the launcher's own words; and nothing of the bot's but what launchers
// need.
func TestLauncherIsGivenTheSession(t *testing.T) {
	for name, there := range map[string]string{"launch": "{socket}", "ssh": "/s"} {
		t.Run(name, func(t *testing.T) {
			script := `export ANTHROPIC_API_KEY="the far key"; echo "launcher $1 $2 $3 with ${SLACK_BOT_TOKEN:-no token} $SSH_AUTH_SOCK"; shift 3; exec "$@"`
			if name == "ssh" {
				script = strings.Replace(script, `exec "$@"`, `exec /bin/sh -c "$*"`, 1)
			}
			aLauncher(t, name, script)
			t.Setenv("SLACK_BOT_TOKEN", "xoxb-secret")
			t.Setenv("SSH_AUTH_SOCK", "/agent.sock")
			sandbox, err := New(Spec{Kind: Command, Command: []string{name, "pod-{name}", "{workspace}:{home}", there}})
			must(t, err)
			workspace := filepath.Join(t.TempDir(), "it's a workspace")
			must(t, os.Mkdir(workspace, 0o700))
			s := Session{Name: "deckhand-7", Workspace: workspace, Home: "/h", Socket: "/s", Program: []string{"/bin/sh", "-c"}, Env: []string{"A=" + awkward, "B="}}
			box, err := sandbox.Prepare(t.Context(), s)
			must(t, err)
			cmd := exec.CommandContext(t.Context(), box.Command[0], append(box.Command[1:], `pwd; echo "$1"; /usr/bin/env`, "sh", "two\nlines\n")...)
			cmd.Env = box.Env
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, errOut.Bytes())
			}
			lines := strings.Split(string(out), "\n")
			begin := []string{"launcher pod-deckhand-7 " + workspace + ":/h /s with no token /agent.sock", workspace, "two", "lines", ""}
			if len(lines) < len(begin) || !slices.Equal(lines[:len(begin)], begin) {
				t.Fatalf("%q, want it to begin with %q", lines, begin)
			}
			for _, entry := range lines[len(begin):] {
				switch name, _, _ := strings.Cut(entry, "="); name {
				case "A", "B", "PWD", "SHLVL", "_", "OLDPWD", "": // the shell's own, but for the first two
				default:
					t.Errorf("%s is in its environment", entry)
				}
			}
			if !slices.Contains(lines, "A="+awkward) {
				t.Errorf("%q has no A=%s", lines, awkward)
			}
		})
	}
}
