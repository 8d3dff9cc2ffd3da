package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAVersionIsSaidBriefly: what does not stop talking is not listened to.
func TestAVersionIsSaidBriefly(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo 2.1.329 '(Claude Code)'": "",
		"exec yes":                     "it does not stop talking",
		"trap '' PIPE; echo 1.2.3; while :; do echo x; done": "it does not stop talking",
		"echo nothing": "names none",
		"exit 3":       "exit status 3",
	} {
		program := filepath.Join(t.TempDir(), "claude")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		v, err := Version(t.Context(), []string{program})
		switch {
		case want == "" && (err != nil || v != "2.1.329"):
			t.Errorf("%s: %q, %v", script, v, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300):
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}
