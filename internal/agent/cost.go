package agent

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
)

// attemptUUID is the id under which the CLI is given a prompt. Every attempt at it has
// an id of its own, since the CLI takes no message twice; it follows from the turn's
// row, so that whoever goes on with the turn finds the attempt in the transcript.
func attemptUUID(promptUUID string, attempt int) string {
	id, err := uuid.Parse(promptUUID)
	if attempt <= 1 || err != nil {
		return promptUUID
	}
	return uuid.NewSHA1(id, []byte("attempt "+strconv.Itoa(attempt))).String()
}

// witness is what the CLI says that it has spent since it was asked last, in an epoch of
// its own where its total began anew. Of answers that it did not hear to their end it can
// only guess: where there were such, it is no witness, and the next time begins here.
func (w *worker) witness(ctx context.Context, running claude.Usage) ([]store.Witness, error) {
	whole := w.session.meter.whole()
	if err := w.followReset(ctx); err != nil {
		return nil, err
	}
	spent, reset := w.session.totals.Observe(running)
	if !whole {
		return nil, w.newEpoch(ctx, running.TotalMicroUSD)
	}
	if reset {
		if err := w.newEpoch(ctx, 0); err != nil {
			return nil, err
		}
	}
	return []store.Witness{{SessionID: w.session.id, Epoch: w.session.epoch, Before: spent.Before, After: spent.After, Model: spent.Model}}, nil
}

// addWitness writes down what the CLI has said between turns.
func (w *worker) addWitness(ctx context.Context, told []store.Witness) error {
	for _, t := range told {
		if err := w.books.AddWitness(ctx, w.heldLease(), t); err != nil {
			return err
		}
	}
	return nil
}
