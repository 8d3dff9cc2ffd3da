package place

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"deckhand/internal/store"
	"deckhand/internal/workspace"
)

// What is made for a thread that does not exist yet is noted before it is made, in a file
// by the project's and the thread's name:
//
//	reserved/web/42
//
// and what is noted when the bot begins was left by one that was killed: it is removed. The
// note goes before anybody works there.

func reservedNote(dataDir, project string, threadID int64) string {
	return filepath.Join(dataDir, "reserved", project, strconv.FormatInt(threadID, 10))
}

// Reserve implements [Machine].
func (h *Host) Reserve(t store.Thread, p Project) error {
	note := reservedNote(h.DataDir, p.Name, t.ID)
	if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
		return err
	}
	return os.WriteFile(note, nil, 0o600)
}

// Unreserve implements [Machine].
func (h *Host) Unreserve(t store.Thread, p Project, keep bool) error {
	if !keep {
		if err := h.homes().Remove(t.ID); err != nil {
			return err
		}
		if err := workspace.Forget(h.DataDir, p.Name, t.ID); err != nil {
			return err
		}
	}
	return os.Remove(reservedNote(h.DataDir, p.Name, t.ID))
}

// sweepReserved removes what was made for threads that never came to be. What cannot be
// removed is nobody's: its number is not given again.
func sweepReserved(dataDir string) {
	found, _ := filepath.Glob(filepath.Join(dataDir, "reserved", "*", "*")) // the pattern is right
	h := Host{DataDir: dataDir}
	for _, note := range found {
		if id, err := strconv.ParseInt(filepath.Base(note), 10, 64); err == nil && id > 0 {
			_ = h.Unreserve(store.Thread{ID: id}, Project{Name: filepath.Base(filepath.Dir(note))}, false)
		}
	}
}

// errElsewhere is why a workspace is not a new thread's.
var errElsewhere = errors.New("its workspace is not at the project's base")

// StartsFrom implements [Machine].
func (h *Host) StartsFrom(ctx context.Context, t store.Thread, p Project) (string, error) {
	base, err := h.Keeper.Base(ctx, p.space())
	if err != nil {
		return "", err
	}
	if base != "" && workspace.Head(t.Workspace) != base {
		return "", errElsewhere
	}
	prompt, err := h.Instructions(p, t.Workspace)
	if err != nil {
		return "", err
	}
	settings, err := deaf(ctx, t.Workspace)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", base, prompt, settings))
	return hex.EncodeToString(sum[:]), nil
}
