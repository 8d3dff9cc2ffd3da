package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/store/audit"
)

func auditVerifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Say what was changed, left out, put in or moved",
		Long: `Reads the whole audit and says what was changed, left out, put in or moved. Only
anchors that were kept elsewhere (bot audit anchors) show that its end was not cut
off. Its exit code is 1 if anything is not right.`,
		Example: `  bot audit verify
  bot audit verify --anchors anchors.jsonl --json`,
		Args: knownCommand,
	}
	anchors := c.Flags().String("anchors", "", "file of lines of bot audit anchors, to compare the chain with")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		kept, err := readAnchors(*anchors)
		if err != nil {
			return err
		}
		s, err := openStore(c.Context(), nil)
		if err != nil {
			return err
		}
		defer s.Close()
		r, err := s.VerifyAudit(c.Context(), kept)
		if err != nil {
			return err
		}
		if *asJSON {
			err = writeJSON(c, newVerification(r, len(kept)))
		} else {
			explainVerification(c, r, *anchors, len(kept))
		}
		if n := len(r.Problems); n > 0 {
			return fmt.Errorf("the audit cannot be trusted: %d problem(s) in %d rows", n, r.Rows)
		}
		return err
	}
	return c
}

// verification is what the verification found, in JSON.
type verification struct {
	OK       bool          `json:"ok"`
	Rows     int64         `json:"rows"`
	First    *time.Time    `json:"first"`
	Last     *audit.Anchor `json:"last"`
	Anchors  int           `json:"anchors"` // that were compared
	Problems []string      `json:"problems"`
}

func newVerification(r audit.Report, anchors int) verification {
	v := verification{OK: len(r.Problems) == 0, Rows: r.Rows, Anchors: anchors, Problems: append([]string{}, r.Problems...)}
	if r.Rows > 0 {
		first := r.First.UTC()
		v.First, v.Last = &first, &r.Last
	}
	return v
}

func explainVerification(c *cobra.Command, r audit.Report, anchorFile string, anchors int) {
	out, m := c.OutOrStdout(), marksFor(c.OutOrStdout())
	for _, p := range r.Problems {
		fmt.Fprintln(out, m.failed, p)
	}
	switch {
	case len(r.Problems) > 0:
		return
	case r.Rows == 0:
		fmt.Fprintln(out, m.ok, "the audit is empty, and nothing says that there was ever more")
		return
	}
	fmt.Fprintf(out, "%s %d rows since %s are whole and agree with the approvals, grants and the ledger\n", m.ok, r.Rows, r.First.UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "  the chain ends at row %d, %s\n", r.Last.Seq, r.Last.Hash)
	if anchorFile == "" {
		fmt.Fprintln(out, "  Nothing was compared with anchors kept elsewhere: only they show that the end was not cut off (bot audit anchors).")
	} else {
		fmt.Fprintf(out, "  %d anchor(s) from %s agree\n", anchors, anchorFile)
	}
}

func readAnchors(file string) ([]audit.Anchor, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--anchors: %w", err)
	}
	defer f.Close() //nolint:errcheck // it only reads
	var out []audit.Anchor
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var a audit.Anchor
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
