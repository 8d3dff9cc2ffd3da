package claude_test

import (
	"testing"

	"deckhand/internal/agent/claude"
)

var moneyRows = []row{
	{"the running total is the bill", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		base, err := s.p.Baseline(s.ctx)
		s.must(err)
		totals := claude.NewTotals(base)
		var total int64
		for range 3 {
			s.run("say: some words that cost something")
			spent, reset := totals.Observe(s.turn.Result.Running)
			if reset || spent.Model == "" {
				t.Errorf("%+v, reset %v", spent, reset)
			}
			total += spent.After - spent.Before
		}
		if total == 0 || total != s.turn.Result.Running.TotalMicroUSD {
			t.Errorf("spent %d, running total %d", total, s.turn.Result.Running.TotalMicroUSD)
		}
		if cli.version == pinned {
			bill := s.model.Bill().Session(s.id).Total.MicroUSD
			if diff := bill - total; diff < -1 || diff > 1 {
				t.Errorf("spent %d, bill %d", total, bill)
			}
		}
	}},
	{"totals over a clean resume", "2.0.0", func(t *testing.T, cli program) { ledgerOver(t, cli, false, false) }},
	{"totals over a kill and resume", "2.0.0", func(t *testing.T, cli program) { ledgerOver(t, cli, true, false) }},
	{"totals over a fork", "2.1.276", func(t *testing.T, cli program) { ledgerOver(t, cli, false, true) }},
}

// ledgerOver runs two processes on one session: what both say must add
// up to what their calls cost, however the first ended.
func ledgerOver(t *testing.T, cli program, kill, fork bool) {
	t.Helper()
	s := begin(t, cli)
	base, err := s.p.Baseline(s.ctx)
	s.must(err)
	totals := claude.NewTotals(base)
	s.run("say: first process")
	spent, _ := totals.Observe(s.turn.Result.Running)
	total := spent.After - spent.Before
	if kill {
		s.transcribed()
		s.p.Kill()
	} else {
		s.must(s.p.Stop(s.ctx))
	}
	s.ended()
	parent := s.id
	if fork {
		parent = s.fork()
	}
	s.turn = claude.Output{}
	s.start(resumed)
	base, err = s.p.Baseline(s.ctx)
	s.must(err)
	totals = claude.NewTotals(base)
	s.run("say: second process")
	spent, reset := totals.Observe(s.turn.Result.Running)
	total += spent.After - spent.Before
	if reset || spent.Before == spent.After {
		t.Errorf("reset %v, spent %+v", reset, spent)
	}
	if cli.version == pinned {
		bill := s.model.Bill().Session(s.id).Total.MicroUSD
		if fork {
			bill += s.model.Bill().Session(parent).Total.MicroUSD
		}
		if diff := bill - total; diff < -2 || diff > 2 {
			t.Errorf("spent %d, bill %d (baseline %+v)", total, bill, base)
		}
	}
}
