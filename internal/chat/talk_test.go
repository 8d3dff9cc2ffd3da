package chat

import (
	"testing"

	"deckhand/internal/store/threads"
)

// TestTalkIsReadWhereThereMayBeSome: nothing is asked of Slack while this process knows that
// nobody talked.
func TestTalkIsReadWhereThereMayBeSome(t *testing.T) {
	t.Parallel()
	var h cursor
	k := threads.ThreadKey{TeamID: "T", ChannelID: "C", ThreadTS: "100.000000"}
	if _, sure := h.talkedSince(k, "200.000000"); sure {
		t.Error("a process that has not heard yet is sure")
	}
	h.talkSince = timeOf("150.000000")
	h.noteTalk(k, "210.000000")
	for since, want := range map[string][2]bool{"120.000000": {true, false}, "200.000000": {true, true}, "220.000000": {false, true}} {
		if talked, sure := h.talkedSince(k, since); talked != want[0] || sure != want[1] {
			t.Errorf("since %s: %v, sure %v; want %v", since, talked, sure, want)
		}
	}
	h.others.Store(true)
	if _, sure := h.talkedSince(k, "220.000000"); sure {
		t.Error("it is sure of what other replicas heard")
	}
}
