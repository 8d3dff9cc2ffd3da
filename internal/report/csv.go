package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
)

// csvHeader names the columns. New ones go to the end: spreadsheets refer to places.
var csvHeader = []string{
	"from", "to", "group", "id", "name", "channel_id", "channel_name", "thread_ts", "project", "turns", "approved",
	"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "web_searches",
	"micro_usd", "usd", "estimated_micro_usd", "contract_micro_usd", "previous_micro_usd",
	"cut_calls", "bound_micro_usd",
}

// CSV writes an answer's lines as comma-separated values (RFC 4180), with the exact
// figures and without a total, so that the columns can be summed. The days in "from"
// and "to" both belong to the line. What was too many to list is one line without an
// id. What may have been billed beyond a line for calls that were cut is in
// bound_micro_usd, and in no other column. Names cannot be taken for formulas by a spreadsheet.
func CSV(w io.Writer, a Answer, names Names) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	write := func(record []string) {
		// An error stays with the writer until Flush.
		_ = out.Write(record)
	}
	write(csvHeader)
	for _, l := range a.Lines {
		name := a.Name(a.By, l, names)
		if a.By == ledger.ByThread {
			name = ""
		}
		write(csvRecord(a, l, a.cut(l, false), name, names))
	}
	if a.More > 0 {
		write(csvRecord(a, a.Rest, a.cut(a.Rest, true), Plural(int64(a.More), "other", "others"), names))
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

func csvRecord(a Answer, l Line, cut ledger.CutCalls, name string, names Names) []string {
	p := a.Question.Period
	from, to := isoDay(p.first), isoDay(p.end.AddDate(0, 0, -1))
	switch a.By {
	case ledger.ByDay:
		from, to = l.Key, l.Key
	case ledger.ByMonth:
		if month, err := time.Parse("2006-01", l.Key); err == nil {
			from, to = isoDay(later(month, p.first)), isoDay(earlier(addMonths(month, 1), p.end).AddDate(0, 0, -1))
		}
	case ledger.ByNothing, ledger.ByUser, ledger.ByChannel, ledger.ByProject, ledger.ByModel, ledger.ByThread:
	}
	channel, channelLabel, ts, project := "", "", "", ""
	if l.ThreadKey.ChannelID != "" {
		channel, ts, project = l.ThreadKey.ChannelID, l.ThreadKey.ThreadTS, l.Project
		channelLabel = channelName(channel, names)
	}
	before := ""
	if l.Compared {
		before = strconv.FormatInt(l.Before, 10)
	}
	record := []string{from, to, string(a.By), Inert(l.Key), Inert(name), Inert(channel), Inert(channelLabel), Inert(ts), Inert(project)}
	for _, n := range []int64{
		l.Turns, l.Approved, l.Input, l.Output, l.CacheRead, l.CacheWrite5m, l.CacheWrite1h, l.WebSearches, l.MicroUSD,
	} {
		record = append(record, strconv.FormatInt(n, 10))
	}
	return append(record, money.Exact(l.MicroUSD), strconv.FormatInt(l.EstimatedMicroUSD, 10), strconv.FormatInt(l.ContractMicroUSD, 10), before,
		strconv.FormatInt(cut.Calls, 10), strconv.FormatInt(cut.BoundMicroUSD, 10))
}

// Inert keeps a spreadsheet from running a text as a formula: it puts an apostrophe before what may begin one. That
// may also follow a semicolon (the separator in much of Europe), a tab or a line end, where spreadsheets split the
// text whatever quotes surround it. Some drop invisible characters before the sign, such as a byte order mark.
// Direction changes are made visible, as in messages.
func Inert(s string) string {
	var b strings.Builder
	if s != "" && strings.ContainsRune("\t\r\n", rune(s[0])) || setsSeparator.MatchString(s) {
		b.WriteByte('\'')
	}
	begins := true
	for _, r := range s {
		switch {
		case begins && strings.ContainsRune("=+-@＝＋－＠", r): // full-width signs are formulas to some
			b.WriteByte('\'')
			begins = false
		case strings.ContainsRune(";\t\r\n", r):
			begins = true
		case r != '"' && !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf):
			begins = false
		}
		if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// setsSeparator is what Excel takes, at the beginning of a file, for the choice of another
// separator of its columns.
var setsSeparator = regexp.MustCompile(`(?i)^["\s\x{feff}]*sep=`)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
