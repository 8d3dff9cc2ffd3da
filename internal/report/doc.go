// Package report understands what people ask about costs and approvals and makes
// answers of it.
//
// [Parse] reads a question, [Ask] puts it to the ledger and compares the figures with
// those of the period before, and [Table], [CSV], [JSON] and [PNG] write the answer.
// A mention in Slack, the slash command, digests and the terminal all go this way, so
// that the same words mean the same everywhere. The package does not know who may see
// what, sends nothing, and looks no names up: callers narrow the [Question] and bring
// [Names]. It keeps no state and starts no goroutine that outlives a call; everything
// is safe for concurrent use. [NewApprovals] says how people decide, [Reconcile] sets
// the ledger against the provider's bill; both write themselves.
//
// # The grammar
//
// Parts of a question may stand in any order, in any case, each kind once; filters may
// be repeated. Filters of one kind widen each other (two people: either), filters of
// several kinds narrow each other (a person and a project: both). Without a period it
// is this month.
//
//	question = { period | grouping | filter | file | filler } .
//	period   = point
//	         | [ "from" | "between" ] ends
//	         | ( "since" | "from" ) point
//	         | [ "last" ] number unit .                 (* the days up to today *)
//	ends     = point range point
//	         | dd range dd month [ year ]               (* 1–5 November 2026 *)
//	         | month dd range dd [ year ] .             (* November 1 to 5 *)
//	range    = "to" | "until" | "till" | "through" | ".." | "-" | "–"
//	         | "and" .                                  (* after "between" *)
//	point    = "today" | "yesterday"
//	         | ( "this" | "last" ) ( unit | month | weekday )
//	         | year | year "-" mm | year "-" mm "-" dd  (* 2026, 2026-10, 2026-10-03 *)
//	         | [ dd ] month [ dd ] [ year ]             (* October, 3 October 2026 *)
//	         | quarter [ year ] | year "-" quarter      (* Q3, Q3 2026, 2026-Q3 *)
//	         | "mtd" | "wtd" | "qtd" | "ytd"
//	         | weekday .                                (* the latest one *)
//	unit     = "day" | "week" | "month" | "quarter" | "year" .       (* or plural *)
//	grouping = ( "by" | "per" ) ( "user" | "channel" | "project" | "model" | "thread" | "day" | "month" )
//	         | "daily" | "monthly" .
//	filter   = [ "for" ] ( person | channel | "me" | "this thread" | "everyone"
//	         | "project" name { "," name } | "model" name { "," name } ) .
//	person   = "<@U…>" | [ "user" ] "U…" .
//	channel  = "<#C…|name>" | [ "channel" ] "C…" .
//	file     = ( "as" | "with" ) "csv" .
//	name     = word | '"' { any } '"' .
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
