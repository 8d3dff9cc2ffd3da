package sandbox

import (
	"strings"
	"testing"
)

// A launcher that never stops talking costs a megabyte.
func TestWhatIsSaidIsBounded(t *testing.T) {
	t.Parallel()
	var s said
	for range 3 {
		if n, err := s.Write([]byte(strings.Repeat("x", mostSaid-1))); n != mostSaid-1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n := len(s.String()); n != mostSaid {
		t.Errorf("%d bytes are kept", n)
	}
}
