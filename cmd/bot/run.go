package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/jobs"
	"deckhand/internal/redact"
	"deckhand/internal/settings"
	"deckhand/internal/slackui"
	"deckhand/internal/store"
)

// minCLI is the oldest Claude Code that the bot runs with: older ones read the files
// that a message mentions as @path without asking, and settings that were not asked
// for.
const minCLI = "2.1.329"

func runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the bot (so does bot without a command)",
		Long: `Runs the bot until it is told to stop (SIGINT, SIGTERM). Secrets, addresses and folders
come from the environment, see .env.example; what the team agrees on stands in
deckhand.yaml, which DECKHAND_CONFIG names.`,
		Example: "  set -a; . ./.env; set +a; bot run",
		Args:    knownCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return runBot(c.Context()) },
	}
}

func runBot(ctx context.Context) error {
	if err := claude.HideProcess(); err != nil {
		return fmt.Errorf("hide the bot's environment from what it runs: %w", err)
	}
	e, err := settings.ReadEnvironment()
	if err != nil {
		return err
	}
	c, err := settings.ReadFile(e.ConfigFile)
	if err != nil {
		return err
	}
	b, err := newBot(ctx, e, c)
	if err != nil {
		return err
	}
	defer b.close()
	return b.run(ctx)
}

// bot is everything that runs, connected and checked.
type bot struct {
	log        *zap.Logger
	replica    *agent.Replica
	store      *store.Store
	app        *slackui.App
	supervisor *agent.Supervisor
	jobs       *jobs.Runner
	health     net.Listener
}

// newBot connects to everything the bot needs. Its errors are one sentence each,
// naming what to change.
func newBot(ctx context.Context, e settings.Environment, c settings.File) (_ *bot, err error) {
	secrets := redact.New(e.Secrets(c.Projects)...)
	b := &bot{log: newLogger(e.LogLevel, e.LogFormat, secrets.Redact)}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	cliVersion, err := checkCLI(ctx, e.Command())
	if err != nil {
		return nil, err
	}
	if b.replica, err = agent.OpenReplica(e.DataDir); err != nil {
		return nil, err
	}
	if n := claude.ReapOrphans(); n > 0 {
		b.log.Warn("ended processes that an earlier run had left", zap.Int("processes", n))
	}
	if _, err := store.MigrateUp(ctx, e.DatabaseURL); err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	var after []time.Duration
	var tell [][]string
	for _, r := range c.Reminders {
		after, tell = append(after, r.After), append(tell, r.To)
	}
	b.store, err = store.Open(ctx, e.DatabaseURL, store.Options{
		Jobs: jobs.Inserter{}, Reminders: after, TimeZone: c.Zone(), Log: b.log.Named("store"),
	})
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	if err := b.store.CheckSchema(ctx); err != nil {
		return nil, err
	}
	b.app, err = slackui.Connect(ctx, slackui.Config{
		BotToken: e.SlackBotToken, AppToken: e.SlackAppToken, APIURL: e.SlackAPIURL, Store: b.store,
		Access: c.Access, Budgets: c.Budgets, Reminders: tell,
		Digests: c.Digests, AskersTimeZone: c.AskersTimeZone,
		Redact: secrets.Redact, Log: b.log.Named("slack"),
	})
	if err != nil {
		return nil, err
	}
	b.supervisor = agent.New(agent.Config{
		Store: b.store, Frontend: b.app.Frontend(), Authoriser: b.app, Reminder: b.app, Projects: c.Projects, Policy: c.Policy, Budgets: c.Budgets, Prices: c.Prices,
		Replica: b.replica.ID, DataDir: e.DataDir, Command: e.Command(), CLIVersion: cliVersion,
		Credentials: e.Credentials(), Log: b.log.Named("agent"),
		Limits: agent.Limits{
			IdleTimeout: e.IdleTimeout, MaxLive: e.MaxLive,
			AnswerTimeout: e.CLITimeout, StopTimeout: e.CLITimeout / 3, // who stops it waits for it
		},
	})
	b.jobs, err = jobs.New(e.DatabaseURL, b.log.Named("jobs"), slices.Concat(b.supervisor.JobHandlers(), b.app.JobHandlers())...)
	if err != nil {
		return nil, err
	}
	if b.health, err = (&net.ListenConfig{}).Listen(ctx, "tcp", e.Listen); err != nil {
		return nil, fmt.Errorf("DECKHAND_LISTEN: %w", err)
	}
	if err := b.auditStart(ctx, c, cliVersion); err != nil {
		return nil, err
	}
	b.warn(e, c)
	return b, nil
}

// auditStart writes down under which rules the bot works from now on.
func (b *bot) auditStart(ctx context.Context, c settings.File, cliVersion string) error {
	team := b.app.TeamID()
	err := b.store.Audit(ctx, store.AuditEntry{Kind: store.AuditStarted, TeamID: team, Details: map[string]any{
		"version": versionString(), "replica": b.replica.ID, "cli_version": cliVersion,
	}})
	if err != nil {
		return err
	}
	return b.store.AuditConfigLoaded(ctx, team, hex.EncodeToString(c.SHA256[:]), c.Audited())
}

// warn names what will not work, though the bot can start.
func (b *bot) warn(e settings.Environment, c settings.File) {
	if !e.HasModelKey() {
		b.log.Warn("neither ANTHROPIC_API_KEY nor CLAUDE_CODE_OAUTH_TOKEN is set: Claude Code works only if a project's env brings its credentials")
	}
	if !c.AnybodyMay() {
		b.log.Warn("roles are empty in deckhand.yaml: nobody may use the bot")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Projects)) {
		if dir := c.Projects[name].Dir; dir != "" {
			if _, err := os.Stat(dir); err != nil {
				b.log.Warn("the folder of a project is not there", zap.String("project", name), zap.Error(err))
			}
		}
	}
}

// run works until ctx ends, then stops in order: no new envelopes, then the
// sessions, then the last messages to Slack.
func (b *bot) run(ctx context.Context) error {
	b.log.Info("deckhand is running", zap.String("version", versionString()), zap.String("replica", b.replica.ID), zap.Stringer("listen", b.health.Addr()))
	publishing, stopPublishing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPublishing()

	var running, working sync.WaitGroup
	working.Go(func() { _ = b.supervisor.Run(ctx) }) // it ends with ctx and has no error of its own
	working.Go(func() { b.jobs.Run(ctx) })
	running.Go(func() {
		working.Wait()
		stopPublishing()
	})
	server := &http.Server{Handler: b.healthHandler(), ReadHeaderTimeout: 5 * time.Second}
	running.Go(func() {
		if err := server.Serve(b.health); !errors.Is(err, http.ErrServerClosed) {
			b.log.Error("serve /healthz", zap.Error(err))
		}
	})
	err := b.app.Run(ctx, publishing, b.supervisor)
	_ = server.Close()
	running.Wait()
	b.log.Info("deckhand has stopped")
	return err
}

func (b *bot) close() {
	if b.health != nil {
		_ = b.health.Close()
	}
	if b.store != nil {
		b.store.Close()
	}
	if b.replica != nil {
		_ = b.replica.Close()
	}
	_ = b.log.Sync()
}

// checkCLI asks the CLI for its version and refuses one that is too old.
func checkCLI(ctx context.Context, command []string) (string, error) {
	v, err := claude.Version(ctx, command)
	if err != nil {
		return "", fmt.Errorf("CLAUDE_COMMAND: %s does not run (%w); install Claude Code with deploy/claude/install.sh, which prints the path to set", strings.Join(command, " "), err)
	}
	if claude.Older(v, minCLI) {
		return "", fmt.Errorf("CLAUDE_COMMAND: Claude Code %s is too old; Deckhand needs %s or newer: deploy/claude/install.sh installs the version it is tested with", v, minCLI)
	}
	return v, nil
}
