package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/store/audit"
)

func auditExportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Write tool calls, each with its prompt, decision, result, cost, commit and pull request",
		Long: `Writes tool calls, each with its prompt, decision, result, cost, commit and pull
request; with --events the audit's own rows with their hashes.

A time is 2026-10-31, 2026-10-31T15:04:05Z, or 30d (that long ago).`,
		Example: `  bot audit export --since 30d --format csv
  bot audit export --events --until 2026-10-31`,
		Args: knownCommand,
	}
	var f audit.Filter
	var format string
	events := c.Flags().Bool("events", false, "the audit's own rows")
	choiceFlag(c, &format, "format", "how it is written (default jsonl)", "jsonl", "csv")
	since := c.Flags().String("since", "", "from this time on")
	until := c.Flags().String("until", "", "until this time")
	c.Flags().StringVar(&f.Project, "project", "", "of one project")
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if f.Since, err = parseTime("--since", *since); err != nil {
			return err
		}
		if f.Until, err = parseTime("--until", *until); err != nil {
			return err
		}
		return auditExport(c.Context(), c.OutOrStdout(), f, format, *events)
	}
	return c
}

func auditExport(ctx context.Context, out io.Writer, f audit.Filter, format string, events bool) error {
	buffered := bufio.NewWriter(out)
	w, err := newRowWriter(buffered, format)
	if err != nil {
		return err
	}
	s, err := openStore(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	if events {
		err = s.ExportAudit(ctx, f, func(r audit.Row) error {
			return w.write(auditEvent{
				Seq: r.Seq, At: r.At.UTC(), Kind: string(r.Kind), TeamID: r.TeamID, Actor: r.Actor, ThreadID: r.ThreadID, TurnID: r.TurnID,
				ApprovalID: r.ApprovalID, Details: r.Details, PrevHash: hex.EncodeToString(r.PrevHash), Hash: hex.EncodeToString(r.Hash),
			})
		})
	} else {
		err = s.ExportCalls(ctx, f, func(c audit.ToolCall) error { return w.write(c) })
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
	case "", "jsonl":
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
