package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/settings"
	"deckhand/internal/slackui"
	"deckhand/internal/store"
)

func doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Check the configuration and what the bot needs, and say what to do",
		Example: "  bot doctor\n  docker compose exec bot bot doctor",
		Args:    knownCommand,
	}
	health := c.Flags().Bool("health", false, "only ask the running bot's /healthz; for container health checks")
	c.RunE = func(c *cobra.Command, _ []string) error { return doctor(c.Context(), c.OutOrStdout(), *health) }
	return c
}

func doctor(ctx context.Context, out io.Writer, health bool) error {
	e, err := settings.ReadEnvironment()
	if health {
		return askHealth(ctx, e.Listen)
	}
	bad := 0
	check := func(what string, err error) bool {
		if err != nil {
			bad++
			fmt.Fprintf(out, "✗ %s\n  %v\n", what, err)
			return false
		}
		fmt.Fprintf(out, "✓ %s\n", what)
		return true
	}
	if !check("environment", err) {
		return fmt.Errorf("the environment has to be right first")
	}
	c, err := settings.ReadFile(e.ConfigFile)
	check("configuration "+e.ConfigFile, err)
	v, err := checkCLI(ctx, e.Command())
	check("Claude Code "+v, err)
	s, err := store.Open(ctx, e.DatabaseURL, store.Options{})
	if check("database", err) {
		check("database schema", s.CheckSchema(ctx))
		s.Close()
	}
	_, err = slackui.Connect(ctx, slackui.Config{BotToken: e.SlackBotToken, AppToken: e.SlackAppToken, APIURL: e.SlackAPIURL, Store: s, Access: c.Access})
	check("Slack tokens", err)
	if bad > 0 {
		return fmt.Errorf("%d of the checks failed", bad)
	}
	return nil
}

func askHealth(ctx context.Context, listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("DECKHAND_LISTEN: %q is not host:port", listen)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort("127.0.0.1", port)+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the bot does not answer: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // the status is all we want
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the bot is not healthy: %s", resp.Status)
	}
	return nil
}
