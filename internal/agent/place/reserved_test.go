package place

import (
	"os"
	"path/filepath"
	"testing"

	"deckhand/internal/store"
)

// TestWhatWasReservedIsSwept: the next run of a bot that was killed removes all that was
// made for a thread that never came to be, and nothing of one that did.
func TestWhatWasReservedIsSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, web := &Host{DataDir: dir}, Project{Name: "web"}
	of := func(id string) []string {
		return []string{"home/" + id + "/.claude/x", "workspaces/web/" + id + "/x", "setup/web/" + id, "saved/web/" + id}
	}
	write := func(names ...string) {
		for _, name := range names {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id, name := range map[int64]string{7: "7", 8: "8", 77: "77"} {
		write(of(name)...)
		if id == 77 {
			continue // it never was
		}
		if err := h.Reserve(store.Thread{ID: id}, web); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Unreserve(store.Thread{ID: 8}, web, true); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReplica(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	for _, name := range append(of("7"), "reserved/web/7", "reserved/web/8") {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	for _, name := range append(of("8"), of("77")...) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s is gone", name)
		}
	}
}
