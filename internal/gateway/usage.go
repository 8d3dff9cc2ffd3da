package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"

	"deckhand/internal/price"
)

// reading is what has been read of an answer so far.
type reading struct {
	id      string // of the message
	model   string
	usage   usageJSON
	version int  // grows with every usage
	started bool // a message has begun
	told    bool // the usage of its output came at its end, or near it
	over    bool // nothing follows that matters
	refused bool // with an error before anything was generated
	unread  bool // something unreadable may have told of costs
	stop    string
}

// event is an event of a stream, or a whole answer, as far as it tells of costs.
type event struct {
	Type    string       `json:"type"`
	Message *messageJSON `json:"message"`
	messageJSON
	Delta struct {
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
}

type messageJSON struct {
	ID         string     `json:"id"`
	Model      string     `json:"model"`
	Usage      *usageJSON `json:"usage"`
	StopReason string     `json:"stop_reason"`
}

// usageJSON is a usage as the API writes it. Absent members are nil.
type usageJSON struct {
	runJSON
	ServerToolUse struct {
		WebSearches *count `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Speed      *string   `json:"speed"`
	Geo        *string   `json:"inference_geo"`
	Iterations []runJSON `json:"iterations"`
}

// runJSON is the usage of one run of a model.
type runJSON struct {
	Type          string        `json:"type"`
	Model         string        `json:"model"`
	Input         *count        `json:"input_tokens"`
	Output        *count        `json:"output_tokens"`
	CacheRead     *count        `json:"cache_read_input_tokens"`
	CacheWrite    *count        `json:"cache_creation_input_tokens"`
	CacheCreation cacheCreation `json:"cache_creation"`
}

// cacheCreation is the tokens written to the cache by lifetime.
type cacheCreation struct {
	Short *count `json:"ephemeral_5m_input_tokens"`
	Long  *count `json:"ephemeral_1h_input_tokens"`
}

// count is a number of tokens; -1 if it was invalid.
type count int64

// UnmarshalJSON never fails: one invalid count must not hide the others.
func (c *count) UnmarshalJSON(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f < 0 || f > price.MaxCount || f != math.Trunc(f) {
		*c = -1
		return nil
	}
	*c = count(f)
	return nil
}

// read reads an event. name is the stream's name for it, or empty.
func (r *reading) read(name string, data []byte) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		r.unread = r.unread || name != "ping"
		return
	}
	switch e.Type {
	case "message_start":
		r.unread = r.unread || r.started // two messages in one answer
		r.started = true
		if e.Message == nil {
			r.unread = true
			return
		}
		r.id, r.model = printableName(e.Message.ID), printableName(e.Message.Model)
		r.merge(e.Message.Usage)
	case "message_delta":
		r.stop = cmp.Or(printableName(e.Delta.StopReason), r.stop)
		r.told = r.told || (e.Usage != nil && e.Usage.Output != nil)
		r.merge(e.Usage)
	case "message_stop":
		r.over = true
	case "error":
		r.refused = !r.started
	case "message": // a whole answer
		r.id, r.model, r.stop, r.started, r.over = printableName(e.ID), printableName(e.Model), printableName(e.StopReason), true, true
		r.told = e.Usage != nil && e.Usage.Output != nil
		r.merge(e.Usage)
	}
}

// merge adds a reported usage by the rules of the CLI: later values replace earlier ones, except zeros for the
// prompt.
func (r *reading) merge(u *usageJSON) {
	if u == nil {
		return
	}
	known := &r.usage
	take := func(into **count, c *count, zero bool) {
		switch {
		case c == nil:
		case *c < 0:
			r.unread = true
		case zero || *c > 0:
			*into = c
		}
	}
	take(&known.Input, u.Input, false)
	take(&known.Output, u.Output, true)
	take(&known.CacheRead, u.CacheRead, false)
	take(&known.CacheCreation.Short, u.CacheCreation.Short, true)
	take(&known.CacheCreation.Long, u.CacheCreation.Long, true)
	if sum := value(u.CacheCreation.Short) + value(u.CacheCreation.Long); sum > 0 {
		known.CacheWrite = &sum
	}
	take(&known.CacheWrite, u.CacheWrite, false)
	take(&known.ServerToolUse.WebSearches, u.ServerToolUse.WebSearches, true)
	known.Speed, known.Geo = cmp.Or(u.Speed, known.Speed), cmp.Or(u.Geo, known.Geo)
	if u.Iterations != nil {
		known.Iterations = u.Iterations
	}
	r.version++
}

// value is a count, or 0 if it is absent or invalid.
func value(c *count) count {
	if c == nil {
		return 0
	}
	return max(*c, 0)
}

// priced is the run as prices apply to it. Cache writes without a lifetime count as 5 minutes.
func (u *runJSON) priced() price.Usage {
	p := price.Usage{Input: int64(value(u.Input)), Output: int64(value(u.Output)), CacheRead: int64(value(u.CacheRead))}
	short, long := int64(value(u.CacheCreation.Short)), int64(value(u.CacheCreation.Long))
	written := cmp.Or(int64(value(u.CacheWrite)), short+long)
	p.CacheWrite1h = min(long, written)
	p.CacheWrite5m = written - p.CacheWrite1h
	return p
}

// answer is what was read, for the meter.
func (r *reading) answer() Answer {
	a := Answer{
		MessageID: r.id, Model: r.model, Usage: r.usage.priced(),
		Complete: (r.told && (r.over || r.stop != "") && !r.unread) || (r.refused && !r.started),
	}
	us := r.usage.Geo != nil && *r.usage.Geo == "us"
	a.Usage.US, a.Usage.Fast = us, r.usage.Speed != nil && *r.usage.Speed == "fast"
	a.Usage.WebSearches = int64(value(r.usage.ServerToolUse.WebSearches))
	a.Runs = r.runs(a.Usage)
	for _, run := range a.Runs {
		if !run.Apart && run.Model != "" {
			a.Model = run.Model // another model answered instead
		}
	}
	return a
}

// runs are the model runs of an answer. Prices depend on the length of each prompt; advice and compactions are
// billed in addition; and where another model replaced one that refused, only its runs are billed.
func (r *reading) runs(sum price.Usage) []Run {
	var own, fallback, apart []Run
	var total price.Usage
	for _, it := range r.usage.Iterations[:min(len(r.usage.Iterations), maxRuns)] {
		run := Run{Model: printableName(it.Model), Usage: it.priced()}
		run.Usage.US = sum.US
		switch it.Type {
		case "message":
			run.Model, run.Usage.Fast = "", sum.Fast
			total = total.Plus(run.Usage)
			own = append(own, run)
		case "fallback_message":
			run.Usage.Fast = sum.Fast
			fallback = append(fallback, run)
		case "advisor_message", "compaction":
			run.Apart = true
			apart = append(apart, run)
		}
	}
	if len(fallback) > 0 && r.stop == "refusal" {
		fallback = fallback[:len(fallback)-1]
	}
	total.WebSearches = sum.WebSearches
	total.CacheWrite5m, total.CacheWrite1h = total.CacheWrite5m+total.CacheWrite1h, 0
	whole := sum
	whole.CacheWrite5m, whole.CacheWrite1h = whole.CacheWrite5m+whole.CacheWrite1h, 0
	switch {
	case len(fallback) > 0:
		own = fallback
	case len(own) < 2 || total != whole:
		own = nil // Usage says everything
	default:
		lengthen(own, sum.CacheWrite1h)
	}
	if len(own) > 0 {
		own[0].Usage.WebSearches = sum.WebSearches
	}
	return append(own, apart...)
}

// lengthen gives the runs the one-hour cache writes that only the sum reports.
func lengthen(runs []Run, long int64) {
	for _, run := range runs {
		long -= run.Usage.CacheWrite1h
	}
	for i := range runs {
		u := &runs[i].Usage
		n := min(max(long, 0), u.CacheWrite5m)
		u.CacheWrite5m, u.CacheWrite1h, long = u.CacheWrite5m-n, u.CacheWrite1h+n, long-n
	}
}

// maxRuns bounds the runs reported for one call.
const maxRuns = 100

// printableName is a foreign name, fit for the database: at most 200 printable characters.
func printableName(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), 200)], ""))
	return s
}

// whole reads an answer that is one JSON value.
type whole struct {
	to   *reading
	text bytes.Buffer
}

// maxWhole bounds an answer that is kept until it can be parsed.
const maxWhole = 16 << 20

func (d *whole) write(p []byte) {
	if d.text.Len()+len(p) > maxWhole {
		d.to.unread = true
		return
	}
	d.text.Write(p)
}

func (d *whole) close() {
	if !d.to.unread && !d.to.over {
		d.to.read("", d.text.Bytes())
	}
	d.text = bytes.Buffer{}
}
