package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"deckhand/internal/store/ledger"
)

// jsonAnswer is an answer for programs. Its names are a promise: fields are added,
// never renamed. Amounts are whole micro-USD.
type jsonAnswer struct {
	Question string     `json:"question"`
	Period   jsonPeriod `json:"period"`
	Previous jsonPeriod `json:"previous_period"`
	By       string     `json:"by"`
	Total    jsonLine   `json:"total"`
	Lines    []jsonLine `json:"lines"`
	Rest     *jsonRest  `json:"rest"`
	Series   jsonSeries `json:"series"`
	Threads  []jsonLine `json:"threads"`
	Meter    jsonMeter  `json:"meter"`
}

// jsonMeter is what is not in the amounts, or not for good.
type jsonMeter struct {
	Since    *time.Time     `json:"since"` // null: all of it is metered
	Unpriced []jsonUnpriced `json:"unpriced"`
	CutCalls int64          `json:"cut_calls"`
	Bound    int64          `json:"bound_micro_usd"`
}

type jsonUnpriced struct {
	Model    string `json:"model"`
	Calls    int64  `json:"calls"`
	MicroUSD int64  `json:"micro_usd"`
}

type jsonPeriod struct {
	Name     string    `json:"name"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"` // not in the period any more
	FirstDay string    `json:"first_day"`
	LastDay  string    `json:"last_day"`
	TimeZone string    `json:"time_zone"`
}

type jsonLine struct {
	Key         string      `json:"key,omitempty"`
	Name        string      `json:"name,omitempty"`
	Thread      *jsonThread `json:"thread,omitempty"`
	Share       float64     `json:"share"`
	Turns       int64       `json:"turns"`
	Approved    int64       `json:"approved"`
	Input       int64       `json:"input_tokens"`
	Output      int64       `json:"output_tokens"`
	CacheRead   int64       `json:"cache_read_tokens"`
	Write5m     int64       `json:"cache_write_5m_tokens"`
	Write1h     int64       `json:"cache_write_1h_tokens"`
	WebSearches int64       `json:"web_searches"`
	MicroUSD    int64       `json:"micro_usd"`
	Estimated   int64       `json:"estimated_micro_usd"`
	Contract    int64       `json:"contract_micro_usd"`
	PerTurn     *int64      `json:"micro_usd_per_turn"`
	PerApproved *int64      `json:"micro_usd_per_approved"`
	Before      *int64      `json:"previous_micro_usd"`
	Percent     *float64    `json:"change_percent"`
}

type jsonRest struct {
	Lines int `json:"lines"`
	jsonLine
}

type jsonThread struct {
	Channel string `json:"channel_id"`
	TS      string `json:"thread_ts"`
	Project string `json:"project"`
}

type jsonSeries struct {
	Unit   string      `json:"unit"`
	Points []jsonPoint `json:"points"`
}

type jsonPoint struct {
	FirstDay  string `json:"first_day"`
	LastDay   string `json:"last_day"`
	Label     string `json:"label"`
	Turns     int64  `json:"turns"`
	MicroUSD  int64  `json:"micro_usd"`
	Estimated int64  `json:"estimated_micro_usd"`
}

// JSON writes an answer for programs: one object, indented, with stable field names.
func JSON(w io.Writer, a Answer, names Names) error {
	out := jsonAnswer{
		Question: a.Question.String(), By: string(a.By),
		Period: periodJSON(a.Question.Period), Previous: periodJSON(a.Previous),
		Total: lineJSON(a.Total, ""), Lines: linesJSON(a, a.By, a.Lines, names), Threads: linesJSON(a, ledger.ByThread, a.Threads, names),
		Series: jsonSeries{Unit: a.Series.Unit, Points: []jsonPoint{}}, Meter: meterJSON(a.Meter),
	}
	if a.More > 0 {
		out.Rest = &jsonRest{Lines: a.More, jsonLine: lineJSON(a.Rest, "")}
	}
	for _, p := range a.Series.Points {
		out.Series.Points = append(out.Series.Points, jsonPoint{
			FirstDay: isoDay(p.first), LastDay: isoDay(p.end.AddDate(0, 0, -1)), Label: p.Label,
			Turns: p.Turns, MicroUSD: p.MicroUSD, Estimated: p.EstimatedMicroUSD,
		})
	}
	return WriteJSON(w, out)
}

// WriteJSON writes a report that is its own JSON, such as [Approvals] and
// [Reconciliation], indented.
func WriteJSON(w io.Writer, report any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(report); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}

func meterJSON(m ledger.MeterNotes) jsonMeter {
	out := jsonMeter{Unpriced: []jsonUnpriced{}, CutCalls: m.Cut.Calls, Bound: m.Cut.BoundMicroUSD}
	if !m.Since.IsZero() {
		since := m.Since.UTC()
		out.Since = &since
	}
	for _, u := range m.Unpriced {
		out.Unpriced = append(out.Unpriced, jsonUnpriced{u.Model, u.Calls, u.MicroUSD})
	}
	return out
}

func periodJSON(p Period) jsonPeriod {
	zone := ""
	if p.loc != nil {
		zone = p.loc.String()
	}
	return jsonPeriod{
		Name: p.Name, From: p.From, To: p.To,
		FirstDay: isoDay(p.first), LastDay: isoDay(p.end.AddDate(0, 0, -1)), TimeZone: zone,
	}
}

func linesJSON(a Answer, by ledger.CostGroup, lines []Line, names Names) []jsonLine {
	out := make([]jsonLine, len(lines))
	for i, l := range lines {
		out[i] = lineJSON(l, a.Name(by, l, names))
	}
	return out
}

func lineJSON(l Line, name string) jsonLine {
	out := jsonLine{
		Key: l.Key, Name: name, Share: round(l.Share, 1e6), Turns: l.Turns, Approved: l.Approved,
		Input: l.Input, Output: l.Output, CacheRead: l.CacheRead, Write5m: l.CacheWrite5m, Write1h: l.CacheWrite1h,
		WebSearches: l.WebSearches, MicroUSD: l.MicroUSD, Estimated: l.EstimatedMicroUSD, Contract: l.ContractMicroUSD,
	}
	if l.ThreadKey.ChannelID != "" {
		out.Thread = &jsonThread{Channel: l.ThreadKey.ChannelID, TS: l.ThreadKey.ThreadTS, Project: l.Project}
	}
	if n, ok := l.PerTurn(); ok {
		out.PerTurn = &n
	}
	if n, ok := l.PerApproved(); ok {
		out.PerApproved = &n
	}
	if l.Compared {
		out.Before = &l.Before
	}
	if f, ok := l.ChangePercent(); ok {
		f = round(f, 100)
		out.Percent = &f
	}
	return out
}

// round keeps digits that mean nothing out of files that are compared.
func round(f, unit float64) float64 { return math.Round(f*unit) / unit }
