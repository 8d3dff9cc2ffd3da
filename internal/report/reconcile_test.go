package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/anthropicadmin"
	"deckhand/internal/store/ledger"
)

// entries are a ledger's, summed up.
type entries []ledger.Charged

func (e entries) Charged(context.Context, string, time.Time, time.Time) ([]ledger.Charged, error) {
	return e, nil
}

// TestTheLedgerIsSetAgainstTheBill of a loopback Admin API.
func TestTheLedgerIsSetAgainstTheBill(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from, to := r.URL.Query().Get("starting_at"), r.URL.Query().Get("ending_at"); from != "2026-10-01T00:00:00Z" || to != "2026-11-01T00:00:00Z" {
			t.Errorf("asked for %s to %s", from, to)
		}
		item := func(workspace, model, kind, amount string) string {
			return fmt.Sprintf(`{"currency":"USD","amount":%q,"workspace_id":%s,"cost_type":%q,"model":%s}`, amount, workspace, kind, model)
		}
		fmt.Fprintf(w, `{"data":[{"starting_at":"2026-10-01T00:00:00Z","results":[%s,%s,%s]},{"starting_at":"2026-10-02T00:00:00Z","results":[%s]}],"has_more":false,"next_page":null}`,
			item(`"wrkspc_1"`, `"claude-opus-5"`, "tokens", "150"), item("null", `"claude-opus-5"`, "tokens", "1000"), item(`"wrkspc_1"`, "null", "web_search", "2.5"),
			item(`"wrkspc_1"`, `"claude-haiku-4-5"`, "tokens", "0.5"))
	}))
	t.Cleanup(server.Close)
	ledger := entries{
		{Day: "2026-10-01", Model: "claude-opus-5", Entries: 1, MicroUSD: 1_000_000, ContractMicroUSD: 800_000},
		{Day: "2026-10-01", Model: "claude-opus-5[1m]", Entries: 1, MicroUSD: 500_000, ContractMicroUSD: 400_000},
		{Day: "2026-10-03", Model: "claude-sonnet-5", Entries: 1, Unpriced: 1, MicroUSD: 70_000, EstimatedMicroUSD: 70_000},
	}
	p, err := ReconciledPeriod("", time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	api := &anthropicadmin.Client{Key: "k", URL: server.URL}
	r, err := Reconcile(t.Context(), ledger, api, "T1", p, "wrkspc_1", "")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	want := `Ledger and Anthropic's cost report, October 2026 (UTC)

Day         Model              List  Contract    API  Difference        %
─────────────────────────────────────────────────────────────────────────
2026-10-01  (web search)      $0.00         –  $0.03       $0.03        –
            claude-opus-5     $1.50     $1.20  $1.50       $0.00     0.00
2026-10-02  claude-haiku-4-5  $0.00         –  $0.01       $0.01        –
2026-10-03  claude-sonnet-5   $0.07         –  $0.00      −$0.07  -100.00
─────────────────────────────────────────────────────────────────────────
Total                         $1.57     $1.20  $1.53      −$0.04    -2.55

The difference is what the API has more than the ledger by list prices. Days are in UTC, whatever the team's time zone.
The API's figures are those of the workspace wrkspc_1: whoever else works in it is in them.
What the API attributes to no model, such as web searches, stands on lines of its own; the ledger counts searches with the model that made them.
The ledger holds estimates, $0.07 in all, for turns that were cut off before they were reported.
No contract price was booked, or not with all entries, for claude-sonnet-5.
The API knows costs some minutes after they arise, and does not tell those of Priority Tier.
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}

	// Of the whole organization, against contract prices, and in JSON.
	r, err = Reconcile(t.Context(), ledger, api, "T1", p, "", "contract")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		First string `json:"first_day"`
		Last  string `json:"last_day"`
		Lines []struct {
			Model      string   `json:"model"`
			Contract   *int64   `json:"contract_micro_usd"`
			Difference int64    `json:"difference_micro_usd"`
			Percent    *float64 `json:"difference_percent"`
		} `json:"lines"`
		Total struct {
			API int64 `json:"api_micro_usd"`
		} `json:"total"`
		Notes []string `json:"notes"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	opus := got.Lines[1]
	if got.First != "2026-10-01" || got.Last != "2026-10-31" || got.Total.API != 11_530_000 || *opus.Contract != 1_200_000 || opus.Difference != 10_300_000 || *opus.Percent != 858.33 {
		t.Errorf("json: %s", raw)
	}
	if !slices.ContainsFunc(got.Notes, func(n string) bool {
		return strings.Contains(n, "whole organization") && strings.Contains(n, "ANTHROPIC_WORKSPACE_ID")
	}) {
		t.Errorf("nothing is said of the others in the organization: %q", got.Notes)
	}
}

// A ledger that has a contract price for everything is compared by that, unless asked
// otherwise.
func TestContractPricesAreComparedWhereAllHaveThem(t *testing.T) {
	t.Parallel()
	ledger := entries{{Day: "2026-10-05", Model: "m", Entries: 1, MicroUSD: 7, ContractMicroUSD: 5}}
	p, err := ReconciledPeriod("2026-10", time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for against, want := range map[Against]int64{"": 4, "contract": 4, "list": 2} {
		r, err := Reconcile(t.Context(), ledger, bill{{Day: "2026-10-05", Model: "m", MicroUSD: 9}}, "T1", p, "", against)
		if err != nil || r.Total.Difference != want {
			t.Errorf("against %q: %+v, %v; want a difference of %d", against, r.Total, err, want)
		}
	}
	if _, err := Reconcile(t.Context(), ledger, noBill{}, "T1", p, "", ""); !errors.Is(err, errNoBill) {
		t.Errorf("error %v", err)
	}
}

type bill []anthropicadmin.Cost

func (b bill) Costs(context.Context, time.Time, time.Time, string) ([]anthropicadmin.Cost, error) {
	return b, nil
}

var errNoBill = errors.New("no bill")

type noBill struct{}

func (noBill) Costs(context.Context, time.Time, time.Time, string) ([]anthropicadmin.Cost, error) {
	return nil, errNoBill
}
