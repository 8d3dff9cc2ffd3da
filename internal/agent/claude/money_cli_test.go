package claude_test

import (
	"testing"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
)

var moneyRows = []row{
	{"ledger equals the running total and the bill", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		base, err := s.p.Baseline(s.ctx)
		s.must(err)
		meter := claude.NewMeter(base)
		var total int64
		for range 3 {
			s.run("say: some words that cost something")
			deltas, reset := meter.Observe(s.turn.Result.Running)
			if reset {
				t.Error("a reset in mid-epoch")
			}
			total += sum(deltas)
		}
		if total == 0 || total != s.turn.Result.Running.TotalMicroUSD || meter.Total() != total {
			t.Errorf("entries %d, meter %d, running total %d", total, meter.Total(), s.turn.Result.Running.TotalMicroUSD)
		}
		if cli.version == pinned {
			bill := s.model.Bill().Session(s.id).Total.MicroUSD
			if diff := bill - total; diff < -1 || diff > 1 {
				t.Errorf("entries %d, bill %d", total, bill)
			}
		}
	}},
	{"ledger over a clean resume", "2.0.0", func(t *testing.T, cli program) { ledgerOver(t, cli, false, false) }},
	{"ledger over a kill and resume", "2.0.0", func(t *testing.T, cli program) { ledgerOver(t, cli, true, false) }},
	{"ledger over a fork", "2.1.37", func(t *testing.T, cli program) { ledgerOver(t, cli, false, true) }},
	{"estimate of a killed turn", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		meter := claude.NewMeter(claude.Usage{})
		s.run("say: one")
		meter.Observe(s.turn.Result.Running)
		before := meter.Total()
		s.onAsk = func(*claude.CanUseTool) {}
		s.prompt(bash(t, "touch x"), "say: two")
		s.until("an approval", func(m claude.Message) bool { _, ok := m.(*claude.CanUseTool); return ok })
		s.p.Kill()
		s.ended()
		deltas := meter.Estimate(s.turn.Calls)
		if len(deltas) == 0 || !deltas[0].Estimated || meter.Total() != before {
			t.Fatalf("estimate %+v", deltas)
		}
		if cli.version == pinned {
			// The call was billed in full, though nobody reported it.
			bill := s.model.Bill().Session(s.id).Total.MicroUSD
			if got, want := before+sum(deltas), bill; got < want*95/100 || got > want*105/100 {
				t.Errorf("with the estimate %d, bill %d", got, want)
			}
		}
	}},
}

// ledgerOver runs two processes on one session: the entries of both must add
// up to what their calls cost, however the first ended.
func ledgerOver(t *testing.T, cli program, kill, fork bool) {
	t.Helper()
	s := begin(t, cli)
	base, err := s.p.Baseline(s.ctx)
	s.must(err)
	meter := claude.NewMeter(base)
	s.run("say: first process")
	deltas, _ := meter.Observe(s.turn.Result.Running)
	total := sum(deltas)
	if kill {
		s.transcribed()
		s.p.Kill()
	} else {
		s.must(s.p.Stop(s.ctx))
	}
	s.ended()
	with := resumed
	parent := s.id
	if fork {
		s.id = uuid.NewString()
		with = func(_ *session, o *claude.Options, _ *claude.InitializeRequest) { o.ForkFrom = parent }
	}
	s.turn = claude.Output{}
	s.start(with)
	base, err = s.p.Baseline(s.ctx)
	s.must(err)
	meter = claude.NewMeter(base)
	s.run("say: second process")
	deltas, reset := meter.Observe(s.turn.Result.Running)
	total += sum(deltas)
	if reset || len(deltas) == 0 {
		t.Errorf("reset %v, deltas %+v", reset, deltas)
	}
	if cli.version == pinned {
		bill := s.model.Bill().Session(s.id).Total.MicroUSD
		if fork {
			bill += s.model.Bill().Session(parent).Total.MicroUSD
		}
		if diff := bill - total; diff < -2 || diff > 2 {
			t.Errorf("entries %d, bill %d (baseline %+v)", total, bill, base)
		}
	}
}

func sum(deltas []claude.ModelDelta) int64 {
	var n int64
	for _, d := range deltas {
		n += d.MicroUSD
	}
	return n
}
