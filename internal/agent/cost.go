package agent

import (
	"context"
	"errors"
	"strconv"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/price"
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

// entries puts what the session has spent into the ledger's terms.
func (w *worker) entries(deltas []claude.ModelDelta, kind store.LedgerKind) []store.LedgerEntry {
	return w.entriesOf(w.session.id, w.session.epoch, deltas, kind)
}

func (w *worker) entriesOf(sessionID string, epoch int, deltas []claude.ModelDelta, kind store.LedgerKind) []store.LedgerEntry {
	out := make([]store.LedgerEntry, 0, len(deltas))
	for _, d := range deltas {
		short, long := d.CacheWrites()
		out = append(out, store.LedgerEntry{
			Kind: kind, SessionID: sessionID, Epoch: epoch, Model: d.Model,
			Input: d.Input, Output: d.Output, CacheRead: d.CacheRead, CacheWrite5m: short, CacheWrite1h: long, WebSearches: d.WebSearches,
			MicroUSD: d.MicroUSD, ContractMicroUSD: w.contract(d), TotalBefore: d.Before, TotalAfter: d.After,
		})
	}
	return out
}

// observe turns a running total into ledger entries, in an epoch of their own where the
// total began anew.
func (w *worker) observe(ctx context.Context, running claude.Usage) ([]store.LedgerEntry, error) {
	if err := w.followReset(ctx); err != nil {
		return nil, err
	}
	deltas, reset := w.session.meter.Observe(running)
	if reset {
		if err := w.newEpoch(ctx); err != nil {
			return nil, err
		}
	}
	return w.entries(deltas, store.LedgerTurn), nil
}

// interrupted is what an interrupted turn has cost beyond its result, which older CLIs
// leave the answer out of that they were stopped in.
func (w *worker) interrupted(r *claude.Result, content claude.Output) []store.LedgerEntry {
	if !r.Interrupted() || claude.CountsInterrupted(w.cliVersion) {
		return nil
	}
	var cut []claude.Call
	for _, c := range content.Calls {
		if !c.Done && c.ParentToolUseID == "" {
			c.Settled = false
			cut = append(cut, c)
		}
	}
	return w.entries(w.session.meter.Estimate(cut), store.LedgerEstimate)
}

// closeBooks books, on the thread's last turn, what the process has spent since its
// last result and would take with it: an answer that was interrupted, for one, is
// counted a moment after the result of its turn.
func (w *worker) closeBooks(ctx context.Context) {
	used, err := w.session.proc.GetUsage(ctx)
	if errors.Is(err, claude.ErrUnsupported) {
		return
	}
	var entries []store.LedgerEntry
	if err == nil {
		entries, err = w.observe(ctx, used)
	}
	if err == nil {
		err = w.books.AddEntries(ctx, w.heldLease(), entries)
	}
	if err != nil {
		w.log.Warn("book what the session has spent since its last turn", zap.Error(err))
	}
}

// estimate is what a turn has cost whose process ended before its result: the calls
// that were seen, and those that only the transcript knows of, such as a subagent's.
// The process is gone.
func (w *worker) estimate(t *turn) []store.LedgerEntry {
	s := w.session
	written, err := w.machine.calls(w.threadID, s.proc.SessionID(), t.promptUUID)
	if err != nil {
		w.log.Warn("estimate a turn without its transcript", zap.Error(err))
	}
	return w.entries(s.meter.Estimate(claude.MergeCalls(t.content.Calls, written)), store.LedgerEstimate)
}

// bookInterrupted books what a turn has cost that died with its bot, as its
// transcript tells. Nothing of it is counted again: the next process starts from a
// total of its own (see [claude.Process.Baseline]), whatever that includes, and a turn
// that has entries already was accounted for by the process that left it.
func (w *worker) bookInterrupted(ctx context.Context, old store.Turn, prompt store.Prompt) error {
	if old.Booked {
		return nil
	}
	calls, err := w.machine.calls(w.threadID, old.SessionID, attemptUUID(prompt.UUID, old.Attempt))
	if err != nil {
		w.log.Error("what an interrupted turn has cost is not known", zap.Int64("turn", old.ID), zap.Error(err))
	}
	if len(calls) == 0 {
		return nil
	}
	totals, err := w.books.EpochTotals(ctx, old.SessionID, old.Epoch)
	if err != nil {
		return err
	}
	last := claude.Usage{Models: make(map[string]claude.ModelUsage, len(totals))}
	for model, total := range totals {
		last.Models[model] = claude.ModelUsage{MicroUSD: total}
		last.TotalMicroUSD += total
	}
	deltas := claude.NewMeter(last).Estimate(calls)
	return w.books.AddEntries(ctx, w.heldLease(), w.entriesOf(old.SessionID, old.Epoch, deltas, store.LedgerEstimate))
}

// contract is what a delta costs by the team's own prices, the project's before those
// of all; nil where there are none for the model, or no tokens to apply them to.
func (w *worker) contract(d claude.ModelDelta) *int64 {
	if len(w.project.Prices)+len(w.prices) == 0 {
		return nil
	}
	terms, ok := w.project.Prices.Of(d.Model)
	if !ok {
		terms, ok = w.prices.Of(d.Model)
	}
	if !ok {
		if _, told := w.unpriced.LoadOrStore(d.Model, true); !told {
			w.log.Warn("no contract price for "+d.Model, zap.String("model", d.Model), zap.String("hint", "write one under prices in deckhand.yaml"))
		}
		return nil
	}
	used := d.ModelUsage
	used.MicroUSD = 0
	if used == (claude.ModelUsage{}) && d.MicroUSD != 0 {
		return nil
	}
	short, long := d.CacheWrites()
	cost := terms.Cost(d.Model, price.Usage{Input: d.Input, Output: d.Output, CacheRead: d.CacheRead, CacheWrite5m: short, CacheWrite1h: long, WebSearches: d.WebSearches})
	return &cost
}
