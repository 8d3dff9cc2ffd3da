package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/doctor"
	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// TestACLIThatMisbehaves: whatever the CLI does, there is a sentence in the
// thread, the whole error in the log, and the next message is tried again.
func TestACLIThatMisbehaves(t *testing.T) {
	t.Parallel()
	cli := needtest.Claude(t)
	type behaviour struct{ name, script, sentence, log string }
	for _, tt := range []struct {
		name     string
		patience time.Duration
		ways     []behaviour
	}{
		{"speaks", waittest.Limit, []behaviour{
			{"exits at once", `echo "boom: no such thing" >&2; exit 3`, "Claude Code", "boom: no such thing"},
			{"prints garbage", `echo "<<<not json>>>"; echo "{broken"; exit 1`, "Claude Code", "start the session"},
			{"is not logged in", `unset ANTHROPIC_API_KEY ANTHROPIC_BASE_URL; exec "` + cli + `" "$@"`, "log", ""},
		}},
		{"is silent", 5 * time.Second, []behaviour{{"hangs", `sleep 600`, startsLater, "no answer"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := unstartedWorld(t)
			// The script starts the real one, which is elsewhere.
			w.configure("sandbox: {see: ["+filepath.Dir(cli)+"]}", "")
			w.patience = tt.patience
			fake := filepath.Join(w.dir, "claude")
			for _, way := range tt.ways {
				script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && exec \"%s\" --version\n%s\n", cli, way.script)
				if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
				if w.cmd == nil {
					w.start("--claude", fake)
				}
				t.Run(way.name, func(t *testing.T) {
					own := *w
					own.t = t
					misbehaves(t, &own, way.sentence, way.log)
				})
			}
		})
	}
}

// startsLater is what a thread says whose CLI does not answer, as on a machine that is busy.
const startsLater = "Claude Code did not start: "

func misbehaves(t *testing.T, w *world, sentence, log string) {
	t.Helper()
	for range 2 {
		thread := w.post(linus, eng, "", "@deckhand say: hello")
		if sentence == startsLater {
			w.says(eng, thread, sentence) // for a quarter of an hour
			w.post(linus, eng, thread, "@deckhand stop")
			w.find(eng, thread, "the stop to be marked", func(m message) bool { return m.TS == thread && m.reacted("black_square_for_stop") })
			continue
		}
		w.find(eng, thread, "the failure to be marked", func(m message) bool { return m.TS == thread && m.reacted("warning") })
		w.says(eng, thread, sentence)
	}
	if said, err := os.ReadFile(filepath.Join(w.dir, "bot.log")); err != nil || !strings.Contains(string(said), log) {
		t.Errorf("the log does not say %q: %v", log, err)
	}
	w.doneWithAll()
}

// TestAProjectFolderThatIsGone: the thread says so, and works once it is back.
func TestAProjectFolderThatIsGone(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	gone := filepath.Join(w.dir, "gone")
	config := fmt.Sprintf("projects:\n  web:\n    dir: %s\nchannels:\n  %s: web\nroles:\n  users: [%s]\n", gone, eng, linus)
	if err := os.WriteFile(filepath.Join(w.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	thread := w.post(linus, eng, "", "@deckhand say: hello")
	w.says(eng, thread, "does not exist")
	if err := os.Mkdir(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	again := w.post(linus, eng, thread, "say: it is back")
	w.says(eng, thread, "it is back")
	w.done(eng, thread, again)
}

// minimal is the least that a deckhand.yaml says.
const minimal = "projects: {web: {dir: /srv/web}}\nchannels: {C0123: web}\nroles: {users: [U0123]}\n"

func deckhandYAML(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "deckhand.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestStartErrors: each is one clear sentence that names what to change, with
// exit code 1 and no secret in it.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]string{
		asBot: "1", "PATH": os.Getenv("PATH"), "HOME": t.TempDir(),
		"SLACK_BOT_TOKEN": "xoxb-secret-token", "SLACK_APP_TOKEN": "xapp-secret-token", "DATABASE_URL": "postgres://u:secret-word@127.0.0.1:1/d?connect_timeout=2",
		"DECKHAND_CONFIG": deckhandYAML(t, minimal), "DECKHAND_DATA_DIR": t.TempDir(), "CLAUDE_COMMAND": needtest.Claude(t), "SLACK_API_URL": "http://127.0.0.1:1/api/",
	}
	old := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho '2.0.0 (Claude Code)'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change map[string]string
		want   string
	}{
		{"nothing is set", map[string]string{"SLACK_BOT_TOKEN": "", "SLACK_APP_TOKEN": "", "DATABASE_URL": ""}, "SLACK_BOT_TOKEN: set it"},
		{"the tokens are swapped", map[string]string{"SLACK_BOT_TOKEN": "xapp-secret-token"}, "SLACK_BOT_TOKEN: set it to the Slack app's bot token"},
		{"a time without a unit", map[string]string{"DECKHAND_IDLE_TIMEOUT": "30"}, "DECKHAND_IDLE_TIMEOUT"},
		{"a level that is none", map[string]string{"DECKHAND_LOG_LEVEL": "loud"}, "DECKHAND_LOG_LEVEL"},
		{"no configuration", map[string]string{"DECKHAND_CONFIG": "/nowhere/deckhand.yaml"}, "there is no file /nowhere/deckhand.yaml"},
		{"no CLI", map[string]string{"CLAUDE_COMMAND": "/nowhere/claude"}, "CLAUDE_COMMAND: /nowhere/claude does not run"},
		{"an old CLI", map[string]string{"CLAUDE_COMMAND": old}, "Claude Code 2.0.0 is too old"},
		{"no database", nil, "DATABASE_URL: nothing listens at 127.0.0.1:1: start PostgreSQL"},
		{"no URL", map[string]string{"DATABASE_URL": "postgres://u:secret-word@[x"}, "DATABASE_URL: this is not a PostgreSQL URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, "run")
			for k, v := range good {
				if c, ok := tt.change[k]; ok {
					v = c
				}
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			for k, v := range tt.change {
				if _, ok := good[k]; !ok {
					cmd.Env = append(cmd.Env, k+"="+v)
				}
			}
			cmd.Env = append(cmd.Env, "DECKHAND_DATA_DIR="+t.TempDir())
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("it ended with %v", err)
			}
			if !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("it says %q, want %q", stderr.String(), tt.want)
			}
			if strings.Contains(stderr.String(), "secret") {
				t.Errorf("it tells a secret: %s", stderr.String())
			}
		})
	}
}

// What bot doctor calls ✗ is what bot run refuses, in the same words, and all of it.
func TestTheDoctorSaysWhatRunRefuses(t *testing.T) {
	t.Parallel()
	env := []string{
		"SLACK_BOT_TOKEN=xoxb-secret", "SLACK_APP_TOKEN=xapp-secret", "SLACK_API_URL=http://127.0.0.1:1/api/", "DATABASE_URL=postgres://u:secret@127.0.0.1:1/d",
		"DECKHAND_CONFIG=" + deckhandYAML(t, minimal+"polciy: {}\n"), "DECKHAND_DATA_DIR=/dev/null/x", "CLAUDE_COMMAND=/nowhere/claude", "DECKHAND_LISTEN=127.0.0.1:0", "DECKHAND_CLI_TIMEOUT=30s",
	}
	out, errOut, code := program(t, env, "doctor", "--json")
	var found struct {
		OK     bool
		Checks []doctor.Finding
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.OK || code != 1 || !strings.Contains(errOut, "checks failed") {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errOut)
	}
	_, refusal, refused := program(t, env, "run")
	failed := 0
	for _, f := range found.Checks {
		if f.Status != doctor.Failed {
			continue
		}
		failed++
		if !strings.Contains(refusal, "✗ "+f.Text) {
			t.Errorf("run does not refuse %q", f.Text)
		}
	}
	if refused != 1 || failed != 5 || strings.Count(refusal, "✗") != failed {
		t.Errorf("exit %d, the doctor found %d, run says:\n%s", refused, failed, refusal)
	}
	if strings.Contains(out+errOut+refusal, "secret") {
		t.Errorf("a secret:\n%s%s%s", out, errOut, refusal)
	}
	if out, _, _ := program(t, env, "doctor"); !strings.Contains(out, `✗ configuration: `) || !strings.Contains(out, `did you mean "policy"?`) || strings.Contains(out, "\x1b") {
		t.Errorf("in words:\n%s", out)
	}
}

// aWrongToken: Slack's refusal names the variable.
func aWrongToken(t *testing.T, w *world) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for variable, env := range map[string][]string{
		"SLACK_BOT_TOKEN": {"SLACK_BOT_TOKEN=xoxb-wrong", "SLACK_APP_TOKEN=" + w.AppToken},
		"SLACK_APP_TOKEN": {"SLACK_BOT_TOKEN=" + w.BotToken, "SLACK_APP_TOKEN=xapp-wrong"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
		cmd := exec.CommandContext(ctx, self, "run")
		cmd.Env = append(env, asBot+"=1", "PATH="+os.Getenv("PATH"), "DATABASE_URL="+w.DatabaseURL, "SLACK_API_URL="+w.SlackAPIURL,
			"CLAUDE_COMMAND="+needtest.Claude(t), "DECKHAND_CONFIG="+filepath.Join(w.dir, "deckhand.yaml"), "DECKHAND_DATA_DIR="+t.TempDir(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		cancel()
		if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "slack refuses "+variable) {
			t.Errorf("a wrong %s: %v: %s", variable, err, out)
		}
	}
}
