package claude

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Options says how to start the CLI. Command, Dir and SessionID are required.
type Options struct {
	// Command is the program and what stands before it: {"/…/claude"} or
	// {"bwrap", …, "/…/claude"}. The flags of the protocol are added at the end.
	Command []string
	// Dir is the working directory; it must exist.
	Dir string
	// AddDirs are further folders that it works in. Nothing that lies in them is loaded.
	AddDirs []string
	// Env is the whole environment, as NAME=value; see [Environ].
	Env []string
	// Version is the CLI's version where it is known, as [Version] returns it.
	// Requests that it does not have then fail at once.
	Version string

	// SessionID is a UUID chosen by the host: the session to begin, or with
	// Resume the one to continue.
	SessionID string
	Resume    bool

	// Model, PermissionMode and AppendSystemPrompt are the flags of those names;
	// empty leaves the CLI's default.
	Model, PermissionMode, AppendSystemPrompt string
	// Tools are the built-in tools that the model is offered; none is all.
	Tools []string
	// DisallowedTools are built-in tools that the model is not offered.
	DisallowedTools []string
	// MCPConfig is a JSON text or a file's path. Only its servers are used.
	MCPConfig string
	// SkipWebFetchPreflight keeps WebFetch from asking Anthropic whether a domain may be
	// fetched.
	SkipWebFetchPreflight bool
	// MaxTurns bounds the calls of the model in a turn; 0 does not.
	MaxTurns int

	// Logger gets what people who run the bot should know; nil is none. It
	// never gets the content of a conversation.
	Logger *zap.Logger

	// RequestTimeout bounds a control request (default 10s) and
	// InitializeTimeout the first one (default 30s).
	RequestTimeout, InitializeTimeout time.Duration
	// WriteTimeout bounds how long the CLI may leave its input unread before
	// a write fails (default 30s).
	WriteTimeout time.Duration
	// MaxLine is the longest line of output allowed, in bytes (default 64 MiB).
	MaxLine int
	// SilenceAfter is how long the CLI may say nothing while it should speak
	// before a [Silence] is handed out (default 5m; negative: never).
	SilenceAfter time.Duration
	// StopGrace are the waits of [Process.Stop].
	StopGrace StopGrace
	// Lifeline ends the process if its host is stopped; nil for none.
	Lifeline *Lifeline
}

// StopGrace are the waits between the steps of [Process.Stop].
type StopGrace struct {
	// Close is how long the CLI may take to exit by itself once its input was
	// closed (default 5s; none is waited while a turn runs, since it would go
	// on to its end), Term how long after SIGTERM (default 3s), Kill how long
	// the reaper may take to remove the tree before it is removed from here
	// (default 3s).
	Close, Term, Kill time.Duration
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case len(o.Command) == 0:
		return o, errors.New("start claude: no command")
	case !isUUID(o.SessionID):
		return o, fmt.Errorf("start claude: session id %q is no UUID", o.SessionID)
	}
	if info, err := os.Stat(o.Dir); err != nil {
		return o, fmt.Errorf("start claude: working directory: %w", err)
	} else if !info.IsDir() {
		return o, fmt.Errorf("start claude: working directory %s is no directory", o.Dir)
	}
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	preset(&o.RequestTimeout, 10*time.Second)
	preset(&o.InitializeTimeout, 30*time.Second)
	preset(&o.WriteTimeout, 30*time.Second)
	preset(&o.MaxLine, 64<<20)
	preset(&o.SilenceAfter, 5*time.Minute)
	preset(&o.StopGrace.Close, 5*time.Second)
	preset(&o.StopGrace.Term, 3*time.Second)
	preset(&o.StopGrace.Kill, 3*time.Second)
	return o, nil
}

func preset[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, r := range s {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (r == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return false
		}
	}
	return true
}

// arguments returns the CLI's flags: an unknown one ends it at once.
func (o Options) arguments() []string {
	args := []string{
		"-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose",
		"--permission-prompt-tool", "stdio", "--include-partial-messages", "--strict-mcp-config",
		"--setting-sources", "", // none: what a command wrote into the home folder must not decide about the next
	}
	session := "--session-id"
	if o.Resume {
		session = "--resume"
	}
	args = append(args, session, o.SessionID)
	option := func(name, value string) {
		if value != "" {
			args = append(args, name, value)
		}
	}
	for _, dir := range o.AddDirs {
		option("--add-dir", dir)
	}
	option("--model", o.Model)
	option("--permission-mode", o.PermissionMode)
	option("--append-system-prompt", o.AppendSystemPrompt)
	option("--mcp-config", o.MCPConfig)
	option("--tools", strings.Join(o.Tools, ","))
	option("--disallowedTools", strings.Join(o.DisallowedTools, ","))
	// In auto mode, which plan mode uses, a model of the provider's would decide what may run.
	option("--settings", fmt.Sprintf(`{"disableAutoMode":"disable","skipWebFetchPreflight":%t}`, o.SkipWebFetchPreflight))
	if o.MaxTurns > 0 {
		option("--max-turns", strconv.Itoa(o.MaxTurns))
	}
	return args
}
