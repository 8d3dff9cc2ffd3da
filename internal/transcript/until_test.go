package transcript

import (
	"crypto/sha256"
	"strings"
	"testing"
)

// TestUntil: a conversation ends before the first line of a later prompt, and what is before it is kept line by line; it
// is none where nothing was answered.
func TestUntil(t *testing.T) {
	t.Parallel()
	line := func(kind, id, text string) string {
		return `{"type":"` + kind + `","uuid":"` + id + `","text":"` + text + "\"}\n"
	}
	long := strings.Repeat("x", pieceBytes)
	first := line("user", "u1", "one") + line("assistant", "a1", long)
	second := line("user", "u2", "two") + line("assistant", "a2", "done")
	later := map[string]bool{"u2": true, "u3": true}

	part, cut, err := until(strings.NewReader(first+`{"type":"agent-setting"}`+"\n"+second), later)
	if err != nil || !cut || part == nil {
		t.Fatal(part, cut, err)
	}
	var got []byte
	for _, p := range part.Pieces {
		got = append(got, p...)
	}
	if string(got) != first || part.Bytes != int64(len(first)) || part.SHA256 != sha256.Sum256(got) || len(part.Pieces) != 1 || part.WasSHA256 != nil {
		t.Errorf("%d bytes of %d in %d pieces", part.Bytes, len(first), len(part.Pieces))
	}
	if part, cut, err := until(strings.NewReader(first), later); err != nil || cut || part == nil || part.Bytes != int64(len(first)) {
		t.Errorf("nothing later: %v, %v, %v", part, cut, err)
	}
	if part, cut, err := until(strings.NewReader(line("user", "u1", "one")+second), later); err != nil || !cut || part != nil {
		t.Errorf("nothing answered: %v, %v, %v", part, cut, err)
	}
}
