package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/anthropicadmin"
	"deckhand/internal/report"
	"deckhand/internal/settings"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/store"
)

const reportUsage = `usage: bot report [QUESTION…] [--format table|csv|json|png] [--out FILE] [--dark] [--team ID]
       bot report verify [--team ID]
       bot report approvals [--since 30d] [--format table|csv|json] [--out FILE] [--team ID]
       bot report reconcile [PERIOD…] [--against list|contract] [--format table|json] [--out FILE] [--team ID]

A question is the one that people ask in Slack: last month by user; since 2026-10-01
by model; this week for project web; yesterday for <#C0123>; 2026-10 by day. Without
one it is this month.

verify recomputes every sum from the ledger's own rows and compares; its exit code is
1 if anything differs. approvals says who decides, how fast and how often yes.
reconcile sets the ledger against the cost report of Anthropic's Admin API, by day
and model; without a period it is last month. ANTHROPIC_ADMIN_KEY is an Admin API
key; ANTHROPIC_WORKSPACE_ID, if there is one, the workspace that the bot works in.

--out's ending chooses the format; --dark draws a png on dark ground; --zone is the
time zone that days begin in, if not the team's (Europe/Berlin). --config is deckhand.yaml, as for the
bot (DECKHAND_CONFIG); it need not be there.
DATABASE_URL names the database. With SLACK_BOT_TOKEN, people and channels are shown
by name.`

// reportFlags are what the flags of bot report say.
type reportFlags struct {
	format, out, team, config, zone, since, against string
	dark                                            bool
}

func reportCommand(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprintln(f.Output(), reportUsage) }
	var o reportFlags
	f.StringVar(&o.format, "format", "", "")
	f.StringVar(&o.out, "out", "", "")
	f.BoolVar(&o.dark, "dark", false, "")
	f.StringVar(&o.team, "team", "", "")
	f.StringVar(&o.config, "config", "", "")
	f.StringVar(&o.zone, "zone", "", "")
	f.StringVar(&o.since, "since", "", "")
	f.StringVar(&o.against, "against", "", "")
	words, err := parseMixed(f, args, out)
	if err != nil {
		return err
	}
	what := "costs"
	if len(words) > 0 && slices.Contains([]string{"verify", "approvals", "reconcile"}, words[0]) {
		what, words = words[0], words[1:]
	}
	if err := o.check(f, what, words); err != nil {
		return err
	}
	switch what {
	case "verify":
		return reportVerify(ctx, out, o)
	case "approvals":
		return reportApprovals(ctx, out, o)
	case "reconcile":
		return reportReconcile(ctx, out, o, strings.Join(words, " "))
	}
	return reportCosts(ctx, out, o, strings.Join(words, " "))
}

// parseMixed parses flags wherever they stand among the words, which it returns.
// What comes after -- are words.
func parseMixed(f *flag.FlagSet, args []string, out io.Writer) (words []string, err error) {
	for {
		if err := parseFlags(f, args, out, len(args)); err != nil {
			return nil, err
		}
		rest := f.Args()
		if parsed := len(args) - len(rest); parsed > 0 && args[parsed-1] == "--" {
			return append(words, rest...), nil
		}
		if len(rest) == 0 {
			return words, nil
		}
		words, args = append(words, rest[0]), rest[1:]
	}
}

// check refuses flags that mean nothing for what is asked.
func (o *reportFlags) check(f *flag.FlagSet, what string, words []string) error {
	takes := map[string][]string{
		"costs":     {"format", "out", "dark", "team", "config", "zone"},
		"verify":    {"team", "config"},
		"approvals": {"format", "out", "since", "team", "config"},
		"reconcile": {"format", "out", "against", "team", "config"},
	}[what]
	formats := map[string][]string{
		"costs": {"table", "csv", "json", "png"}, "approvals": {"table", "csv", "json"}, "reconcile": {"table", "json"},
	}[what]
	var wrong error
	f.Visit(func(fl *flag.Flag) {
		if !slices.Contains(takes, fl.Name) && wrong == nil {
			wrong = fmt.Errorf("--%s means nothing for bot report %s: %w", fl.Name, strings.TrimPrefix(what, "costs"), errUsage)
		}
	})
	switch {
	case wrong != nil:
		return wrong
	case (what == "verify" || what == "approvals") && len(words) > 0:
		return fmt.Errorf("bot report %s takes no %q, see bot report -h: %w", what, words[0], errUsage)
	case what == "verify":
		return nil
	}
	if ending := strings.TrimPrefix(filepath.Ext(o.out), "."); o.format == "" && slices.Contains(formats, ending) {
		o.format = ending
	}
	switch {
	case o.format != "" && !slices.Contains(formats, o.format):
		return fmt.Errorf("--format: %q is no format here; write %s: %w", o.format, strings.Join(formats, ", "), errUsage)
	case o.dark && o.format != "png":
		return fmt.Errorf("--dark is for --format png: %w", errUsage)
	case !slices.Contains([]string{"", "list", "contract"}, o.against):
		return fmt.Errorf("--against: %q is no prices; write list or contract: %w", o.against, errUsage)
	}
	return nil
}

// readConfig reads deckhand.yaml; without one it is empty, unless one was asked for.
func (o *reportFlags) readConfig() (settings.File, error) {
	file := o.config
	if file == "" {
		if file = os.Getenv("DECKHAND_CONFIG"); file == "" {
			file = settings.DefaultFile
		}
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return settings.File{}, nil
		}
	}
	return settings.ReadFile(file)
}

// openLedger opens the database and chooses the team: the one that there is, unless
// the flags name it.
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

// write writes to --out, or to out. A file is there only if it is whole.
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

// isTerminal reports whether somebody would see the bytes.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

func reportCosts(ctx context.Context, out io.Writer, o reportFlags, words string) error {
	if o.format == "png" && o.out == "" && isTerminal(out) {
		return fmt.Errorf("--format png: a terminal cannot show it; add --out costs.png: %w", errUsage)
	}
	c, err := o.readConfig()
	if err != nil {
		return err
	}
	zone, err := o.location(c)
	if err != nil {
		return err
	}
	s, team, err := o.openLedger(ctx, c.Zone())
	if err != nil {
		return err
	}
	defer s.Close()
	understood, err := reportContext(ctx, s, team)
	if err != nil {
		return err
	}
	understood.Now, understood.Location = time.Now(), zone
	q, err := report.Parse(words, understood)
	if wrong, ok := errors.AsType[*report.ParseError](err); ok {
		return fmt.Errorf("%s: %w", wrong.Sentence, errUsage)
	}
	if err != nil {
		return err
	}
	switch {
	case q.CSV && o.format == "":
		o.format = "csv"
	case q.CSV && o.format != "csv":
		return fmt.Errorf("the question asks for csv and --format for %s: %w", o.format, errUsage)
	}
	a, err := report.Ask(ctx, s, q, team)
	if err != nil {
		return err
	}
	people, channels := a.IDs(0)
	names := lookUpNames(ctx, people, channels)
	return o.write(out, func(w io.Writer) error {
		switch o.format {
		case "csv":
			return report.CSV(w, a, names)
		case "json":
			return report.JSON(w, a, names)
		case "png":
			return report.PNG(w, a, names, o.dark)
		}
		if err := report.Table(w, a, names); err != nil {
			return err
		}
		return footnotes(ctx, w, s, team, a, c)
	})
}

// location is the zone that the days of the question begin in. Without --zone and a
// configuration that is UTC, in which the ledger's days stand for themselves,
// whatever zone they were booked in.
func (o *reportFlags) location(c settings.File) (*time.Location, error) {
	if o.zone == "" {
		return c.Zone(), nil
	}
	zone, err := settings.LoadZone(o.zone)
	if err != nil {
		return nil, fmt.Errorf("--zone: %q is no time zone; write one such as Europe/Berlin, or UTC: %w", o.zone, errUsage)
	}
	return zone, nil
}

// lookUpNames asks Slack what people and channels are called, if there is a token to
// ask with. What cannot be found out stays an id.
func lookUpNames(ctx context.Context, people, channels []string) report.Names {
	token := os.Getenv("SLACK_BOT_TOKEN")
	if token == "" {
		return nil
	}
	var options []slack.Option
	if url := os.Getenv("SLACK_API_URL"); url != "" {
		options = append(options, slack.OptionAPIURL(url))
	}
	return directory.New(slack.New(token, options...), zap.NewNop()).Names(ctx, people, channels, nil)
}

// reportContext has the names that the ledger has.
func reportContext(ctx context.Context, s *store.Store, team string) (report.Context, error) {
	spend, err := s.Spend(ctx, team)
	if err != nil {
		return report.Context{}, err
	}
	c := report.Context{Projects: []string{}, Models: []string{}}
	for _, l := range spend {
		c.Projects, c.Models = append(c.Projects, l.Project), append(c.Models, l.Model)
	}
	for _, list := range []*[]string{&c.Projects, &c.Models} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return c, nil
}

// footnotes name the models that contract prices leave out.
func footnotes(ctx context.Context, w io.Writer, s *store.Store, team string, a report.Answer, c settings.File) error {
	if !a.HasContract() && len(c.Prices) == 0 {
		return nil
	}
	q := a.Question
	models, err := s.Costs(ctx, store.CostQuery{
		TeamID: team, From: q.Period.From, To: q.Period.To, By: store.ByModel,
		Users: q.Users, Channels: q.Channels, Projects: q.Projects, Models: q.Models, ThreadID: q.ThreadID,
	})
	if err != nil {
		return err
	}
	for _, l := range models.Lines {
		if l.MicroUSD == 0 || l.ContractMicroUSD != 0 || l.Key == "" {
			continue
		}
		note := "No contract price for " + l.Key + "."
		if _, priced := c.Prices.Of(l.Key); priced {
			note = "No contract price for " + l.Key + " yet when this was booked."
		}
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	return nil
}

// reportVerify recomputes the books.
func reportVerify(ctx context.Context, out io.Writer, o reportFlags) error {
	s, err := openStore(ctx, nil) // of all teams, unless one was chosen
	if err == nil && o.team != "" {
		s.Close()
		s, _, err = o.openLedger(ctx, nil)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	differences, err := s.VerifyRollups(ctx, o.team)
	if err != nil {
		return err
	}
	for _, d := range differences {
		fmt.Fprintf(out, "✗ %s %s\n    should be %s\n    but is    %s\n", d.Check, d.Key, d.Want, d.Got)
	}
	if n := len(differences); n > 0 {
		return fmt.Errorf("the books are not right: %d difference(s) between the ledger's rows and what follows from them", n)
	}
	fmt.Fprintf(out, "✓ all %d checks agree: the roll-ups, running totals, turns and the audit are what the ledger's rows add up to\n", store.LedgerChecks())
	return nil
}

// reportApprovals says who approves, how fast and how often.
func reportApprovals(ctx context.Context, out io.Writer, o reportFlags) error {
	since, err := parseTime("--since", cmp.Or(o.since, "30d"))
	if err != nil {
		return err
	}
	s, team, err := o.openLedger(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	until := time.Now()
	if !since.Before(until) {
		return fmt.Errorf("--since: %s has not begun yet: %w", since.Format(time.DateOnly), errUsage)
	}
	found, err := s.ApprovalsReport(ctx, team, since, until)
	if err != nil {
		return err
	}
	var people []string
	for _, p := range found.ByPerson {
		people = append(people, p.Name)
	}
	a := report.NewApprovals(team, since, until, found, lookUpNames(ctx, people, nil))
	return o.write(out, func(w io.Writer) error {
		switch o.format {
		case "json":
			return report.WriteJSON(w, a)
		case "csv":
			return a.CSV(w)
		}
		return a.Table(w)
	})
}

// reportReconcile sets the ledger against Anthropic's bill.
func reportReconcile(ctx context.Context, out io.Writer, o reportFlags, words string) error {
	period, err := report.ReconciledPeriod(words, time.Now())
	if wrong, ok := errors.AsType[*report.ParseError](err); ok {
		return fmt.Errorf("%s: %w", wrong.Sentence, errUsage)
	}
	if err != nil {
		return err
	}
	key := os.Getenv("ANTHROPIC_ADMIN_KEY")
	if key == "" {
		return errors.New("ANTHROPIC_ADMIN_KEY: set it to an Admin API key, sk-ant-admin…; an admin of the organization makes one in Anthropic's Console")
	}
	s, team, err := o.openLedger(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	bill := &anthropicadmin.Client{Key: key}
	r, err := report.Reconcile(ctx, s, bill, team, period, os.Getenv("ANTHROPIC_WORKSPACE_ID"), report.Against(o.against))
	if err != nil {
		return err
	}
	return o.write(out, func(w io.Writer) error {
		if o.format == "json" {
			return report.WriteJSON(w, r)
		}
		return r.Table(w)
	})
}
