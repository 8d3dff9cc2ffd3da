package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Of a PATH, the folders are named whose programs a session does not see, and relative ones are
// left out.
func TestUnseen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "program"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := Unseen(Spec{Kind: Bwrap}, ":.:testdata:/usr/bin:"+dir); !slices.Equal(got, []string{dir}) {
		t.Errorf("unseen are %v, want %s", got, dir)
	}
}
