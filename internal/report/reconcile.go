package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"deckhand/internal/anthropicadmin"
	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
)

// Entries are the ledger's own rows, summed up by day in UTC: a [store.Store].
type Entries interface {
	Charged(ctx context.Context, team string, from, to time.Time) ([]ledger.Charged, error)
}

// Bill is what the provider charges: an [anthropicadmin.Client].
type Bill interface {
	Costs(ctx context.Context, from, to time.Time, workspace string) ([]anthropicadmin.Cost, error)
}

// Against says which of the ledger's prices a bill is compared with. The zero value is
// the team's own where every entry has one, and list prices otherwise.
type Against string

// The prices.
const (
	AgainstList     Against = "list"
	AgainstContract Against = "contract"
)

// Reconciliation is the ledger beside the provider's bill. It is also its JSON: fields
// are added, never renamed. Amounts are whole micro-USD.
type Reconciliation struct {
	FirstDay string `json:"first_day"`
	LastDay  string `json:"last_day"`
	TimeZone string `json:"time_zone"`
	// Workspace is whose costs the bill told; empty means the whole organization.
	Workspace string `json:"workspace"`
	// Against says which of the ledger's prices the bill's are compared with.
	Against Against          `json:"against"`
	Lines   []ReconciledLine `json:"lines"` // by day, then by model
	Total   ReconciledLine   `json:"total"`
	Notes   []string         `json:"notes"`

	name string
}

// ReconciledLine is what the ledger and the bill have of one model on one day.
type ReconciledLine struct {
	Day string `json:"day,omitempty"`
	// Model is a model's id, or in parentheses what the API attributes to none.
	Model string `json:"model,omitempty"`
	List  int64  `json:"list_micro_usd"`
	// Contract is nil if no entry has a contract price.
	Contract  *int64 `json:"contract_micro_usd"`
	Estimated int64  `json:"estimated_micro_usd"`
	API       int64  `json:"api_micro_usd"`
	// Difference is what the bill has more than the ledger.
	Difference int64 `json:"difference_micro_usd"`
	// Percent is the difference in percent of the ledger's figure, nil if that is 0.
	Percent *float64 `json:"difference_percent"`

	unpriced int64
}

// ReconciledPeriod understands a period of days in UTC, as bills have them; without
// words it is last month. The error is a [*ParseError].
func ReconciledPeriod(words string, now time.Time) (Period, error) {
	q, err := Parse(cmp.Or(words, "last month"), Context{Now: now, Projects: []string{}, Models: []string{}})
	if err != nil {
		return Period{}, err
	}
	if q.By != ledger.ByNothing || q.Everyone || q.CSV || len(q.Users)+len(q.Channels)+len(q.Projects)+len(q.Models) > 0 {
		return Period{}, &ParseError{
			Sentence: "Name a period and nothing else, such as “last month”: the bill knows neither people nor projects.",
		}
	}
	return q.Period, nil
}

// Reconcile sets a team's ledger, by its entries' instants in UTC, against the bill of
// a workspace, or of the whole organization if that is empty.
func Reconcile(ctx context.Context, ledger Entries, bill Bill, team string, p Period, workspace string, against Against) (Reconciliation, error) {
	booked, err := ledger.Charged(ctx, team, p.From, p.To)
	if err != nil {
		return Reconciliation{}, err
	}
	costs, err := bill.Costs(ctx, p.From, p.To, workspace)
	if err != nil {
		return Reconciliation{}, err
	}
	r := Reconciliation{
		FirstDay: p.From.UTC().Format(time.DateOnly), LastDay: p.LastDay().UTC().Format(time.DateOnly), TimeZone: "UTC",
		Workspace: workspace, Against: against, Lines: []ReconciledLine{}, Notes: []string{}, name: p.Name,
	}
	type key struct{ day, model string }
	lines := map[key]*ReconciledLine{}
	line := func(day, model string) *ReconciledLine {
		k := key{day, model}
		if lines[k] == nil {
			lines[k] = &ReconciledLine{Day: day, Model: model}
		}
		return lines[k]
	}
	unpriced := map[string]bool{}
	for _, c := range booked {
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
		r.Against = AgainstList
		if r.Total.Contract != nil && r.Total.unpriced == 0 {
			r.Against = AgainstContract
		}
	}
	for _, l := range lines {
		l.compare(r.Against)
		r.Lines = append(r.Lines, *l)
	}
	r.Total.compare(r.Against)
	slices.SortFunc(r.Lines, func(a, b ReconciledLine) int { return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model)) })
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

func (l *ReconciledLine) addLedger(c ledger.Charged) {
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

func (l *ReconciledLine) compare(against Against) {
	ours := l.List
	if against == AgainstContract {
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
func (r *Reconciliation) note(unpriced map[string]bool) {
	add := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	add("The difference is what the API has more than the ledger by %s prices. Days are in UTC, whatever the team's time zone.", r.Against)
	if r.Workspace == "" {
		add("The API's figures are the whole organization's: what others in it have spent is in them. ANTHROPIC_WORKSPACE_ID narrows them to the workspace of the bot's key (%s for the one without an id).", anthropicadmin.DefaultWorkspace)
	} else {
		add("The API's figures are those of the workspace %s: whoever else works in it is in them.", fit(printable(r.Workspace), 64))
	}
	if slices.ContainsFunc(r.Lines, func(l ReconciledLine) bool { return strings.HasPrefix(l.Model, "(") && l.API != 0 }) {
		add("What the API attributes to no model, such as web searches, stands on lines of its own; the ledger counts searches with the model that made them.")
	}
	if r.Total.Estimated != 0 {
		add("The ledger holds estimates, %s in all, for turns that were cut off before they were reported.", money.USD(r.Total.Estimated))
	}
	if r.Total.Contract != nil && len(unpriced) > 0 {
		add("No contract price was booked, or not with all entries, for %s.", strings.Join(slices.Sorted(maps.Keys(unpriced)), ", "))
	}
	add("The API knows costs some minutes after they arise, and does not tell those of Priority Tier.")
}

// Table writes it for a terminal.
func (r Reconciliation) Table(w io.Writer) error {
	title := "Ledger and Anthropic's cost report, " + r.name + " (UTC)\n\n"
	if len(r.Lines) == 0 {
		return write(w, title+"Neither has any costs.\n")
	}
	head := []string{"Day", "Model", "List"}
	contract := r.Total.Contract != nil
	if contract {
		head = append(head, "Contract")
	}
	t := newTable(2, append(head, "API", "Difference", "%")...)
	last := ""
	for _, l := range r.Lines {
		day := l.Day
		if day == last {
			day = ""
		}
		last = l.Day
		t.AppendRow(l.row(day, fit(printable(l.Model), 40), contract))
	}
	t.AppendFooter(r.Total.row("Total", "", contract))
	return write(w, title+t.Render()+"\n\n"+strings.Join(r.Notes, "\n")+"\n")
}

func (l ReconciledLine) row(day, model string, contract bool) table.Row {
	row := table.Row{day, model, money.USD(l.List)}
	if contract {
		own := "–"
		if l.Contract != nil {
			own = money.USD(*l.Contract)
		}
		row = append(row, own)
	}
	percent := "–"
	if l.Percent != nil {
		percent = strconv.FormatFloat(*l.Percent, 'f', 2, 64)
	}
	return append(row, money.USD(l.API), money.USD(l.Difference), percent)
}
