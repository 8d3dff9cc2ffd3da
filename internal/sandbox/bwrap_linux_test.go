package sandbox

import "testing"

func TestBwrapWorks(t *testing.T) {
	b, err := New(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}
