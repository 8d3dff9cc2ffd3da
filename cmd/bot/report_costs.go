package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/report"
	"deckhand/internal/settings"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
)

// costsQuestion is a question about costs, and the presentation of its answer.
type costsQuestion struct {
	words, config, zone string
	dark                bool
}

func reportCosts(ctx context.Context, out io.Writer, o *reportFlags, asked costsQuestion) error {
	if o.format == "png" && o.out == "" && isTerminal(out) {
		return fmt.Errorf("--format png: a terminal cannot show it; add --out costs.png: %w", errUsage)
	}
	c, err := configIfThere(asked.config)
	if err != nil {
		return err
	}
	zone, err := daysZone(asked.zone, c)
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
	understood.Now, understood.Location, understood.Teams = time.Now(), zone, c.Teams()
	q, err := report.Parse(asked.words, understood)
	if wrong, ok := errors.AsType[*report.ParseError](err); ok {
		return fmt.Errorf("%w: %w", wrong, errUsage)
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
			return report.PNG(w, a, names, asked.dark)
		}
		if err := report.Table(w, a, names); err != nil {
			return err
		}
		return footnotes(ctx, w, s, team, a, c)
	})
}

// daysZone is the zone of the question's days. Without --zone and a configuration it is UTC, which stands for the
// ledger's booked days of any zone.
func daysZone(flag string, c settings.File) (*time.Location, error) {
	if flag == "" {
		return c.Zone(), nil
	}
	zone, err := settings.LoadZone(flag)
	if err != nil {
		return nil, fmt.Errorf("--zone: %q is no time zone; write one such as Europe/Berlin, or UTC: %w", flag, errUsage)
	}
	return zone, nil
}

// lookUpNames asks Slack for names of people and channels, if there is a token. Unknown ones stay ids.
func lookUpNames(ctx context.Context, people, channels []string) report.Names {
	if client := slackClient(); client != nil {
		return directory.New(client, zap.NewNop()).Names(ctx, people, channels, nil)
	}
	return nil
}

// slackClient calls Slack with SLACK_BOT_TOKEN; nil without it.
func slackClient() *slack.Client {
	token := os.Getenv("SLACK_BOT_TOKEN")
	if token == "" {
		return nil
	}
	var options []slack.Option
	if url := os.Getenv("SLACK_API_URL"); url != "" {
		options = append(options, slack.OptionAPIURL(url))
	}
	return slack.New(token, options...)
}

// lookUpAddress is the workspace's address from Slack; empty if unknown.
func lookUpAddress(ctx context.Context) string {
	client := slackClient()
	if client == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	who, err := client.AuthTestContext(ctx)
	if err != nil {
		return ""
	}
	return who.URL
}

// reportContext has the names in the ledger.
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

// footnotes name the models without contract prices.
func footnotes(ctx context.Context, w io.Writer, s *store.Store, team string, a report.Answer, c settings.File) error {
	if !a.HasContract() && len(c.Prices) == 0 {
		return nil
	}
	q := a.Question
	models, err := s.Costs(ctx, ledger.CostQuery{
		TeamID: team, From: q.Period.From, To: q.Period.To, By: ledger.ByModel,
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

// configIfThere reads deckhand.yaml; a missing one is empty, unless the flag names it.
func configIfThere(flag string) (settings.File, error) {
	file := configFile(flag)
	if _, err := os.Stat(file); flag == "" && errors.Is(err, os.ErrNotExist) {
		return settings.File{}, nil
	}
	return settings.ReadFile(file)
}
