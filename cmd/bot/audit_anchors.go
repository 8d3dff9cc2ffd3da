package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"
)

func auditAnchorsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "anchors",
		Short: "Print the chain's last row of every day, to be kept elsewhere",
		Long: `Prints the chain's last row of every day, and of today so far, as lines of JSON. Keep
them where nobody who owns the database can write, and give them to bot audit verify.`,
		Example: "  bot audit anchors >> /somewhere/else/anchors.jsonl",
		Args:    knownCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return auditAnchors(c.Context(), c.OutOrStdout()) },
	}
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
