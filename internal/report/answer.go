package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"deckhand/internal/store/ledger"
)

// Ledger provides the figures: a [store.Store].
type Ledger interface {
	Costs(ctx context.Context, q ledger.CostQuery) (ledger.CostReport, error)
	MeterNotes(ctx context.Context, q ledger.CostQuery) (ledger.MeterNotes, error)
}

const (
	maxLines   = 5000 // that an answer has of its own; thousands of people fit
	topThreads = 5
)

// Answer is the answer to a [Question]. It holds ids; [Names] resolves them when it is written. All amounts are
// micro-USD.
type Answer struct {
	Question Question
	// By is the grouping of Lines: the requested one, or Ask's choice.
	By ledger.CostGroup
	// Previous is the period that figures are compared with.
	Previous Period
	// Total is the whole of the period.
	Total Line
	// Lines are dearest first; days and months in their order.
	Lines []Line
	// Rest sums up the More lines beyond the limit.
	Rest Line
	More int
	// Series is the spend over time, without gaps.
	Series Series
	// Threads are the dearest threads, at most five; none when one thread was asked about.
	Threads []Line
	// Meter has the ledger's remarks on the figures, by the lines' group.
	Meter ledger.MeterNotes
}

// Line is a sum with derived figures.
type Line struct {
	ledger.CostLine
	// Share is the line's part of the total, from 0 to 1; 0 if the total is not positive.
	Share float64
	// Before is the cost in the previous period, if Compared: days and threads are not compared.
	Before   int64
	Compared bool
}

// Empty reports whether nothing at all was booked in the period.
func (a Answer) Empty() bool { return a.Total.Entries == 0 && a.Total.MicroUSD == 0 }

// HasContract reports whether any amount is by the team's own prices.
func (a Answer) HasContract() bool {
	return a.Total.ContractMicroUSD != 0 || slices.ContainsFunc(a.Lines, func(l Line) bool { return l.ContractMicroUSD != 0 })
}

// cut are the calls of a line whose answer was cut. others says that the line sums up the rest.
func (a Answer) cut(l Line, others bool) ledger.CutCalls {
	if !others {
		return a.Meter.CutBy[l.Key]
	}
	rest := a.Meter.Cut
	for _, l := range a.Lines {
		c := a.Meter.CutBy[l.Key]
		rest.Calls, rest.BoundMicroUSD = rest.Calls-c.Calls, rest.BoundMicroUSD-c.BoundMicroUSD
	}
	return rest
}

// Change is the difference to the previous period. ok is false if it is not compared.
func (l Line) Change() (microUSD int64, ok bool) { return l.MicroUSD - l.Before, l.Compared }

// ChangePercent is the change in percent of the period before. ok is false if the
// line is not compared, or if there was nothing to compare it with.
func (l Line) ChangePercent() (percent float64, ok bool) {
	if !l.Compared || l.Before <= 0 {
		return 0, false
	}
	return float64(l.MicroUSD-l.Before) * 100 / float64(l.Before), true
}

// PerTurn is the cost of a turn, rounded. ok is false if there was none.
func (l Line) PerTurn() (microUSD int64, ok bool) { return per(l.MicroUSD, l.Turns) }

// PerApproved is the cost per tool call that a person approved, rounded. ok is false if
// there was none.
func (l Line) PerApproved() (microUSD int64, ok bool) { return per(l.MicroUSD, l.Approved) }

func per(amount, n int64) (int64, bool) {
	if n <= 0 {
		return 0, false
	}
	half := n / 2
	if amount < 0 {
		half = -half
	}
	return (amount + half) / n, true
}

// Top limits the answer's lines to n > 0, and sums up and counts the others. Of days and months, too, the dearest
// stay, in their order.
func (a Answer) Top(n int) (lines []Line, others Line, more int) {
	others, more = a.Rest, a.More
	if len(a.Lines) <= n {
		return a.Lines, others, more
	}
	keep := slices.Clone(a.Lines)
	slices.SortStableFunc(keep, func(x, y Line) int { return cmp.Compare(y.MicroUSD, x.MicroUSD) })
	kept := make(map[string]bool, n)
	for _, l := range keep[:n] {
		kept[l.Key] = true
	}
	for _, l := range a.Lines {
		if kept[l.Key] {
			lines = append(lines, l)
			continue
		}
		others = join(others, l, more == 0)
		more++
	}
	return lines, others, more
}

// SumUp moves the channels and threads for which shows is false into the answer's others.
func (a *Answer) SumUp(shows func(channel string) bool) {
	hidden := func(l Line) bool { return !shows(l.ThreadKey.ChannelID) }
	a.Threads = slices.DeleteFunc(slices.Clone(a.Threads), hidden)
	switch a.By {
	case ledger.ByThread:
	case ledger.ByChannel:
		hidden = func(l Line) bool { return !shows(l.Key) }
	case ledger.ByNothing, ledger.ByUser, ledger.ByProject, ledger.ByModel, ledger.ByDay, ledger.ByMonth, ByTeam:
		return
	}
	a.Lines = slices.DeleteFunc(slices.Clone(a.Lines), func(l Line) bool {
		if !hidden(l) {
			return false
		}
		a.Rest = join(a.Rest, l, a.More == 0)
		a.More++
		return true
	})
}

// join adds l to a sum, which stays compared while all of it is.
func join(sum, l Line, first bool) Line {
	sum.Add(l.CostLine)
	sum.Share += l.Share
	sum.Before += l.Before
	sum.Compared = l.Compared && (first || sum.Compared)
	sum.Key = ""
	return sum
}

// Ask answers a question from a team's ledger. Without a requested grouping it takes the first with more than one
// line among people, projects, channels and models, except what was asked about.
func Ask(ctx context.Context, book Ledger, q Question, team string) (Answer, error) {
	if q.Period.loc == nil {
		return Answer{}, errors.New("ask for costs: the question has no period; Parse gives it one")
	}
	book = teamLedger{book, q.teams}
	a := Answer{Question: q, Previous: q.Period.Previous()}
	var now ledger.CostReport
	for _, by := range groupingsFor(q) {
		var err error
		if now, err = book.Costs(ctx, q.query(team, q.Period, by, limitOf(by))); err != nil {
			return Answer{}, fmt.Errorf("ask for costs by %s: %w", by, err)
		}
		a.By = by
		if len(now.Lines) > 1 || now.Total.Entries == 0 {
			break
		}
	}

	var before, series, threads ledger.CostReport
	unit, seriesBy := unitFor(q.Period)
	g, ctx := errgroup.WithContext(ctx)
	ask := func(into *ledger.CostReport, p Period, by ledger.CostGroup, limit int) {
		g.Go(func() error {
			var err error
			if *into, err = book.Costs(ctx, q.query(team, p, by, limit)); err != nil {
				return fmt.Errorf("ask for costs of %s by %s: %w", p.Name, by, err)
			}
			return nil
		})
	}
	beforeBy := a.By
	if !hasBefore(a.By) {
		beforeBy = ledger.ByNothing
	}
	ask(&before, a.Previous, beforeBy, limitOf(beforeBy))
	switch {
	case now.Total.Entries == 0: // nothing to show over time either
	case seriesBy == a.By:
		series = now
	default:
		ask(&series, q.Period, seriesBy, 0)
	}
	switch {
	case now.Total.Entries == 0 || q.ThreadID != 0:
	case a.By == ledger.ByThread:
		threads.Lines = now.Lines[:min(topThreads, len(now.Lines))]
	default:
		ask(&threads, q.Period, ledger.ByThread, topThreads)
	}
	g.Go(func() error {
		var err error
		a.Meter, err = book.MeterNotes(ctx, q.query(team, q.Period, a.By, 0))
		return err
	})
	if err := g.Wait(); err != nil {
		return Answer{}, err
	}

	a.fill(now, before)
	a.Series = newSeries(q.Period, unit, series.Lines)
	for _, l := range threads.Lines {
		a.Threads = append(a.Threads, Line{CostLine: l, Share: share(l.MicroUSD, now.Total.MicroUSD)})
	}
	return a, nil
}

// fill takes over the figures and compares them.
func (a *Answer) fill(now, before ledger.CostReport) {
	total := now.Total.MicroUSD
	a.Total = Line{CostLine: now.Total, Before: before.Total.MicroUSD, Compared: true}
	a.Total.Share = share(total, total)
	a.Rest, a.More = Line{CostLine: now.Rest, Share: share(now.Rest.MicroUSD, total)}, now.More
	then := make(map[string]int64, len(before.Lines))
	for _, l := range before.Lines {
		then[l.Key] = l.MicroUSD
	}
	for _, l := range now.Lines {
		was, known := then[l.Key]
		a.Lines = append(a.Lines, Line{
			CostLine: l, Share: share(l.MicroUSD, total),
			Before: was, Compared: hasBefore(a.By) && (known || before.More == 0),
		})
	}
}

func share(part, total int64) float64 {
	if total <= 0 {
		return 0
	}
	return float64(part) / float64(total)
}

// hasBefore reports whether a group's lines have a counterpart in the previous period: days have none, and threads
// rarely.
func hasBefore(by ledger.CostGroup) bool {
	switch by {
	case ledger.ByUser, ledger.ByChannel, ledger.ByProject, ledger.ByModel, ByTeam:
		return true
	case ledger.ByNothing, ledger.ByThread, ledger.ByDay, ledger.ByMonth:
	}
	return false
}

func limitOf(by ledger.CostGroup) int {
	switch by {
	case ledger.ByNothing, ledger.ByDay, ledger.ByMonth:
		return 0
	case ledger.ByThread:
		return 1000
	case ledger.ByUser, ledger.ByChannel, ledger.ByProject, ledger.ByModel:
	}
	return maxLines
}

// groupingsFor are the groupings to try, the most informative first, without those narrowed to one value.
func groupingsFor(q Question) []ledger.CostGroup {
	if q.By != ledger.ByNothing {
		return []ledger.CostGroup{q.By}
	}
	var several, open []ledger.CostGroup
	for _, f := range []struct {
		by  ledger.CostGroup
		ids []string
	}{{ledger.ByUser, q.Users}, {ledger.ByProject, q.Projects}, {ledger.ByChannel, q.Channels}, {ledger.ByModel, q.Models}} {
		inThread := q.ThreadID != 0 && (f.by == ledger.ByProject || f.by == ledger.ByChannel)
		switch {
		case len(f.ids) > 1:
			several = append(several, f.by)
		case len(f.ids) == 0 && !inThread:
			open = append(open, f.by)
		}
	}
	all := append(several, open...)
	if len(all) == 0 {
		return []ledger.CostGroup{ledger.ByDay}
	}
	return all
}
