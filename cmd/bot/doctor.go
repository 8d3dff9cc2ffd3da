package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/doctor"
	"deckhand/internal/settings"
)

func doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration and what the bot needs, and say what to do",
		Long: `Checks the environment, the configuration and what they name: the database, Slack,
Claude Code, folders, repositories, channels and people. It changes nothing.

  ✓  as it should be
  !  bot run starts, and warns of this: something will not work
  ✗  bot run does not start
  –  not looked at, because of what is wrong elsewhere

Its exit code is 1 if there is a ✗.

With --call-model every project's provider is called once, as its sessions would, for one
token: less than a tenth of a cent each.`,
		Example: `  bot doctor
  bot doctor --json
  bot doctor --call-model
  docker compose exec bot bot doctor`,
		Args: knownCommand,
	}
	asJSON := jsonFlag(c)
	health := c.Flags().Bool("health", false, "only ask the running bot's /healthz; for container health checks")
	call := c.Flags().Bool("call-model", false, "call each project's model once, for one token; it costs less than a tenth of a cent each")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *health {
			e, _ := settings.ReadEnvironment() // the address alone is wanted
			return askHealth(c.Context(), e.Listen)
		}
		d := doctor.New(doctor.ReadSetup(os.Environ()))
		d.CallModel = *call
		found := append(d.Essentials(c.Context()), d.Advice(c.Context())...)
		failed := 0
		for _, f := range found {
			if f.Status == doctor.Failed {
				failed++
			}
		}
		if *asJSON {
			if err := writeJSON(c, struct {
				OK     bool             `json:"ok"`
				Checks []doctor.Finding `json:"checks"`
			}{failed == 0, found}); err != nil {
				return err
			}
		} else {
			explainFindings(c.OutOrStdout(), found)
		}
		if failed > 0 {
			return fmt.Errorf("%d of %d checks failed: bot run would not start", failed, len(found))
		}
		return nil
	}
	return c
}

func explainFindings(out io.Writer, found []doctor.Finding) {
	m := marksFor(out)
	mark := map[doctor.Status]string{doctor.OK: m.ok, doctor.Warning: m.warning, doctor.Failed: m.failed, doctor.Skipped: m.skipped}
	for _, f := range found {
		fmt.Fprintf(out, "%s %s: %s\n", mark[f.Status], f.Check, strings.ReplaceAll(f.Text, "\n", "\n  "))
	}
}

func askHealth(ctx context.Context, listen string) error {
	url, err := doctor.HealthURL(listen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return ask(ctx, url)
}

// ask says why the bot at a URL does not answer that all is well.
func ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
