package agent

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
)

// writtenCLI writes what a CLI would say about money, as JSON lines, from a model of
// how it counts that shares nothing with the meter: it knows what every call costs, to
// the billionth of a dollar, and what its totals become when it ends, is killed,
// resumed, forked or cleared.
type writtenCLI struct {
	r        *rand.Rand
	restores bool // whether a resumed process goes on with the total that the last one saved
	session  string

	total  float64 // dollars, as the CLI adds them up
	models map[string]*writtenUsage
	saved  map[string]savedTotal // by session

	// spent is the truth: billionths of a dollar, by session and model.
	spent map[[2]string]int64
	// unreported is what was spent since the last total that was told.
	unreported map[[2]string]int64
}

type savedTotal struct {
	total  float64
	models map[string]*writtenUsage
}

// writtenUsage is a model's part of a total, as modelUsage tells it.
type writtenUsage struct {
	Input       int64   `json:"inputTokens"`
	Output      int64   `json:"outputTokens"`
	CacheRead   int64   `json:"cacheReadInputTokens"`
	CacheWrite  int64   `json:"cacheCreationInputTokens"`
	WebSearches int64   `json:"webSearchRequests"`
	CostUSD     float64 `json:"costUSD"`
}

// writtenPrices are billionths of a dollar per token: input, output, cache read, cache
// write, and per search.
var writtenPrices = map[string][5]int64{
	"claude-opus-4-5-20251101":   {5000, 25000, 500, 6250, 10_000_000},
	"claude-sonnet-4-5-20250929": {3000, 15000, 300, 3750, 10_000_000},
	"claude-haiku-4-5-20251001":  {1000, 5000, 100, 1250, 10_000_000},
	"claude-haiku-5-5":           {100, 500, 10, 125, 10_000_000},
}

func newWrittenCLI(r *rand.Rand, restores bool) *writtenCLI {
	c := &writtenCLI{r: r, restores: restores, saved: map[string]savedTotal{}, spent: map[[2]string]int64{}, unreported: map[[2]string]int64{}}
	c.begin(c.newID())
	return c
}

func (c *writtenCLI) newID() string {
	var b [16]byte
	for i := range b {
		b[i] = byte(c.r.Uint32())
	}
	return uuid.NewSHA1(uuid.Nil, b[:]).String()
}

// writtenCall is a call of the model as its stream tells of it.
type writtenCall struct {
	id, model string
	usage     writtenUsage
	nano      int64
}

func (c *writtenCLI) newCall() writtenCall {
	model := slices.Sorted(maps.Keys(writtenPrices))[c.r.IntN(len(writtenPrices))]
	call := writtenCall{id: "msg_" + c.newID(), model: model}
	u := &call.usage
	u.Input, u.Output = c.r.Int64N(4000), 1+c.r.Int64N(2000)
	if c.r.IntN(2) == 0 {
		u.CacheRead, u.CacheWrite = c.r.Int64N(100_000), c.r.Int64N(30_000)
	}
	if c.r.IntN(8) == 0 {
		u.WebSearches = 1
	}
	p := writtenPrices[model]
	call.nano = u.Input*p[0] + u.Output*p[1] + u.CacheRead*p[2] + u.CacheWrite*p[3] + u.WebSearches*p[4]
	return call
}

// spend makes calls. counted says that the CLI adds them to its total; they are billed
// in any case.
func (c *writtenCLI) spend(n int, counted bool) []writtenCall {
	var out []writtenCall
	for range n {
		call := c.newCall()
		out = append(out, call)
		key := [2]string{c.session, call.model}
		c.spent[key] += call.nano
		if !counted {
			continue
		}
		c.unreported[key] += call.nano
		usd := float64(call.nano) / 1e9
		c.total += usd
		m := c.models[call.model]
		if m == nil {
			m = &writtenUsage{}
			c.models[call.model] = m
		}
		m.Input, m.Output, m.CacheRead = m.Input+call.usage.Input, m.Output+call.usage.Output, m.CacheRead+call.usage.CacheRead
		m.CacheWrite, m.WebSearches, m.CostUSD = m.CacheWrite+call.usage.CacheWrite, m.WebSearches+call.usage.WebSearches, m.CostUSD+usd
	}
	return out
}

// result tells the running total.
func (c *writtenCLI) result(subtype string) []byte {
	clear(c.unreported)
	return writtenLine(map[string]any{
		"modelUsage": c.models, "total_cost_usd": c.total, "subtype": subtype, "is_error": false, "session_id": c.session,
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1}, "num_turns": 1, "type": "result",
	})
}

// streamed is what is said of a call before it is over, and whole at its end.
func (w writtenCall) streamed(whole bool) [][]byte {
	u := map[string]any{
		"input_tokens": w.usage.Input, "output_tokens": 1, "cache_read_input_tokens": w.usage.CacheRead, "cache_creation_input_tokens": w.usage.CacheWrite,
	}
	lines := [][]byte{writtenLine(map[string]any{"type": "stream_event", "event": map[string]any{
		"type": "message_start", "message": map[string]any{"id": w.id, "model": w.model, "usage": u},
	}})}
	if whole {
		lines = append(lines, writtenLine(map[string]any{"type": "stream_event", "event": map[string]any{
			"type": "message_delta", "delta": map[string]any{"stop_reason": "end_turn"},
			"usage": map[string]any{"output_tokens": w.usage.Output, "server_tool_use": map[string]any{"web_search_requests": w.usage.WebSearches}},
		}}))
	}
	return lines
}

func writtenLine(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of numbers and strings always encode
	}
	return b
}

func (c *writtenCLI) begin(session string) {
	c.session, c.total, c.models = session, 0, map[string]*writtenUsage{}
}

func (c *writtenCLI) restore(from string) {
	if s, ok := c.saved[from]; ok && c.restores {
		c.total, c.models = s.total, cloneUsage(s.models)
	}
}

// exit is an end in good order.
func (c *writtenCLI) exit() {
	c.saved[c.session] = savedTotal{c.total, cloneUsage(c.models)}
}

// resume is another process on the session, fork one on a copy of it.
func (c *writtenCLI) resume() {
	c.begin(c.session)
	c.restore(c.session)
}

func (c *writtenCLI) fork() {
	parent := c.session
	c.begin(c.newID())
	c.restore(parent)
}

// clear begins anew within the process.
func (c *writtenCLI) clear() []byte {
	line := writtenLine(map[string]any{"type": "conversation_reset", "new_session_id": c.newID(), "session_id": c.session})
	c.begin(c.newID())
	return line
}

func cloneUsage(m map[string]*writtenUsage) map[string]*writtenUsage {
	out := make(map[string]*writtenUsage, len(m))
	for name, u := range m {
		copied := *u
		out[name] = &copied
	}
	return out
}
