package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/store"
)

const auditUsage = `usage: bot audit verify [--anchors FILE]
       bot audit anchors
       bot audit export [--events] [--format jsonl|csv] [--since TIME] [--until TIME] [--project NAME]

verify reads the whole audit and says what was changed, left out, put in or moved;
its exit code is 1 if anything was. anchors prints the chain's last row of every
day, and of today so far: keep them where nobody who owns the database can write,
and give them to verify. export writes tool calls, each with its prompt, decision,
result, cost and commit; with --events the audit's own rows with their hashes.

TIME is 2026-10-31, 2026-10-31T15:04:05Z, or 30d (that long ago).
DATABASE_URL names the database.`

func auditCommand(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("audit", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprintln(f.Output(), auditUsage) }
	what := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		what, args = args[0], args[1:]
	}
	anchors := f.String("anchors", "", "")
	events := f.Bool("events", false, "")
	format := f.String("format", "jsonl", "")
	since, until := f.String("since", "", ""), f.String("until", "", "")
	project := f.String("project", "", "")
	if err := parseFlags(f, args, out, 0); err != nil {
		return err
	}
	switch what {
	case "verify":
		return auditVerify(ctx, out, *anchors)
	case "anchors":
		return auditAnchors(ctx, out)
	case "export":
		filter := store.AuditFilter{Project: *project}
		var err error
		if filter.Since, err = parseTime("--since", *since); err != nil {
			return err
		}
		if filter.Until, err = parseTime("--until", *until); err != nil {
			return err
		}
		return auditExport(ctx, out, filter, *format, *events)
	}
	return fmt.Errorf("write bot audit verify, anchors or export: %w", errUsage)
}

// openStore opens the database for a command that needs nothing else, with days in a
// time zone; nil is UTC.
func openStore(ctx context.Context, zone *time.Location) (*store.Store, error) {
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		return nil, errors.New("DATABASE_URL: set it to the database, postgres://user:password@host:5432/database")
	}
	s, err := store.Open(ctx, url, store.Options{TimeZone: zone})
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	if err := s.CheckSchema(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// parseTime reads a day, a moment, or how long ago. Empty is the zero time.
func parseTime(flagName, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return time.Now().AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%s: %q is no time; write 2026-10-31, 2026-10-31T15:04:05Z or 30d: %w", flagName, text, errUsage)
}

func auditVerify(ctx context.Context, out io.Writer, anchorFile string) error {
	kept, err := readAnchors(anchorFile)
	if err != nil {
		return err
	}
	s, err := openStore(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := s.VerifyAudit(ctx, kept)
	if err != nil {
		return err
	}
	for _, p := range r.Problems {
		fmt.Fprintln(out, "✗", p)
	}
	if n := len(r.Problems); n > 0 {
		return fmt.Errorf("the audit cannot be trusted: %d problem(s) in %d rows", n, r.Rows)
	}
	if r.Rows == 0 {
		fmt.Fprintln(out, "✓ the audit is empty")
		return nil
	}
	fmt.Fprintf(out, "✓ %d rows since %s are whole and agree with the approvals, grants and the ledger\n", r.Rows, r.First.UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "  the chain ends at row %d, %s\n", r.Last.Seq, r.Last.Hash)
	if anchorFile == "" {
		fmt.Fprintln(out, "  Nothing was compared with anchors kept elsewhere: only they show that the end was not cut off (bot audit anchors).")
	} else {
		fmt.Fprintf(out, "  %d anchor(s) from %s agree\n", len(kept), anchorFile)
	}
	return nil
}

func readAnchors(file string) ([]store.AuditAnchor, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--anchors: %w", err)
	}
	defer f.Close() //nolint:errcheck // it only reads
	var out []store.AuditAnchor
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var a store.AuditAnchor
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil || a.Seq <= 0 || len(a.Hash) != 64 {
			return nil, fmt.Errorf("--anchors: %s:%d: this is not a line of bot audit anchors", file, n)
		}
		out = append(out, a)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--anchors: %s: %w", file, err)
	}
	return out, nil
}

func auditAnchors(ctx context.Context, out io.Writer) error {
	s, err := openStore(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := s.VerifyAudit(ctx, nil)
	if err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return errors.New("the audit cannot be trusted, so it has no anchors: see bot audit verify")
	}
	anchors, err := s.Anchors(ctx)
	if err != nil {
		return err
	}
	if r.Rows > 0 {
		anchors = append(anchors, r.Last)
	}
	enc := json.NewEncoder(out)
	for _, a := range anchors {
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

func auditExport(ctx context.Context, out io.Writer, f store.AuditFilter, format string, events bool) error {
	s, err := openStore(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	buffered := bufio.NewWriter(out)
	w, err := newRowWriter(buffered, format)
	if err != nil {
		return err
	}
	if events {
		err = s.ExportAudit(ctx, f, func(r store.AuditRow) error {
			return w.write(auditEvent{
				Seq: r.Seq, At: r.At.UTC(), Kind: string(r.Kind), TeamID: r.TeamID, Actor: r.Actor, ThreadID: r.ThreadID, TurnID: r.TurnID,
				ApprovalID: r.ApprovalID, Details: r.Details, PrevHash: hex.EncodeToString(r.PrevHash), Hash: hex.EncodeToString(r.Hash),
			})
		})
	} else {
		err = s.ExportCalls(ctx, f, func(c store.ToolCall) error { return w.write(c) })
	}
	return errors.Join(err, w.close(), buffered.Flush())
}

// auditEvent is an audit row as it is exported. Details is the text that was hashed.
type auditEvent struct {
	Seq        int64     `json:"seq"`
	At         time.Time `json:"at"`
	Kind       string    `json:"kind"`
	TeamID     string    `json:"team_id"`
	Actor      string    `json:"actor"`
	ThreadID   int64     `json:"thread_id"`
	TurnID     int64     `json:"turn_id"`
	ApprovalID string    `json:"approval_id"`
	Details    string    `json:"details"`
	PrevHash   string    `json:"prev_hash"`
	Hash       string    `json:"hash"`
}

// rowWriter writes rows as JSON lines, or as CSV with the same names.
type rowWriter struct {
	json   *json.Encoder
	csv    *csv.Writer
	headed bool
}

func newRowWriter(out io.Writer, format string) (*rowWriter, error) {
	switch format {
	case "jsonl", "json":
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return &rowWriter{json: enc}, nil
	case "csv":
		return &rowWriter{csv: csv.NewWriter(out)}, nil
	}
	return nil, fmt.Errorf("--format: %q is no format; write jsonl or csv: %w", format, errUsage)
}

func (w *rowWriter) write(row any) error {
	if w.json != nil {
		return w.json.Encode(row)
	}
	names, values, err := columns(row)
	if err != nil {
		return err
	}
	if !w.headed {
		w.headed = true
		if err := w.csv.Write(names); err != nil {
			return err
		}
	}
	return w.csv.Write(values)
}

func (w *rowWriter) close() error {
	if w.csv == nil {
		return nil
	}
	w.csv.Flush()
	return w.csv.Error()
}

// columns are a struct's JSON names and values in their order. A text that a
// spreadsheet would take for a formula is written as text: prompts and inputs come
// from anybody.
func columns(row any) (names, values []string, err error) {
	b, err := json.Marshal(row)
	if err != nil {
		return nil, nil, err
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, nil, err
		}
		value := string(raw)
		var text string
		switch {
		case value == "null":
			value = ""
		case json.Unmarshal(raw, &text) == nil:
			value = text
			if start := strings.TrimSpace(value); start != "" && strings.ContainsRune("=+-@", rune(start[0])) {
				value = "'" + value
			}
		}
		names, values = append(names, fmt.Sprint(name)), append(values, value)
	}
	return names, values, nil
}
