package agent

import (
	"context"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store/ledger"
)

// cliTotals is what the CLI says that it has spent since it was asked last, in an epoch of
// its own where its total began anew. Of answers that it did not hear to their end it can
// only guess: where there were such, it proves nothing, and the next time begins here.
func (s *session) cliTotals(ctx context.Context, running claude.Usage) ([]ledger.CLITotal, error) {
	whole := s.meter.Whole()
	if err := s.followReset(ctx); err != nil {
		return nil, err
	}
	spent, reset := s.totals.Observe(running)
	if !whole {
		return nil, s.newEpoch(ctx, running.TotalMicroUSD)
	}
	if reset {
		if err := s.newEpoch(ctx, 0); err != nil {
			return nil, err
		}
	}
	return []ledger.CLITotal{{SessionID: s.id, Epoch: s.epoch, Before: spent.Before, After: spent.After, Model: spent.Model}}, nil
}

// addCLITotals writes down what the CLI has said between turns.
func (h *leased) addCLITotals(ctx context.Context, told []ledger.CLITotal) error {
	for _, t := range told {
		if err := h.store.AddCLITotals(ctx, h.heldLease(), t); err != nil {
			return err
		}
	}
	return nil
}
