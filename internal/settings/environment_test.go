package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// setenv sets what the environment needs, and more.
func setenv(t *testing.T, more map[string]string) {
	t.Helper()
	for name, value := range map[string]string{
		"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1", "DATABASE_URL": "postgres://u:p@h/d", "SLACK_API_URL": "", "ANTHROPIC_BASE_URL": "",
	} {
		t.Setenv(name, value)
	}
	for name, value := range more {
		t.Setenv(name, value)
	}
}

// Every mistake is told, and nothing that is secret.
func TestTheEnvironmentIsCheckedWhole(t *testing.T) {
	const canary = "c4n4ry"
	setenv(t, map[string]string{
		"SLACK_BOT_TOKEN": canary, "SLACK_APP_TOKEN": "xoxb-" + canary, "DATABASE_URL": "postgres://u:" + canary + "/x@h/d",
		"ANTHROPIC_BASE_URL": "ftp://u:" + canary + "@h", "DECKHAND_LISTEN": "8080", "DECKHAND_DATA_DIR": "data",
		"DECKHAND_LOG_LEVEL": "loud", "DECKHAND_LOG_FORMAT": "xml", "DECKHAND_IDLE_TIMEOUT": "soon", "CLAUDE_COMMAND": " ",
	})
	_, err := ReadEnvironment()
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{
		"SLACK_BOT_TOKEN: set it", "SLACK_APP_TOKEN: set it", "DATABASE_URL: user or password have characters", "%2F for /", "ANTHROPIC_BASE_URL: this is not",
		`DECKHAND_LISTEN: "8080" is not host:port`, `DECKHAND_DATA_DIR: "data"`, `"loud" is not a level`, `"xml" is not a format`,
		`DECKHAND_IDLE_TIMEOUT: "soon" is not a duration`, "CLAUDE_COMMAND: set it",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q", want)
		}
	}
	if strings.Contains(err.Error(), canary) {
		t.Error("the error has a secret")
	}
	if strings.Contains(err.Error(), "MAX_LIVE") {
		t.Error("what was not read is called wrong")
	}
	if t.Failed() {
		t.Logf("the error:\n%v", err)
	}
}

func TestVariablesThatNothingReads(t *testing.T) {
	t.Parallel()
	got := Misspelt([]string{
		"DECKHAND_DATADIR=/x", "DECKHAND_LISTEN=:1", "DECKHAND_TEST_REQUIRE=1", "DECKHAND_CACHE=/c", "DECKHAND_BANANA=x", "PATH=/bin", "DECKHAND_VERSION=1",
	})
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " DECKHAND_CONFIG,")
	}
	want := []string{
		"DECKHAND_BANANA: nothing reads this variable; there are",
		"DECKHAND_DATADIR: nothing reads this variable; did you mean DECKHAND_DATA_DIR?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
