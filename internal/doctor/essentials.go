package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/settings"
	"deckhand/internal/slackui"
	"deckhand/internal/store"
	"deckhand/internal/store/pg"
)

// LeastCLI is the oldest usable Claude Code: older ones read files mentioned as @path, and settings, without
// asking.
const LeastCLI = "2.1.329"

// CheckCLI asks the CLI for its version and refuses one that is too old.
func CheckCLI(ctx context.Context, command []string) (version string, err error) {
	v, err := claude.Version(ctx, command)
	if err != nil {
		return "", fmt.Errorf("CLAUDE_COMMAND: %s does not run (%w); install Claude Code with deploy/claude/install.sh, which prints the path to set", strings.Join(command, " "), err)
	}
	if claude.Older(v, LeastCLI) {
		return "", fmt.Errorf("CLAUDE_COMMAND: Claude Code %s is too old; Deckhand needs %s or newer: deploy/claude/install.sh installs the version it is tested with", v, LeastCLI)
	}
	return v, nil
}

func (d *Doctor) environment(context.Context) []Finding {
	const name = "environment"
	var out []Finding
	if d.EnvironmentErr != nil {
		out = problems(name, d.EnvironmentErr)
	}
	for _, text := range settings.Misspelt(d.Environ) {
		out = append(out, Finding{name, Warning, text})
	}
	if out == nil {
		out = []Finding{{name, OK, "every variable that is needed is set"}}
	}
	return out
}

func (d *Doctor) configuration(context.Context) []Finding {
	const name = "configuration"
	switch {
	case d.FileErr != nil:
		return problems(name, d.FileErr)
	case !d.File.AnybodyMay():
		return []Finding{{name, Warning, d.File.Where("$.roles") + ": nobody may use the bot; write user ids or user groups under roles"}}
	}
	return []Finding{{name, OK, fmt.Sprintf("%s: %d project(s), %d channel(s), %d rule(s)", d.File.Name, len(d.File.Projects), len(d.File.Access.Places.Channels), len(d.File.Policy.Rules))}}
}

// place checks the folder and the address together: a bot that runs with this folder may use the address, and is
// the one being examined.
func (d *Doctor) place(ctx context.Context) []Finding {
	const folder, address = "data folder", "address"
	inUse, err := place.CheckDataDir(d.Environment.DataDir)
	l, listening := (&net.ListenConfig{}).Listen(ctx, "tcp", d.Environment.Listen)
	if listening == nil {
		_ = l.Close()
	}
	_, _, malformed := net.SplitHostPort(d.Environment.Listen)
	ours := inUse && errors.Is(listening, syscall.EADDRINUSE) && isBot(ctx, d.Environment.Listen)

	found := Finding{folder, OK, d.Environment.DataDir}
	switch {
	case err != nil:
		found = Finding{folder, Failed, "DECKHAND_DATA_DIR: " + err.Error()}
	case ours:
		found.Text += ", in use by the bot that runs here"
	case inUse:
		found = Finding{folder, Failed, "DECKHAND_DATA_DIR: another bot uses the data folder " + d.Environment.DataDir + ": stop it, or name another folder"}
	}
	at := Finding{address, OK, d.Environment.Listen}
	switch {
	case ours:
		at.Text += ", where the bot that runs here answers"
	case malformed != nil:
		at = Finding{address, Skipped, "DECKHAND_LISTEN is not host:port, see environment"}
	case listening != nil:
		at = Finding{address, Failed, fmt.Sprintf("DECKHAND_LISTEN: %s: %s", d.Environment.Listen, cureListening(listening))}
	}
	out := []Finding{found, at}
	if n, bytes, err := agent.Workspaces(ctx, d.Environment.DataDir); err == nil && n > 0 {
		text := fmt.Sprintf("%d folder(s) of threads have %d MiB", n, bytes>>20)
		if l := d.File.Workspaces; l.MaxAge == 0 && l.MaxBytes == 0 {
			text += "; none is put away (workspaces.max_age, workspaces.max_size)"
		}
		out = append(out, Finding{"workspaces", OK, text})
	}
	return out
}

// cureListening says why an address cannot be used, with the cure.
func cureListening(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program listens there; stop it, or write another port"
	case errors.Is(err, syscall.EACCES):
		return "this user may not listen there; write a port above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address; write 127.0.0.1, or nothing before the colon for every interface"
	}
	return err.Error() + "; write host:port, such as 127.0.0.1:8080"
}

// isBot reports whether a Deckhand answers at an address.
func isBot(ctx context.Context, listen string) bool {
	url, err := HealthURL(listen)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close() //nolint:errcheck // it only reads
	var state struct{ Version, Slack, Database string }
	return json.NewDecoder(resp.Body).Decode(&state) == nil && state.Version != "" && state.Slack != "" && state.Database != ""
}

// HealthURL is the health endpoint of a bot listening at an address, for its own machine.
func HealthURL(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("DECKHAND_LISTEN: %q is not host:port", listen)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/healthz", nil
}

func (d *Doctor) cli(ctx context.Context) []Finding {
	const name = "Claude Code"
	if strings.TrimSpace(d.Environment.ClaudeCommand) == "" {
		return []Finding{{name, Skipped, "there is no CLAUDE_COMMAND to look at"}}
	}
	v, err := CheckCLI(ctx, d.Environment.Command())
	if err != nil {
		return problems(name, err)
	}
	d.CLIVersion = v
	return []Finding{{name, OK, v}}
}

func (d *Doctor) database(ctx context.Context) []Finding {
	const name = "database"
	if pg.CheckURL(d.Environment.DatabaseURL) != nil {
		return []Finding{{name, Skipped, "DATABASE_URL leads nowhere, see environment"}}
	}
	s, err := store.Open(ctx, d.Environment.DatabaseURL, store.Options{})
	if err != nil {
		return []Finding{{name, Failed, "DATABASE_URL: " + err.Error()}}
	}
	defer s.Close()
	err = s.CheckSchema(ctx)
	schema, isSchema := errors.AsType[*pg.SchemaError](err)
	switch {
	case isSchema && schema.Behind():
		return []Finding{{name, Warning, fmt.Sprintf("it answers, and its schema is %d of %d: bot run brings it up at its start, as bot migrate up does now", schema.Current, schema.Target)}}
	case err != nil:
		return []Finding{{name, Failed, "DATABASE_URL: " + err.Error()}}
	}
	return []Finding{{name, OK, "it answers, and its schema is this binary's"}}
}

func (d *Doctor) slack(ctx context.Context) []Finding {
	const name = "Slack"
	e := d.Environment
	if e.SlackBotToken == "" || e.SlackAppToken == "" {
		return []Finding{{name, Skipped, "there are no tokens to try, see environment"}}
	}
	w, err := slackui.Dial(ctx, slackui.Tokens{Bot: e.SlackBotToken, App: e.SlackAppToken, APIURL: e.SlackAPIURL})
	if err != nil {
		return problems(name, err)
	}
	d.Workspace = w
	return []Finding{{name, OK, "both tokens are taken, by the workspace " + w.Name()}}
}
