package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"deckhand/internal/accounts"
	"deckhand/internal/agent"
	"deckhand/internal/agent/claude/reaper"
	"deckhand/internal/agent/place"
	"deckhand/internal/chat"
	"deckhand/internal/doctor"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/jobs"
	"deckhand/internal/redact"
	"deckhand/internal/settings"
	"deckhand/internal/slackui"
	"deckhand/internal/store"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
)

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
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // it mostly waits: memory is dearer than collecting it
	}
	d := doctor.New(doctor.ReadSetup(os.Environ()))
	found := d.Essentials(ctx)
	if err := refused(found); err != nil {
		return err
	}
	b, err := newBot(ctx, d)
	if err != nil {
		return err
	}
	defer b.close()
	b.warn(found)
	b.run(ctx)
	return nil
}

// refused says why the bot cannot start; nil if it can.
func refused(found []doctor.Finding) error {
	wrong := []string{}
	for _, f := range found {
		if f.Status == doctor.Failed {
			wrong = append(wrong, f.Text)
		}
	}
	switch len(wrong) {
	case 0:
		return nil
	case 1:
		return errors.New(wrong[0])
	}
	return fmt.Errorf("the bot cannot start, because\n  ✗ %s", strings.ReplaceAll(strings.Join(wrong, "\n"), "\n", "\n  ✗ "))
}

// bot is the running bot with its connections.
type bot struct {
	doctor     *doctor.Doctor
	log        *zap.Logger
	replica    *place.Replica
	store      *store.Store
	app        *slackui.App
	gateway    *gateway.Gateway
	web        *egress.Proxy
	supervisor *agent.Supervisor
	jobs       *jobs.Runner
	health     net.Listener
	webhooks   net.Listener // nil for none
}

// newBot connects the parts that the doctor has checked. Its errors are single sentences that say what to change.
func newBot(ctx context.Context, d *doctor.Doctor) (_ *bot, err error) {
	e, c := d.Environment, d.File
	var key accounts.Key
	if e.TokenKey != "" {
		if key, err = accounts.ParseKey(e.TokenKey); err != nil {
			return nil, fmt.Errorf("DECKHAND_TOKEN_KEY: %w", err)
		}
	}
	secrets := redact.New(e.Secrets(c.Projects)...)
	b := &bot{doctor: d, log: newLogger(e.LogLevel, e.LogFormat, secrets.Redact)}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.replica, err = place.OpenReplica(e.DataDir); err != nil {
		return nil, err
	}
	if n := reaper.Orphans(); n > 0 {
		b.log.Warn("ended processes that an earlier run had left", zap.Int("processes", n))
	}
	if err := place.SweepSandboxes(ctx, b.replica, c.Projects); err != nil {
		b.log.Warn("remove what an earlier run had left of its sandboxes", zap.Error(err))
	}
	if _, err := pg.MigrateUp(ctx, e.Direct()); err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	var after []time.Duration
	var tell [][]string
	for _, r := range c.Reminders {
		after, tell = append(after, r.After), append(tell, r.To)
	}
	b.store, err = store.Open(ctx, e.DatabaseURL, store.Options{
		Jobs: jobs.Inserter{}, Direct: e.DatabaseDirectURL, Reminders: after, TimeZone: c.Zone(), Replica: b.replica.ID, Log: b.log.Named("store"),
	})
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	if err := b.store.CheckSchema(ctx); err != nil {
		return nil, err
	}
	own := accounts.New(accounts.Config{Store: b.store, Key: key, Sites: c.Sites(), Logins: c.Logins(), Log: b.log.Named("accounts")})
	b.app = slackui.New(d.Workspace, slackui.Config{Config: chat.Config{
		Store: b.store, Access: c.Access, Budgets: c.Budgets, Authors: c.Authors(), Accounts: own, Attachments: c.Attachments(), HidePictures: c.HidesPictures(), Reactions: c.Reactions(), Reminders: tell, Calls: c.Calls(), Sandboxes: c.Sandboxes(), Postures: c.Policy.Postures,
		Replica: b.replica.ID, CatchUp: e.CatchUp,
		Health: func(ctx context.Context) []string { return b.checks().look(ctx).words() },
		Redact: secrets.Redact, Log: b.log.Named("slack"),
	}, Costs: b.store, Digests: c.Digests, Teams: c.Teams(), AskersTimeZone: c.AskersTimeZone})
	own.EmailOf, own.Tell = b.app.EmailOf, b.app.TellPerson
	b.gateway, err = gateway.New(gateway.Options{Dir: filepath.Join(e.DataDir, "gateway"), Listen: e.Gateway(), Log: b.log.Named("gateway")})
	if err != nil {
		return nil, err
	}
	b.web = egress.New(b.gateway.Roots(), b.log.Named("web"))
	git, err := gitway.New(filepath.Join(e.DataDir, "forge"), b.log.Named("git"))
	if err != nil {
		return nil, err
	}
	copied, keep := c.Transcripts()
	b.supervisor = agent.New(agent.Config{
		Store: b.store, Frontend: b.app.Frontend(), Authoriser: b.app, Reminder: b.app, Projects: c.Projects, Policy: c.Policy, Budgets: c.Budgets, Prices: c.Prices,
		Replica: b.replica.ID, DataDir: e.DataDir, Hidden: append(c.CredentialFiles(os.Getenv), c.Name), Command: e.Command(), CLIVersion: d.CLIVersion,
		Gateway: b.gateway, Web: b.web, Git: git, Pulls: b.store, Trust: b.store, People: b.app, Accounts: own, PullEvery: e.PullEvery, Work: b.store, Files: b.app, Attachments: c.Attachments(), Workspaces: c.Workspaces, Log: b.log.Named("agent"),
		Limits: agent.Limits{
			IdleTimeout: e.IdleTimeout, ParkAfter: e.ParkAfter, MaxLive: e.MaxLive, Starts: e.Starts, LeaseTTL: e.LeaseTime, Drain: e.DrainTimeout,
			AnswerTimeout: e.CLITimeout, StopTimeout: e.CLITimeout / 3, // who stops it waits for it
			Transcript: copied, KeepTranscripts: keep,
		},
	})
	b.jobs, err = jobs.New(e.Direct(), b.log.Named("jobs"), slices.Concat(b.supervisor.JobHandlers(), b.app.JobHandlers())...)
	if err != nil {
		return nil, err
	}
	if b.health, err = (&net.ListenConfig{}).Listen(ctx, "tcp", e.Listen); err != nil {
		return nil, fmt.Errorf("DECKHAND_LISTEN: %w", err)
	}
	if e.WebhookListen != "" {
		if b.webhooks, err = (&net.ListenConfig{}).Listen(ctx, "tcp", e.WebhookListen); err != nil {
			return nil, fmt.Errorf("DECKHAND_WEBHOOK_LISTEN: %w", err)
		}
	}
	if err := b.auditStart(ctx, c, d.CLIVersion); err != nil {
		return nil, err
	}
	return b, nil
}

// auditStart records the rules under which the bot works from now on.
func (b *bot) auditStart(ctx context.Context, c settings.File, cliVersion string) error {
	team := b.app.TeamID()
	err := b.store.Audit(ctx, audit.Entry{Kind: audit.Started, TeamID: team, Details: map[string]any{
		"version": versionString(), "replica": b.replica.ID, "cli_version": cliVersion, "sandboxes": c.Sandboxes(),
	}})
	if err != nil {
		return err
	}
	return b.store.AuditConfigLoaded(ctx, team, hex.EncodeToString(c.SHA256[:]), c.Audited())
}

// warn logs what will not work although the bot starts.
func (b *bot) warn(found []doctor.Finding) {
	for _, f := range found {
		if f.Status == doctor.Warning {
			b.log.Warn(f.Text, zap.String("check", f.Check))
		}
	}
}

// run works until ctx ends, then stops in order: no new turns, then the sessions, then no new envelopes, then the
// last messages to Slack. Cards accept clicks while there are sessions.
func (b *bot) run(ctx context.Context) {
	b.log.Info("deckhand is running", zap.String("version", versionString()), zap.String("replica", b.replica.ID), zap.Stringer("listen", b.health.Addr()),
		zap.Any("sandboxes", b.doctor.File.Sandboxes()))
	publishing, stopPublishing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPublishing()

	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()

	var running, working sync.WaitGroup
	working.Go(func() {
		_ = b.supervisor.Run(ctx) // it ends some time after ctx and has no error of its own
		stopServing()
	})
	working.Go(func() { b.jobs.Run(serving) })
	working.Go(func() { b.warn(b.doctor.Advice(ctx)) })
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
	hooks := &http.Server{Handler: b.supervisor.Webhooks(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, MaxHeaderBytes: 16 << 10}
	if b.webhooks != nil {
		running.Go(func() {
			if err := hooks.Serve(b.webhooks); !errors.Is(err, http.ErrServerClosed) {
				b.log.Error("serve webhooks", zap.Error(err))
			}
		})
	}
	b.app.Run(serving, publishing, b.supervisor)
	_, _ = server.Close(), hooks.Close()
	running.Wait()
	b.log.Info("deckhand has stopped")
}

func (b *bot) close() {
	for _, l := range []net.Listener{b.health, b.webhooks} {
		if l != nil {
			_ = l.Close()
		}
	}
	if b.web != nil {
		b.web.Close()
	}
	if b.gateway != nil {
		b.gateway.Close()
	}
	if b.store != nil {
		b.store.Close()
	}
	if b.replica != nil {
		_ = b.replica.Close()
	}
	_ = b.log.Sync()
}
