package slack_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/slack"
	"deckhand/internal/waittest"
)

// boltFolder finds Slack's Node SDK: DECKHAND_TEST_BOLT, or the cache of
// install.sh, which is filled only when all tools are required.
func boltFolder(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("DECKHAND_TEST_BOLT"); dir != "" {
		return dir
	}
	script, err := filepath.Abs("../bolt/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{script, "--cached"}
	if needtest.Required() {
		args = args[:1]
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		needtest.Missing(t, "Slack's Node SDK is not there: "+errs.String())
	}
	return strings.TrimSpace(string(out))
}

func TestSlacksOwnNodeSDKWorksAgainstTheWorkspace(t *testing.T) {
	t.Parallel()
	node := needtest.Program(t, "node")
	dir := boltFolder(t)
	srv, err := slack.New(slack.Options{Log: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.Handler())
	defer web.Close()
	defer func() {
		if err := srv.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "../bolt/check.mjs")
	cmd.Env = append(os.Environ(), "BOLT_DIR="+dir, "PLAYGROUND_URL="+web.URL, "NO_PROXY=127.0.0.1", "NODE_ENV=test")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if err != nil || !strings.Contains(out.String(), "\n1..") || strings.Contains(out.String(), "not ok") {
		t.Errorf("the check failed: %v\n%s\n%s", err, out.String(), errs.String())
	}
	t.Log("\n" + out.String())
}
