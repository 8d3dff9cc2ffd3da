package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/agent/policy"
	"deckhand/internal/settings"
	"deckhand/internal/store"
)

func policyTestCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "test",
		Short: "Replay recorded tool calls, and show which would be decided otherwise",
		Long: `Replays the recorded tool calls against the configuration, and shows which would be
decided otherwise. It changes nothing. DATABASE_URL names the database.

A time is 2026-10-31, 2026-10-31T15:04:05Z, or 30d (that long ago).`,
		Example: `  bot policy test --config new.yaml
  bot policy test --config new.yaml --since 90d --all --json`,
		Args: knownCommand,
	}
	file, asJSON := configFlag(c), jsonFlag(c)
	since := c.Flags().String("since", "30d", "calls from this time on")
	all := c.Flags().Bool("all", false, fmt.Sprintf("list every call, not %d of each change", policyExamples))
	c.RunE = func(c *cobra.Command, _ []string) error {
		from, err := parseTime("--since", *since)
		if err != nil {
			return err
		}
		cfg, err := settings.ReadFile(configFile(*file))
		if err != nil {
			return err
		}
		s, err := openStore(c.Context(), nil)
		if err != nil {
			return err
		}
		defer s.Close()
		r := replay{Since: from.UTC(), Changes: []policyChange{}}
		if err := s.RecordedCalls(c.Context(), from, func(call store.RecordedCall) error {
			r.add(cfg.Policy, call, *all)
			return nil
		}); err != nil {
			return err
		}
		slices.SortFunc(r.Changes, func(a, b policyChange) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
		if *asJSON {
			return writeJSON(c, r)
		}
		r.explain(c.OutOrStdout())
		return nil
	}
	return c
}

// policyExamples is how many calls of each change are listed.
const policyExamples = 5

// replay is what recorded calls would have become, in JSON.
type replay struct {
	Since   time.Time      `json:"since"`
	Calls   int            `json:"calls"`
	Same    int            `json:"decided_as_before"`
	Changes []policyChange `json:"changes"`
}

// policyChange is a verdict that would be another, with some of its calls.
type policyChange struct {
	From  string        `json:"from"`
	To    string        `json:"to"`
	Count int           `json:"count"`
	Calls []changedCall `json:"calls"`
}

type changedCall struct {
	At    time.Time `json:"at"`
	Tool  string    `json:"tool"`
	Input string    `json:"input"`
	Was   string    `json:"was"`
	Now   string    `json:"now"`
}

func (r *replay) add(p *policy.Policy, call store.RecordedCall, all bool) {
	r.Calls++
	d := p.Decide(policy.Call{Tool: call.ToolName, Input: call.Input, Workspace: call.Workspace, Project: call.Project, Channel: call.ChannelID})
	if string(d.Verdict) == call.Verdict {
		r.Same++
		return
	}
	i := slices.IndexFunc(r.Changes, func(ch policyChange) bool { return ch.From == call.Verdict && ch.To == string(d.Verdict) })
	if i < 0 {
		i = len(r.Changes)
		r.Changes = append(r.Changes, policyChange{From: call.Verdict, To: string(d.Verdict)})
	}
	ch := &r.Changes[i]
	ch.Count++
	if all || len(ch.Calls) < policyExamples {
		ch.Calls = append(ch.Calls, changedCall{
			At: call.At.UTC(), Tool: graphic(call.ToolName), Input: brief(call.Input), Was: graphic(call.Rule), Now: graphic(d.Rule + "  " + d.Why),
		})
	}
}

func (r *replay) explain(out io.Writer) {
	fmt.Fprintf(out, "%d recorded call(s) since %s: %d decided as before, %d otherwise\n", r.Calls, r.Since.Format(time.DateTime), r.Same, r.Calls-r.Same)
	for _, ch := range r.Changes {
		fmt.Fprintf(out, "\n%s → %s: %d\n", ch.From, ch.To, ch.Count)
		for _, e := range ch.Calls {
			fmt.Fprintf(out, "    %s  %s  %s\n      was: %s\n      now: %s\n", e.At.Format(time.DateTime), e.Tool, e.Input, e.Was, e.Now)
		}
		if n := ch.Count - len(ch.Calls); n > 0 {
			fmt.Fprintf(out, "    … and %d more: --all lists them\n", n)
		}
	}
}

// brief is what matters of an input, on one line.
func brief(input json.RawMessage) string {
	var in map[string]any
	if json.Unmarshal(input, &in) == nil {
		for _, field := range []string{"command", "file_path", "notebook_path", "url", "path", "pattern", "query"} {
			if s, ok := in[field].(string); ok {
				input = json.RawMessage(s)
				break
			}
		}
	}
	line := []rune(graphic(string(input)))
	if len(line) > 160 {
		line = append(line[:160], '…')
	}
	return string(line)
}
