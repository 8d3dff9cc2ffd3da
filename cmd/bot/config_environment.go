package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
	"go.uber.org/zap/zapcore"
)

// environment is what `bot run` reads from the environment: secrets, addresses
// and folders. What the team agrees on stands in deckhand.yaml.
type environment struct {
	SlackBotToken string `envconfig:"SLACK_BOT_TOKEN"`
	SlackAppToken string `envconfig:"SLACK_APP_TOKEN"`
	SlackAPIURL   string `envconfig:"SLACK_API_URL"`
	DatabaseURL   string `envconfig:"DATABASE_URL"`

	AnthropicAPIKey  string `envconfig:"ANTHROPIC_API_KEY"`
	AnthropicBaseURL string `envconfig:"ANTHROPIC_BASE_URL"`
	ClaudeOAuthToken string `envconfig:"CLAUDE_CODE_OAUTH_TOKEN"`
	// AnthropicAdminKey is for bot report reconcile; the bot only keeps it secret.
	AnthropicAdminKey string `envconfig:"ANTHROPIC_ADMIN_KEY"`
	ClaudeCommand     string `envconfig:"CLAUDE_COMMAND" default:"claude"`

	ConfigFile  string        `envconfig:"DECKHAND_CONFIG" default:"deckhand.yaml"`
	DataDir     string        `envconfig:"DECKHAND_DATA_DIR" default:"/var/lib/deckhand"`
	Listen      string        `envconfig:"DECKHAND_LISTEN" default:"127.0.0.1:8080"`
	LogLevel    string        `envconfig:"DECKHAND_LOG_LEVEL" default:"info"`
	LogFormat   string        `envconfig:"DECKHAND_LOG_FORMAT" default:"json"`
	IdleTimeout time.Duration `envconfig:"DECKHAND_IDLE_TIMEOUT" default:"30m"`
	MaxLive     int           `envconfig:"DECKHAND_MAX_LIVE_SESSIONS" default:"20"`
}

// readEnvironment reads and checks the environment. Its error lists everything
// that is wrong, one variable a line, with what to write instead; it never
// quotes a secret.
func readEnvironment() (environment, error) {
	var e environment
	if err := envconfig.Process("", &e); err != nil {
		if bad, ok := errors.AsType[*envconfig.ParseError](err); ok {
			kind := map[string]string{"time.Duration": "a duration such as 30m", "int": "a whole number such as 20"}[bad.TypeName]
			return e, fmt.Errorf("%s: %q is not %s", bad.KeyName, bad.Value, kind)
		}
		return e, err
	}
	var wrong []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	need(strings.HasPrefix(e.SlackBotToken, "xoxb-"), "SLACK_BOT_TOKEN: set it to the Slack app's bot token, xoxb-… (OAuth & Permissions)")
	need(strings.HasPrefix(e.SlackAppToken, "xapp-"), "SLACK_APP_TOKEN: set it to an app-level token, xapp-…, with connections:write (Basic Information)")
	need(e.DatabaseURL != "", "DATABASE_URL: set it to the database, postgres://user:password@host:5432/database")
	for name, value := range map[string]string{"SLACK_API_URL": e.SlackAPIURL, "ANTHROPIC_BASE_URL": e.AnthropicBaseURL} {
		u, err := url.Parse(value)
		need(value == "" || (err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""), "%s: %q is not an http(s) address", name, value)
	}
	if _, _, err := net.SplitHostPort(e.Listen); err != nil {
		need(false, "DECKHAND_LISTEN: %q is not host:port; write 127.0.0.1:8080, or :8080 for every interface", e.Listen)
	}
	need(filepath.IsAbs(e.DataDir), "DECKHAND_DATA_DIR: %q is not an absolute path", e.DataDir)
	need(e.IdleTimeout >= time.Second, "DECKHAND_IDLE_TIMEOUT: %s is too short; write at least 1s", e.IdleTimeout)
	need(e.MaxLive >= 1, "DECKHAND_MAX_LIVE_SESSIONS: %d is too few; write at least 1", e.MaxLive)
	if _, err := zapcore.ParseLevel(e.LogLevel); err != nil {
		need(false, "DECKHAND_LOG_LEVEL: %q is not a level; write debug, info, warn or error", e.LogLevel)
	}
	need(e.LogFormat == "json" || e.LogFormat == "console", "DECKHAND_LOG_FORMAT: %q is not a format; write json or console", e.LogFormat)
	need(strings.TrimSpace(e.ClaudeCommand) != "", "CLAUDE_COMMAND: set it to the Claude Code program, with a launcher before it if there is one")
	if len(wrong) > 0 {
		return e, errors.New("the environment is not complete:\n  " + strings.Join(wrong, "\n  "))
	}
	return e, nil
}

// credentials are the variables that the CLI gets to reach its model.
func (e environment) credentials() map[string]string {
	out := map[string]string{}
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": e.AnthropicAPIKey, "ANTHROPIC_BASE_URL": e.AnthropicBaseURL, "CLAUDE_CODE_OAUTH_TOKEN": e.ClaudeOAuthToken,
	} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}

// secrets are the values that must never be seen in Slack or in the log.
func (e environment) secrets() []string {
	out := []string{e.SlackBotToken, e.SlackAppToken, e.AnthropicAPIKey, e.ClaudeOAuthToken, e.AnthropicAdminKey}
	if u, err := url.Parse(e.DatabaseURL); err == nil {
		if password, ok := u.User.Password(); ok {
			out = append(out, password)
		}
	}
	return append(out, e.DatabaseURL)
}

func (e environment) command() []string { return splitCommand(e.ClaudeCommand) }

// splitCommand splits a command at spaces, a launcher's words and the program,
// unless it is the path of a program as it stands.
func splitCommand(s string) []string {
	if _, err := exec.LookPath(s); err == nil {
		return []string{s}
	}
	return strings.Fields(s)
}
