package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/anthropicadmin"
	"deckhand/internal/report"
	"deckhand/internal/store"
)

// costReporter is the provider's bill: an [anthropicadmin.Client].
type costReporter interface {
	Costs(ctx context.Context, from, to time.Time, workspace string) ([]anthropicadmin.Cost, error)
}

// reconciled is the ledger beside the provider's bill. It is also its JSON: fields
// are added, never renamed. Amounts are whole micro-USD.
type reconciled struct {
	FirstDay string `json:"first_day"`
	LastDay  string `json:"last_day"`
	TimeZone string `json:"time_zone"`
	// Workspace is whose costs the API told; empty means the whole organization.
	Workspace string `json:"workspace"`
	// Against says which of the ledger's prices the API's are compared with.
	Against string           `json:"against"`
	Lines   []reconciledLine `json:"lines"`
	Total   reconciledLine   `json:"total"`
	Notes   []string         `json:"notes"`

	name string
}

type reconciledLine struct {
	Day string `json:"day,omitempty"`
	// Model is a model's id, or in parentheses what the API attributes to none.
	Model string `json:"model,omitempty"`
	List  int64  `json:"list_micro_usd"`
	// Contract is nil if no entry has a contract price.
	Contract   *int64 `json:"contract_micro_usd"`
	Estimated  int64  `json:"estimated_micro_usd"`
	API        int64  `json:"api_micro_usd"`
	Difference int64  `json:"difference_micro_usd"`
	// Percent is the difference in percent of the ledger's figure, nil if that is 0.
	Percent *float64 `json:"difference_percent"`

	unpriced int64
}

func reportReconcile(ctx context.Context, out io.Writer, o reportFlags, words string) error {
	period, err := reconcilePeriod(words, time.Now())
	if err != nil {
		return err
	}
	key := os.Getenv("ANTHROPIC_ADMIN_KEY")
	if key == "" {
		return errors.New("ANTHROPIC_ADMIN_KEY: set it to an Admin API key, sk-ant-admin…; an admin of the organization makes one in Anthropic's Console")
	}
	s, team, err := o.openLedger(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	api := &anthropicadmin.Client{Key: key}
	r, err := reconcile(ctx, s, api, team, period, os.Getenv("ANTHROPIC_WORKSPACE_ID"), o.against)
	if err != nil {
		return err
	}
	return o.write(out, func(w io.Writer) error {
		if o.format == "json" {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			return enc.Encode(r)
		}
		return r.table(w)
	})
}

// reconcilePeriod understands a period of days in UTC, as the API has them.
func reconcilePeriod(words string, now time.Time) (report.Period, error) {
	if words == "" {
		words = "last month"
	}
	q, err := report.Parse(words, report.Context{Now: now, Projects: []string{}, Models: []string{}})
	if wrong, ok := errors.AsType[*report.ParseError](err); ok {
		return report.Period{}, fmt.Errorf("%s: %w", wrong.Sentence, errUsage)
	}
	if err != nil {
		return report.Period{}, err
	}
	if q.By != store.ByNothing || q.Everyone || q.CSV || len(q.Users)+len(q.Channels)+len(q.Projects)+len(q.Models) > 0 {
		return report.Period{}, fmt.Errorf("bot report reconcile takes a period and nothing else, such as “last month”: the API knows neither people nor projects: %w", errUsage)
	}
	return q.Period, nil
}

// reconcile sets the ledger's days, by their instants in UTC, against the API's.
func reconcile(ctx context.Context, s *store.Store, api costReporter, team string, p report.Period, workspace, against string) (reconciled, error) {
	ledger, err := s.Charged(ctx, team, p.From, p.To)
	if err != nil {
		return reconciled{}, err
	}
	costs, err := api.Costs(ctx, p.From, p.To, workspace)
	if err != nil {
		return reconciled{}, err
	}
	r := reconciled{
		FirstDay: p.From.UTC().Format(time.DateOnly), LastDay: p.LastDay().UTC().Format(time.DateOnly), TimeZone: "UTC",
		Workspace: workspace, Against: against, Lines: []reconciledLine{}, Notes: []string{}, name: p.Name,
	}
	type key struct{ day, model string }
	lines := map[key]*reconciledLine{}
	line := func(day, model string) *reconciledLine {
		k := key{day, model}
		if lines[k] == nil {
			lines[k] = &reconciledLine{Day: day, Model: model}
		}
		return lines[k]
	}
	unpriced := map[string]bool{}
	for _, c := range ledger {
		model := cmp.Or(plainModel(c.Model), "(no model)")
		l := line(c.Day, model)
		l.addLedger(c)
		if c.Unpriced > 0 {
			unpriced[model] = true
		}
	}
	for _, c := range costs {
		line(c.Day, cmp.Or(c.Model, "("+strings.ReplaceAll(c.Kind, "_", " ")+")")).API += c.MicroUSD
	}
	for _, l := range lines {
		r.Total.List += l.List
		r.Total.Estimated += l.Estimated
		r.Total.API += l.API
		r.Total.unpriced += l.unpriced
		if l.Contract != nil {
			if r.Total.Contract == nil {
				r.Total.Contract = new(int64)
			}
			*r.Total.Contract += *l.Contract
		}
	}
	if r.Against == "" {
		r.Against = "list"
		if r.Total.Contract != nil && r.Total.unpriced == 0 {
			r.Against = "contract"
		}
	}
	for _, l := range lines {
		l.compare(r.Against)
		r.Lines = append(r.Lines, *l)
	}
	r.Total.compare(r.Against)
	slices.SortFunc(r.Lines, func(a, b reconciledLine) int { return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model)) })
	r.note(unpriced)
	return r, nil
}

// plainModel is a model's id without the mark that a CLI puts behind it for its
// context window, as in claude-sonnet-4-5[1m]: the API has no such marks.
func plainModel(model string) string {
	if i := strings.LastIndexByte(model, '['); i > 0 && strings.HasSuffix(model, "]") {
		return model[:i]
	}
	return model
}

func (l *reconciledLine) addLedger(c store.Charged) {
	l.List += c.MicroUSD
	l.Estimated += c.EstimatedMicroUSD
	l.unpriced += c.Unpriced
	if c.Unpriced < c.Entries {
		if l.Contract == nil {
			l.Contract = new(int64)
		}
		*l.Contract += c.ContractMicroUSD
	}
}

func (l *reconciledLine) compare(against string) {
	ours := l.List
	if against == "contract" {
		ours = 0
		if l.Contract != nil {
			ours = *l.Contract
		}
	}
	l.Difference = l.API - ours
	if ours != 0 {
		percent := math.Round(float64(l.Difference)/math.Abs(float64(ours))*10_000) / 100
		l.Percent = &percent
	}
}

// note explains what the figures can and cannot be compared in.
func (r *reconciled) note(unpriced map[string]bool) {
	add := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	add("The difference is what the API has more than the ledger by %s prices. Days are in UTC, whatever the team's time zone.", r.Against)
	if r.Workspace == "" {
		add("The API's figures are the whole organization's: what others in it have spent is in them. ANTHROPIC_WORKSPACE_ID narrows them to the workspace of the bot's key (%s for the one without an id).", anthropicadmin.DefaultWorkspace)
	} else {
		add("The API's figures are those of the workspace %s: whoever else works in it is in them.", oneLine(r.Workspace, 64))
	}
	if slices.ContainsFunc(r.Lines, func(l reconciledLine) bool { return strings.HasPrefix(l.Model, "(") && l.API != 0 }) {
		add("What the API attributes to no model, such as web searches, stands on lines of its own; the ledger counts searches with the model that made them.")
	}
	if r.Total.Estimated != 0 {
		add("The ledger holds estimates, %s in all, for turns that were cut off before they were reported.", report.Money(r.Total.Estimated))
	}
	if r.Total.Contract != nil && len(unpriced) > 0 {
		add("No contract price was booked, or not with all entries, for %s.", strings.Join(sorted(unpriced), ", "))
	}
	add("The API knows costs some minutes after they arise, and does not tell those of Priority Tier.")
}

// table writes it for a terminal.
func (r reconciled) table(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "Ledger and Anthropic's cost report, %s (UTC)\n\n", r.name); err != nil {
		return err
	}
	if len(r.Lines) == 0 {
		_, err := fmt.Fprintln(w, "Neither has any costs.")
		return err
	}
	t := textTable{head: []string{"Day", "Model", "List"}, left: 2}
	contract := r.Total.Contract != nil
	if contract {
		t.head = append(t.head, "Contract")
	}
	t.head = append(t.head, "API", "Difference", "%")
	row := func(day, model string, l reconciledLine) []string {
		cells := []string{day, model, fourDecimals(l.List)}
		if contract {
			own := "–"
			if l.Contract != nil {
				own = fourDecimals(*l.Contract)
			}
			cells = append(cells, own)
		}
		percent := "–"
		if l.Percent != nil {
			percent = strconv.FormatFloat(*l.Percent, 'f', 2, 64)
		}
		return append(cells, fourDecimals(l.API), fourDecimals(l.Difference), percent)
	}
	last := ""
	for _, l := range r.Lines {
		day := l.Day
		if day == last {
			day = ""
		}
		last = l.Day
		t.rows = append(t.rows, row(day, oneLine(l.Model, 40), l))
	}
	t.total = row("Total", "", r.Total)
	if err := t.write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(r.Notes, "\n"))
	return err
}

// fourDecimals writes dollars with the same number of decimals in every row, rounded
// half away from zero.
func fourDecimals(micro int64) string {
	sign, n := "", micro
	if n < 0 {
		sign, n = "-", -n
	}
	n = (n + 50) / 100
	if n == 0 {
		sign = ""
	}
	return fmt.Sprintf("%s%d.%04d", sign, n/10_000, n%10_000)
}
