package settings

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
	"go.uber.org/zap/zapcore"

	"deckhand/internal/accounts"
	"deckhand/internal/agent/place"
	"deckhand/internal/gateway"
	"deckhand/internal/spelling"
	"deckhand/internal/store/pg"
)

// Environment is the bot's environment: secrets, addresses and folders. deckhand.yaml has what the team agrees on.
type Environment struct {
	SlackBotToken string `envconfig:"SLACK_BOT_TOKEN"`
	SlackAppToken string `envconfig:"SLACK_APP_TOKEN"`
	SlackAPIURL   string `envconfig:"SLACK_API_URL"`
	DatabaseURL   string `envconfig:"DATABASE_URL"`
	// DatabaseDirectURL bypasses a pooler, for session-level features.
	DatabaseDirectURL string `envconfig:"DATABASE_DIRECT_URL"`

	AnthropicBaseURL string `envconfig:"ANTHROPIC_BASE_URL"`
	// AnthropicAdminKey is for bot report reconcile; the bot only masks it.
	AnthropicAdminKey string `envconfig:"ANTHROPIC_ADMIN_KEY"`
	ClaudeCommand     string `envconfig:"CLAUDE_COMMAND" default:"claude"`

	ConfigFile string `envconfig:"DECKHAND_CONFIG" default:"deckhand.yaml"`
	DataDir    string `envconfig:"DECKHAND_DATA_DIR" default:"/var/lib/deckhand"`
	Listen     string `envconfig:"DECKHAND_LISTEN" default:"127.0.0.1:8080"`
	LogLevel   string `envconfig:"DECKHAND_LOG_LEVEL" default:"info"`
	LogFormat  string `envconfig:"DECKHAND_LOG_FORMAT" default:"json"`

	// WebhookListen is where forges deliver their webhooks; empty for nowhere.
	WebhookListen string `envconfig:"DECKHAND_WEBHOOK_LISTEN"`

	// The gateway's own listener, for sandboxes that no socket reaches.
	GatewayListen string `envconfig:"DECKHAND_GATEWAY_LISTEN"`
	GatewayURL    string `envconfig:"DECKHAND_GATEWAY_URL"`
	GatewayCert   string `envconfig:"DECKHAND_GATEWAY_CERT"`
	GatewayKey    string `envconfig:"DECKHAND_GATEWAY_KEY"`
	// TokenKey encrypts the tokens of people's accounts at forges.
	TokenKey string `envconfig:"DECKHAND_TOKEN_KEY"`
	// Values that may not parse come last, see ReadEnvironment.
	IdleTimeout time.Duration `envconfig:"DECKHAND_IDLE_TIMEOUT" default:"30m"`
	ParkAfter   time.Duration `envconfig:"DECKHAND_PARK_AFTER" default:"5m"`
	CLITimeout  time.Duration `envconfig:"DECKHAND_CLI_TIMEOUT" default:"30s"`
	// PullEvery is how often a forge is asked about a pull request that has changed lately.
	PullEvery time.Duration `envconfig:"DECKHAND_FORGE_EVERY" default:"30s"`
	// DrainTimeout is how long turns may go on when the bot is to stop.
	DrainTimeout time.Duration `envconfig:"DECKHAND_DRAIN_TIMEOUT" default:"30s"`
	// LeaseTime is how long a replica may be silent before it counts as dead.
	LeaseTime time.Duration `envconfig:"DECKHAND_LEASE_TIME" default:"15s"`
	// CatchUp is the maximum age of a missed message that is still handled.
	CatchUp time.Duration `envconfig:"DECKHAND_CATCH_UP" default:"1h"`
	MaxLive int           `envconfig:"DECKHAND_MAX_LIVE_SESSIONS" default:"20"`
	Starts  int           `envconfig:"DECKHAND_STARTS_AT_ONCE" default:"0"` // 0: the number of cores
}

// leastLease is the shortest lease that works on a busy machine.
const leastLease = 3 * time.Second

// leastCatchUp is longer than Slack's own retries, and mostCatchUp the longest scan.
const leastCatchUp, mostCatchUp = 10 * time.Minute, 24 * time.Hour

// ReadEnvironment reads and checks the environment. Its error is [Problems], one per variable with its cure; it
// never quotes a secret. The readable part is returned with it.
func ReadEnvironment() (Environment, error) {
	var e Environment
	var wrong Problems
	need := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	if err := envconfig.Process("", &e); err != nil {
		bad, ok := errors.AsType[*envconfig.ParseError](err)
		if !ok {
			return e, err
		}
		kind := map[string]string{"time.Duration": "a duration such as 30m", "int": "a whole number such as 20"}[bad.TypeName]
		if errors.Is(bad.Err, strconv.ErrRange) {
			kind = fmt.Sprintf("between 0 and %d", math.MaxInt)
		}
		need(false, "%s: %q is not %s", bad.KeyName, bad.Value, kind)
		// Parsing stopped there; these were not read.
		e.IdleTimeout, e.ParkAfter, e.CLITimeout, e.MaxLive = max(e.IdleTimeout, time.Second), max(e.ParkAfter, time.Second), max(e.CLITimeout, time.Second), max(e.MaxLive, 1)
		e.PullEvery = max(e.PullEvery, time.Second)
		e.LeaseTime, e.CatchUp = max(e.LeaseTime, leastLease), max(e.CatchUp, leastCatchUp)
	}
	need(strings.HasPrefix(e.SlackBotToken, "xoxb-"), "SLACK_BOT_TOKEN: set it to the Slack app's bot token, xoxb-… (OAuth & Permissions)")
	need(strings.HasPrefix(e.SlackAppToken, "xapp-"), "SLACK_APP_TOKEN: set it to an app-level token, xapp-…, with connections:write (Basic Information)")
	if err := pg.CheckURL(e.DatabaseURL); err != nil {
		need(false, "DATABASE_URL: %v", err)
	}
	if err := pg.CheckURL(e.DatabaseDirectURL); err != nil && e.DatabaseDirectURL != "" {
		need(false, "DATABASE_DIRECT_URL: %v", err)
	}
	for _, address := range []struct{ name, value string }{{"SLACK_API_URL", e.SlackAPIURL}, {"ANTHROPIC_BASE_URL", e.AnthropicBaseURL}} {
		u, err := url.Parse(address.value)
		need(address.value == "" || (err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""), "%s: this is not an http(s) address; write one such as https://host", address.name)
	}
	if _, _, err := net.SplitHostPort(e.Listen); err != nil {
		need(false, "DECKHAND_LISTEN: %q is not host:port; write 127.0.0.1:8080, or :8080 for every interface", e.Listen)
	}
	if _, _, err := net.SplitHostPort(e.WebhookListen); err != nil && e.WebhookListen != "" {
		need(false, "DECKHAND_WEBHOOK_LISTEN: %q is not host:port; write 127.0.0.1:8081, and have your proxy pass /webhooks/ on to it", e.WebhookListen)
	}
	if err := e.Gateway().Check(); err != nil {
		need(false, "%v", err)
	}
	if _, err := accounts.ParseKey(e.TokenKey); err != nil && e.TokenKey != "" {
		need(false, "DECKHAND_TOKEN_KEY: %v", err)
	}
	need(filepath.IsAbs(e.DataDir), "DECKHAND_DATA_DIR: %q is not an absolute path", e.DataDir)
	need(e.IdleTimeout >= time.Second, "DECKHAND_IDLE_TIMEOUT: %s is too short; write at least 1s", e.IdleTimeout)
	need(e.ParkAfter >= time.Second, "DECKHAND_PARK_AFTER: %s is too short; write at least 1s", e.ParkAfter)
	need(e.PullEvery >= time.Second, "DECKHAND_FORGE_EVERY: %s is too short; write at least 1s", e.PullEvery)
	need(e.CLITimeout >= time.Second, "DECKHAND_CLI_TIMEOUT: %s is too short; write at least 1s", e.CLITimeout)
	need(e.DrainTimeout >= 0, "DECKHAND_DRAIN_TIMEOUT: %s is negative; write 0s, or how long turns may go on when the bot stops", e.DrainTimeout)
	need(e.LeaseTime >= leastLease, "DECKHAND_LEASE_TIME: %s is too short; write at least %s", e.LeaseTime, leastLease)
	need(e.CatchUp >= leastCatchUp && e.CatchUp <= mostCatchUp, "DECKHAND_CATCH_UP: %s is not between %s and %s; Slack itself delivers again for six minutes", e.CatchUp, leastCatchUp, mostCatchUp)
	need(e.Starts >= 0, "DECKHAND_STARTS_AT_ONCE: %d is too few; write at least 1, or 0 for the number of cores", e.Starts)
	need(e.MaxLive >= 1, "DECKHAND_MAX_LIVE_SESSIONS: %d is too few; write at least 1", e.MaxLive)
	if _, err := zapcore.ParseLevel(e.LogLevel); err != nil {
		need(false, "DECKHAND_LOG_LEVEL: %q is not a level; write debug, info, warn or error", e.LogLevel)
	}
	need(e.LogFormat == "json" || e.LogFormat == "console", "DECKHAND_LOG_FORMAT: %q is not a format; write json or console", e.LogFormat)
	need(strings.TrimSpace(e.ClaudeCommand) != "", "CLAUDE_COMMAND: set it to the Claude Code program, with a launcher before it if there is one")
	if len(wrong) > 0 {
		return e, wrong
	}
	return e, nil
}

// Problems are sentences.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// others are DECKHAND_… variables read by scripts and compose.
var others = []string{"DECKHAND_VERSION", "DECKHAND_CACHE", "DECKHAND_PG_BIN"}

// Misspelt suggests, for each unknown variable in environ that begins with DECKHAND_, the one that was meant.
func Misspelt(environ []string) []string {
	var known, out []string
	for f := range reflect.TypeFor[Environment]().Fields() {
		if name := f.Tag.Get("envconfig"); strings.HasPrefix(name, "DECKHAND_") {
			known = append(known, name)
		}
	}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "DECKHAND_") || slices.Contains(known, name) || slices.Contains(others, name) ||
			strings.HasPrefix(name, "DECKHAND_TEST_") || strings.HasPrefix(name, "DECKHAND_BENCH_") {
			continue
		}
		if near := spelling.Nearest(name, known); near != "" {
			out = append(out, fmt.Sprintf("%s: nothing reads this variable; did you mean %s?", name, near))
		} else {
			out = append(out, fmt.Sprintf("%s: nothing reads this variable; there are %s", name, strings.Join(known, ", ")))
		}
	}
	slices.Sort(out)
	return out
}

// Gateway is the gateway's listener; the zero value if there is none.
func (e Environment) Gateway() gateway.Listen {
	return gateway.Listen{Address: e.GatewayListen, URL: e.GatewayURL, CertFile: e.GatewayCert, KeyFile: e.GatewayKey}
}

// Secrets are the values to mask in Slack and in the log: the bot's, the providers', and those of variables that
// projects pass on or send to MCP servers.
func (e Environment) Secrets(projects map[string]place.Project) []string {
	out := append(gateway.Provider{}.Secrets(os.Getenv), e.SlackBotToken, e.SlackAppToken, e.AnthropicAdminKey, e.TokenKey)
	for _, address := range []string{e.DatabaseURL, e.DatabaseDirectURL} {
		if u, err := url.Parse(address); err == nil {
			if password, ok := u.User.Password(); ok {
				out = append(out, password)
			}
		}
	}
	for _, p := range projects {
		out = append(out, p.Provider.Secrets(os.Getenv)...)
		for _, name := range p.Env {
			out = append(out, os.Getenv(name))
		}
		out = append(out, mcpSecrets(p)...)
		out = append(append(out, p.Access.Secrets()...), os.Getenv(p.PullRequests.WebhookSecretEnv))
	}
	return append(out, e.DatabaseURL, e.DatabaseDirectURL)
}

// Direct is the database's URL that bypasses a pooler.
func (e Environment) Direct() string { return cmp.Or(e.DatabaseDirectURL, e.DatabaseURL) }

// Command is the CLI with its launcher, word by word.
func (e Environment) Command() []string { return SplitCommand(e.ClaudeCommand) }

// SplitCommand splits a command at spaces into a launcher's arguments and the program, unless it is an existing
// program's path.
func SplitCommand(s string) []string {
	if _, err := exec.LookPath(s); err == nil {
		return []string{s}
	}
	return strings.Fields(s)
}
