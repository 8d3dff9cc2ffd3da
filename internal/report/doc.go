// Package report understands what people ask about costs and approvals and makes
// answers of it.
//
// [Parse] reads a question, [Asks] tells one from work, [Ask] puts it to the ledger and compares the figures with
// those of the period before, and [Table], [CSV], [JSON] and [PNG] write the answer.
// A mention in Slack, the slash command, digests and the terminal all go this way, so
// that the same words mean the same everywhere. The package does not know who may see
// what, sends nothing, and looks no names up: callers narrow the [Question] and bring
// [Names]. It keeps no state and starts no goroutine that outlives a call; everything
// is safe for concurrent use. [NewApprovals] says how people decide, [Reconcile] sets
// the ledger against the provider's bill; both write themselves.
//
// # What is understood
//
// A question is not parsed as a sentence: period, grouping and filters are found among its
// words, wherever they stand, in any case. Words that mean nothing in such a question
// ("please", "how much") are passed over; what is not known is complained of, with the
// nearest questions that can be answered. Filters of one kind widen each other (two people:
// either), filters of several kinds narrow each other (a person and a project: both).
// Without a period it is this month.
//
//	period     today, yesterday, this week, last month, last October, last Monday, Q3 2026,
//	           2026, 2026-10, 2026-10-03, 3 October, Monday, mtd, last 7 days, since Monday,
//	           from 2026-10-01 to 2026-10-15, 1–5 November, between October and November
//	grouping   by user, per project, which model, who, threads, daily
//	filter     <@U123>, <#C123>, me, this thread, this project, project web, opus, everyone
//	file       csv, as a CSV file
//
// [Asks] tells questions about costs from work: by their words alone, of which all have to be
// known, but for one that is misspelt or stands where a name would.
//
// Months and days without a year are the latest that have begun, and so are ranges of
// which neither end has one. Both ends of a range belong to it. Periods are of whole
// days, begin when the day does in the asker's time zone, end with today at the latest,
// and are five years long at most.
//
// # Figures
//
// All amounts are micro-USD. Package money rounds them for people; CSV and JSON are exact.
// Estimates are a part of the amounts and also given apart; contract prices never
// replace list prices.
package report
