package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/spelling"
	"deckhand/internal/store"
)

// questionWords are a shell's completions for a question.
var questionWords = []string{"today", "yesterday", "this", "last", "week", "month", "by", "team", "user", "channel", "project", "model", "day", "for", "since"}

func reportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "report [question]...",
		Short: "Costs and approvals, and whether the ledger is right",
		Long: `Answers the questions about costs that people ask in Slack; without one, of this month.
DATABASE_URL names the database. With SLACK_BOT_TOKEN, people and channels are shown
by name. The configuration need not be there.`,
		Example: `  bot report last month by user
  bot report since 2026-10-01 by model --format csv
  bot report this week for project web
  bot report 2026-10 by day --out costs.png --dark`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(questionWords, cobra.ShellCompDirectiveNoFileComp),
	}
	o := newReportFlags(c, "table", "csv", "json", "png")
	dark := c.Flags().Bool("dark", false, "draw a png on dark ground")
	config := configFlag(c)
	zone := c.Flags().String("zone", "", "the time zone that days begin in, such as Europe/Berlin (default: the team's)")
	c.RunE = func(c *cobra.Command, words []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if *dark && o.format != "png" {
			return fmt.Errorf("--dark is for --format png: %w", errUsage)
		}
		if len(words) == 1 {
			if near := spelling.Nearest(words[0], commandNames(c)); near != "" {
				return fmt.Errorf("%q is no question; did you mean bot report %s? see bot report -h: %w", words[0], near, errUsage)
			}
		}
		return reportCosts(c.Context(), c.OutOrStdout(), o, costsQuestion{words: strings.Join(words, " "), config: *config, zone: *zone, dark: *dark})
	}
	c.AddCommand(reportVerifyCommand(), reportRepriceCommand(), reportApprovalsCommand(), reportFeedbackCommand(), reportReconcileCommand())
	return c
}

// reportFlags are flags shared by several reports.
type reportFlags struct {
	format, out, team string
	formats           []string
}

func newReportFlags(c *cobra.Command, formats ...string) *reportFlags {
	o := &reportFlags{formats: formats}
	choiceFlag(c, &o.format, "format", "how it is written (default: --out's ending, else table)", formats...)
	c.Flags().StringVar(&o.out, "out", "", "write to this file, which is there only if it is whole")
	o.teamFlag(c)
	return o
}

func (o *reportFlags) teamFlag(c *cobra.Command) {
	c.Flags().StringVar(&o.team, "team", "", "id of the Slack workspace, if the database has several")
}

// check validates the format.
func (o *reportFlags) check() error {
	if ending := strings.TrimPrefix(filepath.Ext(o.out), "."); o.format == "" && slices.Contains(o.formats, ending) {
		o.format = ending
	}
	if ending := filepath.Ext(o.out); o.format == "" && ending != "" && ending != ".txt" {
		return fmt.Errorf("--out: %q is no format here; write %s, or add --format: %w", ending, strings.Join(o.formats, ", "), errUsage)
	}
	if o.format != "" && !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("--format: %q is no format here; write %s: %w", o.format, strings.Join(o.formats, ", "), errUsage)
	}
	return nil
}

// openLedger opens the database and chooses the team: the one named by the flags, or the only one.
func (o *reportFlags) openLedger(ctx context.Context, zone *time.Location) (s *store.Store, team string, err error) {
	if s, err = openStore(ctx, zone); err != nil {
		return nil, "", err
	}
	teams, err := s.Teams(ctx)
	switch {
	case err != nil:
	case o.team != "" && len(teams) > 0 && !slices.Contains(teams, o.team):
		err = fmt.Errorf("--team: the database has nothing of a team %q; there is %s: %w", o.team, strings.Join(teams, ", "), errUsage)
	case o.team != "":
		return s, o.team, nil
	case len(teams) == 1:
		return s, teams[0], nil
	case len(teams) == 0:
		return s, "none", nil // an empty ledger has an empty answer
	default:
		err = fmt.Errorf("the database has the teams %s: choose one with --team: %w", strings.Join(teams, ", "), errUsage)
	}
	s.Close()
	return nil, "", err
}

// write writes to --out, or to out. It creates a file only if it is complete.
func (o *reportFlags) write(out io.Writer, to func(io.Writer) error) error {
	if o.out == "" {
		return to(out)
	}
	f, err := os.CreateTemp(filepath.Dir(o.out), "."+filepath.Base(o.out)+"-*")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	err = errors.Join(to(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), o.out)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error says more
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
