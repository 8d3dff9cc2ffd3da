package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/doctor"
	"deckhand/internal/freeport"
	"deckhand/internal/gateway"
	"deckhand/internal/playground"
	"deckhand/internal/playground/forge"
	"deckhand/internal/playground/postgres"
	"deckhand/internal/playground/sample"
	"deckhand/internal/playground/slack"
	"deckhand/internal/sandbox"
	"deckhand/internal/settings"
)

// demoOptions are the flags of `bot demo`.
type demoOptions struct {
	listen string
	dir    string
	json   bool
	fresh  bool
	only   string
	claude string
	pace   int
}

func demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run the bot in a Slack of its own on this machine, no account needed",
		Long: `Starts a Slack workspace, a scripted model, a private PostgreSQL and the bot on this
machine, and prints the address of a page. With ANTHROPIC_API_KEY it is the real
model; with DATABASE_URL that database.`,
		Example: `  bot demo
  bot demo --fresh --listen 127.0.0.1:9000
  bot demo --only slack`,
		Args: knownCommand,
	}
	var o demoOptions
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8065", "address of the page, on loopback; port 0 takes a free one")
	f.StringVar(&o.dir, "data", "", "folder that keeps everything for the next start (default: ~/.local/share/deckhand/demo)")
	f.BoolVar(&o.json, "json", false, "print one line of JSON when ready, for scripts")
	f.BoolVar(&o.fresh, "fresh", false, "forget what an earlier demo left in the folder")
	choiceFlag(c, &o.only, "only", "run one part alone, without a bot", "slack", "model")
	f.StringVar(&o.claude, "claude", "", "the Claude Code program (default: CLAUDE_COMMAND, else claude in PATH)")
	f.IntVar(&o.pace, "pace", 400, "the scripted model's speech, in characters a second; 0 is as fast as possible")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.claude = cmp.Or(o.claude, os.Getenv("CLAUDE_COMMAND"), "claude")
		o.dir = cmp.Or(o.dir, defaultDemoDir())
		return runDemo(c.Context(), c.OutOrStdout(), o)
	}
	return c
}

func runDemo(ctx context.Context, out io.Writer, o demoOptions) error {
	d, err := startDemo(ctx, o)
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.announce(out); err != nil {
		return err
	}
	<-ctx.Done()
	if !o.json {
		fmt.Fprintln(out, "\nStopping.")
	}
	return nil
}

func defaultDemoDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share")), "deckhand", "demo")
}

// demo is the playground, a private Postgres, and the bot in a process of its
// own: exactly what runs in production, started by `bot run`.
type demo struct {
	o          demoOptions
	log        *zap.Logger
	db         *keptDatabase // nil when DATABASE_URL is set
	url        string        // of the database
	playground *playground.Playground
	bot        *child
	realModel  bool
	writing    sync.Mutex // of demo.json
}

// demoState is the line printed by --json. It is also in demo.json in the data folder, and updated when the bot or
// the database was restarted.
type demoState struct {
	URL         string         `json:"url"`
	SlackAPIURL string         `json:"slack_api_url,omitempty"`
	ModelURL    string         `json:"model_url,omitempty"`
	DatabaseURL string         `json:"database_url,omitempty"`
	BotToken    string         `json:"bot_token,omitempty"`
	AppToken    string         `json:"app_token,omitempty"`
	BotUser     string         `json:"bot_user,omitempty"`
	Workspace   string         `json:"workspace,omitempty"`
	PIDs        map[string]int `json:"pids"`
}

func startDemo(ctx context.Context, o demoOptions) (_ *demo, err error) {
	d := &demo{o: o, log: newLogger("error", "console", nil)}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.o.dir, err = filepath.Abs(o.dir); err != nil {
		return nil, fmt.Errorf("--data: %w", err)
	}
	parts := playground.Options{
		Listen: o.listen, Dir: d.o.dir, Fresh: o.fresh, Only: playground.Part(o.only), CharsPerSecond: o.pace, Log: d.log,
	}
	if err := parts.Check(); err != nil {
		return nil, fmt.Errorf("%w; see bot demo -h: %w", err, errUsage)
	}
	if err := os.MkdirAll(d.o.dir, 0o755); err != nil {
		return nil, fmt.Errorf("--data: %w; name a folder that this user may write into", err)
	}
	if o.only != "" {
		if err := freeToListen(ctx, o.listen); err != nil {
			return nil, err
		}
		d.playground, err = playground.Start(ctx, parts)
		return d, brokenData(err, d.o.dir)
	}
	if _, err := doctor.CheckCLI(ctx, settings.SplitCommand(o.claude)); err != nil {
		return nil, err
	}
	if err := freeToListen(ctx, o.listen); err != nil {
		return nil, err
	}
	if d.url = os.Getenv("DATABASE_URL"); d.url == "" {
		own := postgres.Options{Dir: filepath.Join(d.o.dir, "postgres"), Fresh: o.fresh, Durable: true, Log: d.log}
		d.db, err = startDatabase(ctx, own)
		if errors.Is(err, postgres.ErrInUse) {
			return nil, fmt.Errorf("another demo uses %s: stop it, or give this one another folder with --data", d.o.dir)
		}
		if err != nil {
			return nil, brokenData(fmt.Errorf("start the private PostgreSQL: %w", err), d.o.dir)
		}
		d.url = d.db.current().URL()
	}
	if d.playground, err = playground.Start(ctx, parts); err != nil {
		return nil, brokenData(err, d.o.dir)
	}
	if err := d.prepareFiles(ctx); err != nil {
		return nil, err
	}
	if err := d.startBot(ctx); err != nil {
		return nil, err
	}
	if d.db != nil {
		d.db.keep(ctx, func() { _ = d.writeState() })
	}
	return d, nil
}

// freeToListen reports an address in use before anything was started.
func freeToListen(ctx context.Context, address string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--listen: another program listens at %s, perhaps another demo: stop it, or write another port, or port 0 for a free one", address)
	}
	if err != nil {
		return nil // the playground says more
	}
	return l.Close()
}

// brokenData adds a hint for unreadable data in the data folder.
func brokenData(err error, dir string) error {
	if err == nil || errors.Is(err, postgres.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w\nIf the data of an earlier demo is broken: --fresh forgets it, or delete %s", err, dir)
}

// prepareFiles writes the sample repository and the configuration, unless they exist: people may have changed both.
func (d *demo) prepareFiles(ctx context.Context) error {
	if d.o.fresh {
		for _, name := range []string{"sample", "bot", "deckhand.yaml", "bot.log"} {
			if err := os.RemoveAll(filepath.Join(d.o.dir, name)); err != nil {
				return fmt.Errorf("forget the earlier demo: %w", err)
			}
		}
	}
	if err := sample.Write(d.workspace()); err != nil && !errors.Is(err, sample.ErrExists) {
		return fmt.Errorf("write the sample repository: %w", err)
	}
	const repository = "boathouse.git"
	url := d.playground.ForgeURL(repository)
	config, err := os.ReadFile(d.configFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		config = []byte(demoConfiguration(ctx, d.workspace(), url))
	case err != nil:
		return err
	case !forgeURL.Match(config):
		return nil // of people's own making
	default: // the playground's port may be another one
		config = forgeURL.ReplaceAllLiteral(config, []byte("git: {url: "+url))
	}
	if err := forge.Make(playground.ForgeDir(d.o.dir), repository, d.workspace()); err != nil {
		return err
	}
	if err := forge.Connect(d.workspace(), url); err != nil {
		return err
	}
	return os.WriteFile(d.configFile(), config, 0o600)
}

// demoKey encrypts the tokens of the playground's forge, which everybody knows.
var demoKey = base64.StdEncoding.EncodeToString([]byte("the tokens of the demo are known"))

// forgeURL is the address of the playground's forge in the configuration.
var forgeURL = regexp.MustCompile(`git: \{url: http://[^ },]*/forge/boathouse\.git`)

// forgeToken is the variable with the demo's token, by which the forge knows who calls.
const forgeToken = "BOATHOUSE_FORGE_TOKEN"

func demoConfiguration(ctx context.Context, dir, url string) string {
	box, preview := demoSandbox(ctx), "preview: {run: npm start, url: \"http://127.0.0.1:3000/\"}"
	posture := "# What stays inside the sandbox runs, and people are asked about what leaves it.\nposture: contained"
	if strings.HasSuffix(box, "none") {
		posture = "# contained needs a sandbox that works.\nposture: careful"
		preview = "# A preview of the page needs a sandbox that works."
	} else if err := (place.Project{}).CheckPreview(ctx); err != nil {
		preview = fmt.Sprintf("# With that done, take away the # below: %s.\n    # %s", strings.Join(strings.Fields(err.Error()), " "), preview)
	}
	return fmt.Sprintf(demoConfig, dir, url, preview, box, posture,
		slack.ChannelGeneral, slack.ChannelEngineering, slack.ChannelCareful, slack.ChannelPrivate,
		slack.UserAda, slack.GroupApprovers, slack.GroupEngineers)
}

const demoConfig = `# The demo's configuration. Change it and start the demo again.
projects:
  sample:
    dir: %q
    workspace: worktree
    # The playground's own forge. The port is renewed at each start.
    git: {url: %s, token_env: ` + forgeToken + `}
    # It has Gitea's API. babysit: failed checks and requested changes become work by themselves.
    pull_requests: {forge: gitea, babysit: true}
    # How its page is looked at: "@deckhand show me the page".
    %s
# The agent's sandbox.
%s
%s
channels:
  %s: sample # general
  %s: sample # engineering
  %s: {project: sample, posture: careful} # careful: asked at each call
  %s: sample # private
direct_messages: sample
roles:
  admins: [%s]
  approvers: [%s]
  users: [%s]
`

// demoSandbox is the line of deckhand.yaml for a sandbox that works on this machine.
func demoSandbox(ctx context.Context) string {
	_, err := place.Project{}.CheckSandbox(ctx)
	if err == nil {
		return "sandbox: bwrap"
	}
	why := strings.Join(strings.Fields(err.Error()), " ")
	return "# Nothing does, since " + why + ".\n# With that done, write bwrap here; container needs docker or podman and an image.\nsandbox: none"
}

// sandbox describes the demo's sandbox, which people may have changed.
func (d *demo) sandbox() string {
	file, err := settings.ReadFile(d.configFile())
	if err != nil {
		return err.Error()
	}
	spec := file.Projects["sample"].Sandbox
	if spec.Kind == sandbox.None {
		return "without a sandbox: what it runs is your own user (" + d.configFile() + " says why)"
	}
	return "sandboxed by " + spec.String()
}

func (d *demo) workspace() string  { return filepath.Join(d.o.dir, "sample") }
func (d *demo) configFile() string { return filepath.Join(d.o.dir, "deckhand.yaml") }

// startBot starts `bot run` and waits until people can use it.
func (d *demo) startBot(ctx context.Context) error {
	health, err := freeport.Address(ctx)
	if err != nil {
		return err
	}
	env := map[string]string{
		"SLACK_BOT_TOKEN": d.playground.Slack().BotToken(), "SLACK_APP_TOKEN": d.playground.Slack().AppToken(),
		"SLACK_API_URL": d.playground.SlackAPIURL(), "DATABASE_URL": d.url,
		"CLAUDE_COMMAND": d.o.claude, "DECKHAND_CONFIG": d.configFile(),
		forgeToken: forge.Token, "DECKHAND_TOKEN_KEY": demoKey, "DECKHAND_FORGE_EVERY": cmp.Or(os.Getenv("DECKHAND_FORGE_EVERY"), "5s"),
		"DECKHAND_DATA_DIR": filepath.Join(d.o.dir, "bot"), "DECKHAND_LISTEN": health, "DECKHAND_LOG_FORMAT": "console",
		// Ctrl-C does not wait for a turn.
		"DECKHAND_DRAIN_TIMEOUT": cmp.Or(os.Getenv("DECKHAND_DRAIN_TIMEOUT"), "0s"),
	}
	for _, name := range []string{"DECKHAND_CLI_TIMEOUT", "DECKHAND_LEASE_TIME", "DECKHAND_IDLE_TIMEOUT", "DECKHAND_PARK_AFTER", "DECKHAND_CATCH_UP", "DECKHAND_MAX_LIVE_SESSIONS"} {
		env[name] = os.Getenv(name)
	}
	if d.realModel = os.Getenv("ANTHROPIC_API_KEY") != ""; !d.realModel {
		for _, name := range gateway.Owned() {
			env[name] = ""
		}
		env["ANTHROPIC_BASE_URL"] = d.playground.ModelURL()
		env["ANTHROPIC_API_KEY"] = "sk-ant-playground"
	}
	d.bot, err = startChild(childOptions{
		args: []string{"run"}, env: env, logFile: filepath.Join(d.o.dir, "bot.log"),
		restarted: func() { _ = d.writeState() },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("no end in five minutes"))
	defer cancel()
	for {
		if ask(ctx, "http://"+health+"/readyz") == nil {
			d.bot.works.Store(true)
			return d.writeState()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-d.bot.failed:
			return brokenData(fmt.Errorf("the bot did not start: %s", d.bot.lastWords()), d.o.dir)
		case <-ctx.Done():
			return fmt.Errorf("wait for the bot to be ready: %w", context.Cause(ctx))
		}
	}
}

func (d *demo) state() demoState {
	s := demoState{URL: d.playground.URL(), PIDs: map[string]int{"demo": os.Getpid()}}
	if d.playground.Model() != nil {
		s.ModelURL = d.playground.ModelURL()
	}
	if w := d.playground.Slack(); w != nil {
		s.SlackAPIURL, s.BotToken, s.AppToken, s.BotUser = d.playground.SlackAPIURL(), w.BotToken(), w.AppToken(), slack.BotUser
	}
	if d.bot != nil {
		s.DatabaseURL, s.Workspace, s.PIDs["bot"] = d.url, d.workspace(), d.bot.pid()
	}
	if d.db != nil {
		s.PIDs["postgres"] = d.db.current().PID()
	}
	return s
}

func (d *demo) writeState() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	line, err := json.Marshal(d.state())
	if err != nil {
		return err
	}
	file := filepath.Join(d.o.dir, "demo.json")
	if err := os.WriteFile(file+".new", append(line, '\n'), 0o600); err != nil {
		return fmt.Errorf("write demo.json: %w", err)
	}
	return os.Rename(file+".new", file)
}

// announce says that the demo is ready and what to do.
func (d *demo) announce(out io.Writer) error {
	if d.o.json {
		return json.NewEncoder(out).Encode(d.state())
	}
	if d.o.only != "" {
		_, err := fmt.Fprintf(out, "The playground's %s is ready at %s\nCtrl-C stops it.\n", d.o.only, d.playground.URL())
		return err
	}
	model := "a scripted model: no account needed, nothing leaves this machine"
	if d.realModel {
		model = "the real model, through your ANTHROPIC_API_KEY: it costs money"
	}
	_, err := fmt.Fprintf(out, `
  Deckhand's demo is ready: %s

  Open it and write in #engineering:   @deckhand fix the failing test
  and then, in the thread:             @deckhand push it
  or, with pictures of its page:       @deckhand show me the page
  #careful is the same project, and asks at each call.

  It runs the real Claude Code on %s
  %s,
  with %s.
  The bot's log is %s
  Everything stays there for the next start; --fresh forgets it. Ctrl-C stops it.

`, d.playground.URL(), d.workspace(), d.sandbox(), model, filepath.Join(d.o.dir, "bot.log"))
	return err
}

// close stops the bot first, while its dependencies still run.
func (d *demo) close() {
	if d.bot != nil {
		d.bot.stop()
	}
	if d.playground != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := d.playground.Close(ctx); err != nil {
			d.log.Error("stop the playground", zap.Error(err))
		}
	}
	if d.db != nil {
		if err := d.db.stop(); err != nil {
			d.log.Error("stop the private PostgreSQL", zap.Error(err))
		}
	}
	if d.bot != nil {
		_ = os.Remove(filepath.Join(d.o.dir, "demo.json"))
	}
}
