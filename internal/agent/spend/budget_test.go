package spend

import (
	"context"
	"testing"

	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

type named struct{ Front }

func (named) Name(context.Context, string) string { return "Linus Engineer" }

// TestWhoseBudgetItIs: a person's budget is theirs where they alone read of it, and has their
// name elsewhere.
func TestWhoseBudgetItIs(t *testing.T) {
	t.Parallel()
	a := New(Config{Front: named{}})
	b := Status{Budget: Budget{Scope: ledger.BudgetPerson, Period: ledger.BudgetDaily}, Key: "U1", SpentMicroUSD: 2e6, LimitMicroUSD: 2e6}
	for channel, want := range map[string]string{
		"D1": "Your budget for today is used up: $2.00 of $2.00 spent.",
		"C1": "Linus Engineer's budget for today is used up: $2.00 of $2.00 spent.",
	} {
		if got := a.named(t.Context(), threads.Thread{ChannelID: channel}, b).Sentence(); got != want {
			t.Errorf("in %s: %s", channel, got)
		}
	}
}
