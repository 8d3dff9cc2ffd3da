package sandbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/agent/claude/reaper"
	"deckhand/internal/scratch"
	"deckhand/internal/waittest"
)

func init() { roles["checks"] = checkForEver }

// checkForEver is a bot that tries its sandbox again and again.
func checkForEver() error {
	sandbox, err := New(Spec{Kind: Kind(os.Getenv("KIND"))})
	if err != nil {
		return err
	}
	for {
		if err := sandbox.Check(context.Background(), tryRun); err != nil {
			return err
		}
		fmt.Println("checked")
	}
}

// killedChecks is how many bots each kind's test kills.
const killedChecks = 4

// TestAKilledCheckLeavesNothing: whenever the bot is killed while it tries a sandbox, no
// process of that is left, and no folder after the next start has swept.
func TestAKilledCheckLeavesNothing(t *testing.T) {
	for _, kind := range []Kind{Bwrap, GVisor} {
		t.Run(string(kind), func(t *testing.T) {
			theProgram(t, map[Kind]string{Bwrap: "bwrap", GVisor: "runsc"}[kind])
			dir, err := os.MkdirTemp("", "deckhand-test-") // short, for runsc's socket
			must(t, err)
			t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
			t.Setenv("TMPDIR", dir)
			self, err := os.Executable()
			must(t, err)
			for range killedChecks {
				bot := exec.CommandContext(t.Context(), self)
				bot.Env = append(os.Environ(), roleVariable+"=checks", "KIND="+string(kind))
				bot.Stderr = os.Stderr
				out, err := bot.StdoutPipe()
				must(t, err)
				must(t, bot.Start())
				_, err = out.Read(make([]byte, 1)) // it has come that far once
				must(t, err)
				time.Sleep(time.Duration(rand.IntN(60_000)) * time.Microsecond) // any moment of the next ones
				tree := reaper.Descendants(bot.Process.Pid)
				must(t, bot.Process.Kill())
				_ = bot.Wait() // killed, as we know
				limit := time.Now().Add(waittest.Limit)
				for {
					tree = slices.DeleteFunc(tree, func(pid int) bool { return syscall.Kill(pid, 0) != nil })
					if len(tree) == 0 && len(withinFolder(t, dir)) == 0 {
						break
					}
					if time.Now().After(limit) {
						t.Fatalf("processes %v and %q are left", tree, withinFolder(t, dir))
					}
					time.Sleep(time.Millisecond)
				}
				// A child that was forked at that moment holds the locks until it runs its program.
				for must(t, scratch.Sweep()); ; must(t, scratch.Sweep()) {
					left, _ := filepath.Glob(filepath.Join(dir, "*"))
					if len(left) == 0 {
						break
					}
					if time.Now().After(limit) {
						t.Fatalf("%q is left", left)
					}
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
}

// withinFolder are the processes whose environment or arguments name a folder.
func withinFolder(t *testing.T, dir string) (out []string) {
	t.Helper()
	for _, what := range []string{"cmdline", "environ"} {
		files, err := filepath.Glob("/proc/[0-9]*/" + what)
		must(t, err)
		for _, file := range files {
			text, _ := os.ReadFile(file) // it may have ended
			if strings.Contains(string(text), dir+"/") {
				out = append(out, file+": "+strings.ReplaceAll(string(text), "\x00", " "))
			}
		}
	}
	return out
}
