package gitdata

import (
	"cmp"
	"context"
	"fmt"
)

// From is the commit from which a new branch starts.
func (c Clone) From(ctx context.Context) (string, error) {
	theirs, head, err := c.known()
	if err != nil {
		return "", err
	}
	view, err := openViewAs(c.Scratch, c.Source, theirs, head, "\tbare = true\n")
	if err != nil {
		return "", err
	}
	defer view.Close() //nolint:errcheck // only read
	base := cmp.Or(c.Base, "HEAD")
	commit, err := view.Commit(ctx, base)
	if err != nil {
		return "", fmt.Errorf("it has no %s that could be started from", base)
	}
	return commit, nil
}
