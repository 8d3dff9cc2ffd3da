// Package store is everything Deckhand remembers, in PostgreSQL. Each subject is a package below it, with its
// values and its statements: threads and leases, what people send (inbox) and what they must see (outbox), turns,
// approvals, the ledger, the audit, forges, kept work and transcripts. This package opens them over one handle, as
// one value, and holds what spans several of them.
//
// Every exported method is one transaction, safe for concurrent use and safe to
// call from any replica. Methods that write on behalf of a thread's worker take
// its [threads.Lease] and return [threads.ErrFenced] once another replica holds it: a worker
// that gets ErrFenced must stop at once without touching Slack or the CLI.
//
// What must happen later is written as a [pg.Job] in the transaction that causes it; package jobs runs it.
//
// The packages know nothing of Slack's API or of the CLI, and start no goroutine of
// their own.
package store

import (
	"context"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/store/turns"
	"deckhand/internal/store/work"
)

// Options configure a store.
type Options = pg.Options

// The subjects have one name each, by which [Store] embeds them.
type (
	approvalStore   = approvals.Store
	auditStore      = audit.Store
	connection      = pg.Store
	forgeStore      = forges.Store
	inboxStore      = inbox.Store
	ledgerStore     = ledger.Store
	outboxStore     = outbox.Store
	threadStore     = threads.Store
	transcriptStore = transcripts.Store
	turnStore       = turns.Store
	workStore       = work.Store
)

// Store has the methods of all subjects, over one handle on the database; see [Open].
type Store struct {
	db *pg.DB
	*approvalStore
	*auditStore
	*connection
	*forgeStore
	*inboxStore
	*ledgerStore
	*outboxStore
	*threadStore
	*transcriptStore
	*turnStore
	*workStore
}

// Open connects to the database at url (a postgres:// URL or a DSN) and checks
// that it answers; see [Store.CheckSchema] for what is in it.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	db, err := pg.Open(ctx, url, o)
	if err != nil {
		return nil, err
	}
	return compose(db), nil
}

func compose(db *pg.DB) *Store {
	return &Store{
		db, approvals.New(db), audit.New(db), pg.New(db), forges.New(db), inbox.New(db), ledger.New(db), outbox.New(db),
		threads.New(db), transcripts.New(db), turns.New(db), work.New(db),
	}
}
