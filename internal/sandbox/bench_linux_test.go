package sandbox

import (
	"os/exec"
	"testing"
)

// BenchmarkStart is what a sandbox costs a process that ends at once.
func BenchmarkStart(b *testing.B) {
	for _, spec := range []Spec{{Kind: None}, {Kind: Bwrap}} {
		b.Run(string(spec.Kind), func(b *testing.B) {
			s, err := New(spec)
			if err != nil {
				b.Fatal(err)
			}
			session := Session{Name: "bench", Workspace: b.TempDir(), Home: b.TempDir(), Program: []string{"/bin/true"}}
			for b.Loop() {
				box, err := s.Prepare(b.Context(), session)
				if err != nil {
					b.Fatal(err)
				}
				if out, err := exec.CommandContext(b.Context(), box.Command[0], box.Command[1:]...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				if err := box.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
