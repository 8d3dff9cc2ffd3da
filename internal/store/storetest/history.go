package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
)

// generator makes up the history of a team, a day at a time.
type generator struct {
	r        *rand.Rand
	people   []person
	weights  []float64 // of people, added up
	share    []float64 // of the rows that are there after each day
	rows     int
	today    int // days since LedgerFrom
	written  int // entries
	threads  []*genThread
	epochs   []genEpoch
	turns    []genTurn
	entries  []genEntry
	lastTurn int64
	latest   map[string]*genThread // of each channel
}

type place struct{ channel, project string }

type person struct {
	id     string
	homes  []place // the first is where most of the work is done
	model  int
	offset time.Duration // from UTC
	open   *genThread
}

type genThread struct {
	id      int64
	place   place
	owner   string
	session [16]byte
	opened  time.Time
	seen    time.Time // the last turn
	epoch   int
	total   int64 // as the CLI tells it
}

type genEpoch struct {
	session  [16]byte
	epoch    int
	baseline int64
	at       time.Time
}

type genTurn struct {
	id       int64
	thread   *genThread
	epoch    int
	user     string
	at       time.Time // its end
	steps    int
	microUSD int64
}

// genEntry is a call, or the end of its turn.
type genEntry struct {
	turn                                       genTurn
	end                                        bool
	call                                       [16]byte
	at                                         time.Time
	cut                                        bool // nobody saw its end
	model                                      string
	input, output, read, short, long, searches int64
	microUSD, bound                            int64
	contract                                   *int64
	before, after                              *int64 // totals of an end; nil: there was none to tell
	approved                                   int
}

// genModels are names with list prices in micro-dollars per token: input, output,
// cache read, cache write for 5 minutes and for an hour.
var genModels = [4]struct {
	name  string
	price [5]float64
}{
	{"claude-opus-5-5", [5]float64{4, 20, 0.2, 5, 8}},
	{"claude-sonnet-5-5", [5]float64{2, 10, 0.1, 2.5, 4}},
	{"claude-haiku-5-5", [5]float64{0.1, 0.5, 0.01, 0.125, 0.2}},
	{"claude-fable-5-2", [5]float64{8, 40, 0.2, 10, 16}},
}

const (
	genPeople, genChannels = 500, 60
	helper                 = 2 // the model that writes titles and the like
)

var genProjects = [12]string{
	"web", "api", "mobile", "infra", "billing", "search", "data", "design-system", "docs", "website", "tools", "research",
}

func newGenerator(seed uint64, rows int) *generator {
	g := &generator{r: rand.New(rand.NewPCG(seed, 0x6c6564676572)), rows: rows, latest: map[string]*genThread{}}
	places := make([]place, genChannels)
	for i := range places {
		// Each project has a channel, and the first have the most.
		project := i
		if i >= len(genProjects) {
			project = int(float64(len(genProjects)) * math.Pow(g.r.Float64(), 1.8))
		}
		places[i] = place{fmt.Sprintf("C%03d", i+1), genProjects[project]}
	}
	sum := 0.0
	for i := range genPeople {
		p := person{id: fmt.Sprintf("U%04d", i+1), offset: time.Duration(g.r.IntN(4)*3-6) * time.Hour, model: []int{0, 0, 0, 1, 1, 1, 1, 3}[g.r.IntN(8)]}
		for range 1 + g.r.IntN(4) {
			p.homes = append(p.homes, places[int(float64(genChannels)*math.Pow(g.r.Float64(), 1.5))])
		}
		g.people = append(g.people, p)
		sum += math.Min(60, math.Pow(1-g.r.Float64(), -1/1.2)) // Pareto
		g.weights = append(g.weights, sum)
	}
	total := 0.0
	days := int(LedgerTo.Sub(LedgerFrom) / (24 * time.Hour))
	for d := range days {
		weight := 0.6 + 0.8*float64(d)/float64(days) // it catches on
		switch LedgerFrom.AddDate(0, 0, d).Weekday() {
		case time.Saturday, time.Sunday:
			weight *= 0.08
		}
		total += weight * (0.85 + 0.3*g.r.Float64())
		g.share = append(g.share, total)
	}
	for d := range g.share {
		g.share[d] /= total
	}
	return g
}

func (g *generator) more() bool { return g.written < g.rows }

// day writes the next day's turns.
func (g *generator) day() {
	start := LedgerFrom.AddDate(0, 0, g.today)
	until := g.rows
	if g.today < len(g.share)-1 {
		until = int(g.share[g.today] * float64(g.rows))
	}
	g.today++
	type start1 struct {
		at  time.Time
		who *person
	}
	// A turn has 8 entries or so; what is missing in the end comes late at night.
	starts := make([]start1, max(0, until-g.written)/8)
	for i := range starts {
		who := g.anybody()
		starts[i] = start1{start.Add(g.hour(who)), who}
	}
	slices.SortFunc(starts, func(a, b start1) int { return a.at.Compare(b.at) })
	for i := 0; g.written < until; i++ {
		if i < len(starts) {
			g.turn(starts[i].at, starts[i].who, until)
		} else {
			g.turn(start.Add(24*time.Hour-time.Duration(1+g.r.Int64N(1_000_000))*time.Microsecond), g.anybody(), until)
		}
	}
}

func (g *generator) anybody() *person {
	i, _ := slices.BinarySearch(g.weights, g.r.Float64()*g.weights[len(g.weights)-1])
	return &g.people[min(i, len(g.people)-1)]
}

// hour is when somebody works: around eleven or around three, by their clock.
func (g *generator) hour(who *person) time.Duration {
	hour := 11.0
	if g.r.IntN(2) == 0 {
		hour = 15.3
	}
	at := time.Duration((hour+1.6*g.r.NormFloat64())*float64(time.Hour)) - who.offset
	return min(max(at, 0), 24*time.Hour-time.Second).Truncate(time.Microsecond)
}

// turn writes a turn of somebody, in a thread of theirs or of others.
func (g *generator) turn(at time.Time, who *person, until int) {
	t := who.open
	switch roll := g.r.Float64(); {
	case t == nil || roll < 0.14 || at.Sub(t.seen) > 10*24*time.Hour:
		home := who.homes[int(float64(len(who.homes))*math.Pow(g.r.Float64(), 2))]
		t = &genThread{id: int64(len(g.threads) + 1), place: home, owner: who.id, session: g.uuid(), opened: at.Add(-time.Minute)}
		g.threads = append(g.threads, t)
		g.latest[home.channel], who.open = t, t
	case roll < 0.2:
		if other := g.latest[t.place.channel]; other != nil {
			t = other
		}
	}
	if t.epoch == 0 || at.Sub(t.seen) > time.Hour {
		g.begin(t, at)
	}
	t.seen = at
	g.lastTurn++
	turn := genTurn{id: g.lastTurn, thread: t, epoch: t.epoch, user: who.id, at: at, steps: 1 + int(g.r.ExpFloat64()*6)}
	var models []int
	if g.r.IntN(2) == 0 {
		models = append(models, helper)
	}
	for range turn.steps {
		model := who.model
		if g.r.IntN(40) == 0 {
			model = (who.model + 1) % 2
		}
		models = append(models, model)
	}
	models = models[:min(len(models), until-g.written)]
	killed := g.r.IntN(100) == 0
	for i, m := range models {
		e := g.call(turn, m, time.Duration(len(models)-i)*20*time.Second)
		if e.cut = killed && i == len(models)-1; e.cut {
			e.bound = 20 * e.microUSD
		}
		turn.microUSD += e.microUSD
		g.entries = append(g.entries, e)
	}
	g.written += len(models)
	if g.written < until { // else it has not ended when the history does
		g.entries = append(g.entries, g.end(turn, who.model, killed))
		g.written++
	}
	g.turns = append(g.turns, turn)
	if killed {
		g.begin(t, at)
	}
}

// begin begins an epoch, at the total that the last one ended with.
func (g *generator) begin(t *genThread, at time.Time) {
	t.epoch++
	g.epochs = append(g.epochs, genEpoch{t.session, t.epoch, t.total, at})
}

// call is a call of a turn that ends some time before the turn.
func (g *generator) call(turn genTurn, model int, before time.Duration) genEntry {
	tokens := func(typical float64) int64 { return int64(typical * math.Exp(g.r.NormFloat64())) }
	e := genEntry{turn: turn, call: g.uuid(), at: turn.at.Add(-before), model: genModels[model].name}
	if model == helper {
		e.input, e.output = tokens(900), tokens(60)
	} else {
		e.input, e.output, e.read, e.short = tokens(40), tokens(350), tokens(30_000), tokens(2_000)
		if g.r.IntN(20) == 0 {
			e.long = tokens(8_000)
		}
		if g.r.IntN(200) == 0 {
			e.searches = 1 + g.r.Int64N(4)
		}
	}
	price := genModels[model].price
	e.microUSD = e.searches*10_000 + int64(math.Round(price[0]*float64(e.input)+price[1]*float64(e.output)+price[2]*float64(e.read)+
		price[3]*float64(e.short)+price[4]*float64(e.long)))
	if model != helper {
		contract := e.microUSD * 85 / 100
		e.contract = &contract
	}
	return e
}

// end is the end of a turn, with what the CLI tells if it was not killed.
func (g *generator) end(turn genTurn, model int, killed bool) genEntry {
	e := genEntry{turn: turn, end: true, model: genModels[model].name, approved: g.r.IntN(1 + turn.steps/2)}
	if killed {
		return e
	}
	before, after := turn.thread.total, turn.thread.total+turn.microUSD
	e.before, e.after, turn.thread.total = &before, &after, after
	return e
}

func (g *generator) uuid() [16]byte {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(g.r.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}
