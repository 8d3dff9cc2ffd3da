package sandbox

import "testing"

func TestGVisorWorks(t *testing.T) {
	b, err := New(Spec{Kind: GVisor})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}
