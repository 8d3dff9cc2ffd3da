package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/agent/policy"
	"deckhand/internal/settings"
	"deckhand/internal/store/audit"
)

func policyTestCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "test",
		Short: "Replay recorded tool calls, and show which would be decided otherwise",
		Long: `Replays the recorded tool calls against the configuration, and shows which would be
decided otherwise. It changes nothing. DATABASE_URL names the database.

With --posture it says what would change if that posture held everywhere: how many
questions would not have been asked, and what would have run instead, the riskiest
first.

A time is 2026-10-31, 2026-10-31T15:04:05Z, or 30d (that long ago).`,
		Example: `  bot policy test --config new.yaml
  bot policy test --posture contained --since 30d
  bot policy test --config new.yaml --since 90d --all --json`,
		Args: knownCommand,
	}
	file, asJSON := configFlag(c), jsonFlag(c)
	since := c.Flags().String("since", "30d", "calls from this time on")
	posture := postureFlag(c)
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
		if err := usePosture(&cfg, *posture); err != nil {
			return err
		}
		s, err := openStore(c.Context(), nil)
		if err != nil {
			return err
		}
		defer s.Close()
		r := replay{Since: from.UTC(), Posture: policy.Posture(*posture), Changes: []policyChange{}}
		if err := s.RecordedCalls(c.Context(), from, func(call audit.RecordedCall) error {
			r.add(&cfg, call)
			return nil
		}); err != nil {
			return err
		}
		r.sort(*all)
		if *asJSON {
			return writeJSON(c, r)
		}
		r.explain(c.OutOrStdout())
		return nil
	}
	return c
}

// policyExamples is the number of calls listed for each change.
const policyExamples = 5

// replay is the result of applying a policy to recorded calls, in JSON.
type replay struct {
	Since   time.Time      `json:"since"`
	Posture policy.Posture `json:"posture,omitempty"` // that was asked about
	Calls   int            `json:"calls"`
	Same    int            `json:"decided_as_before"`
	Asked   int            `json:"asked"`     // of the calls, people were asked about
	Unasked int            `json:"not_asked"` // of these, nobody would have been
	Run     int            `json:"run"`       // of those, what would have run; the rest would have been refused
	Changes []policyChange `json:"changes"`
}

// policyChange is a changed verdict, with some of its calls.
type policyChange struct {
	From  string        `json:"from"`
	To    string        `json:"to"`
	Count int           `json:"count"`
	Calls []changedCall `json:"calls"` // the riskiest first
}

type changedCall struct {
	At    time.Time     `json:"at"`
	Tool  string        `json:"tool"`
	Input string        `json:"input"`
	Risks []policy.Risk `json:"risks,omitempty"`
	Push  bool          `json:"push,omitempty"`
	Was   string        `json:"was"`
	Now   string        `json:"now"`
	// Posture is the posture's part in the new verdict.
	Posture string `json:"posture"`
}

func (r *replay) add(cfg *settings.File, call audit.RecordedCall) {
	r.Calls++
	made := policy.Call{Tool: call.ToolName, Input: call.Input, Workspace: call.Workspace, Project: call.Project, Channel: call.ChannelID}
	d := decide(cfg, made)
	if call.Verdict == string(policy.Ask) {
		r.Asked++
		switch d.Verdict {
		case policy.Allow:
			r.Unasked++
			r.Run++
		case policy.Deny:
			r.Unasked++
		case policy.Ask:
		}
	}
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
	ch.Calls = append(ch.Calls, changedCall{
		At: call.At.UTC(), Tool: graphic(call.ToolName), Input: brief(call.Input), Risks: policy.Assess(made), Was: graphic(call.Rule), Now: graphic(strings.TrimSuffix(d.Rule+": "+d.Why, ": ")), Posture: posturePart(cfg, made, d),
	})
	ch.Calls[len(ch.Calls)-1].Push, _ = policy.Pushes(made)
}

// sort orders the changes, and each one's calls by risk: the most risks first, then the latest. Without all it
// keeps policyExamples of each.
func (r *replay) sort(all bool) {
	slices.SortFunc(r.Changes, func(a, b policyChange) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for i := range r.Changes {
		calls := r.Changes[i].Calls
		slices.SortStableFunc(calls, func(a, b changedCall) int {
			return cmp.Or(cmp.Compare(len(b.Risks), len(a.Risks)), b.At.Compare(a.At))
		})
		if !all {
			r.Changes[i].Calls = calls[:min(len(calls), policyExamples)]
		}
	}
}

func (r *replay) explain(out io.Writer) {
	fmt.Fprintf(out, "%d recorded call(s) since %s: %d decided as before, %d otherwise\n", r.Calls, r.Since.Format(time.DateTime), r.Same, r.Calls-r.Same)
	fmt.Fprintf(out, "People were asked %d time(s); %d of these questions would not have been asked: %d would have run, %d would have been refused.\n", r.Asked, r.Unasked, r.Run, r.Unasked-r.Run)
	for _, ch := range r.Changes {
		fmt.Fprintf(out, "\n%s → %s: %d, the riskiest first\n", ch.From, ch.To, ch.Count)
		for _, e := range ch.Calls {
			fmt.Fprintf(out, "    %s  %s  %s\n", e.At.Format(time.DateTime), e.Tool, e.Input)
			for _, risk := range e.Risks {
				fmt.Fprintf(out, "      ⚠ %s\n", risk)
			}
			if e.Push {
				fmt.Fprintln(out, "      it is a push")
			}
			fmt.Fprintf(out, "      was: %s\n      now: %s\n      posture: %s\n", e.Was, e.Now, e.Posture)
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
