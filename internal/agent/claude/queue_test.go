package claude

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func delta(parent string, index int, text string) *StreamEvent {
	return &StreamEvent{
		Meta:  Meta{Type: "stream_event", ParentToolUseID: parent},
		Event: "content_block_delta", Delta: "text_delta", Index: index, Text: text,
	}
}

// drained tells what a queue holds, in order.
func drained(q *queue) string {
	var parts []string
	for {
		m, ok, _ := q.take()
		if !ok {
			return strings.Join(parts, " ")
		}
		switch m := m.(type) {
		case *StreamEvent:
			parts = append(parts, fmt.Sprintf("%s%d:%s", m.ParentToolUseID, m.Index, m.Text+m.Event[:0]))
		case *System:
			parts = append(parts, m.Subtype+":"+m.UUID)
		default:
			parts = append(parts, m.Head().Type)
		}
	}
}

func TestQueueMergesDeltasOfOneBlock(t *testing.T) {
	t.Parallel()
	message := func(kind string) Message { return &Unknown{Meta{Type: kind}} }
	tokens := func(n int) Message { return &System{Meta: Meta{Subtype: "thinking_tokens", UUID: strconv.Itoa(n)}} }
	stop := func(parent string, index int) Message {
		return &StreamEvent{Meta: Meta{ParentToolUseID: parent}, Event: "content_block_stop", Index: index}
	}
	for name, c := range map[string]struct {
		in   []Message
		want string
	}{
		"adjacent":             {[]Message{delta("", 0, "a"), delta("", 0, "b"), delta("", 0, "c")}, "0:abc"},
		"another block":        {[]Message{delta("", 0, "a"), delta("", 1, "b"), delta("", 0, "c")}, "0:ac 1:b"},
		"other subagents":      {[]Message{delta("A", 0, "a"), delta("B", 0, "b"), delta("A", 0, "c"), delta("B", 0, "d")}, "A0:ac B0:bd"},
		"a message between":    {[]Message{delta("", 0, "a"), message("x"), delta("", 0, "b")}, "0:a x 0:b"},
		"an event between":     {[]Message{delta("", 0, "a"), stop("", 0), delta("", 0, "b")}, "0:a 0: 0:b"},
		"another's event":      {[]Message{delta("A", 0, "a"), stop("B", 0), delta("A", 0, "b")}, "A0:ab B0:"},
		"latest state wins":    {[]Message{tokens(1), delta("", 0, "a"), tokens(2), delta("", 0, "b"), tokens(3)}, "thinking_tokens:3 0:ab"},
		"signs of life":        {[]Message{&KeepAlive{Meta{Type: "keep_alive"}}, &KeepAlive{Meta{Type: "keep_alive"}}, message("x")}, "keep_alive x"},
		"state after message":  {[]Message{tokens(1), message("x"), tokens(2)}, "thinking_tokens:1 x thinking_tokens:2"},
		"everything else kept": {[]Message{message("x"), message("x"), message("y")}, "x x y"},
	} {
		q := newQueue()
		for _, m := range c.in {
			q.put(m)
		}
		if got := drained(q); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestQueueDoesNotChangeWhatItGaveOut(t *testing.T) {
	t.Parallel()
	q := newQueue()
	q.put(delta("", 0, "a"))
	first, _, _ := q.take()
	q.put(delta("", 0, "b"))
	q.put(delta("", 0, "c"))
	if got := first.(*StreamEvent).Text; got != "a" {
		t.Errorf("a delta that was given out now reads %q", got)
	}
	if got := drained(q); got != "0:bc" {
		t.Errorf("then %q", got)
	}
}

// TestQueueMemory holds that a consumer that never comes costs the text, not
// the deltas.
func TestQueueMemory(t *testing.T) {
	q := newQueue()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const deltas = 300_000
	for range deltas {
		q.put(delta("", 0, "four"))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held, text := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(deltas*len("four"))
	if held > 4*text {
		t.Errorf("%d deltas of %d bytes in all hold %d bytes", deltas, text, held)
	}
	t.Logf("%d deltas, %d bytes of text, %d bytes held", deltas, text, held)
	if m, _, _ := q.take(); len(m.(*StreamEvent).Text) != int(text) {
		t.Error("text was lost")
	}
}

func TestQueueNeverEmptyGivesMemoryBack(t *testing.T) {
	t.Parallel()
	q := newQueue()
	q.put(&Unknown{})
	for i := range 100_000 {
		q.put(delta("", i, "x"))
		q.put(delta("", i, "y"))
		if m, ok, _ := q.take(); !ok || i > 0 && m.(*StreamEvent).Text != "xy" {
			t.Fatalf("at %d: %+v", i, m)
		}
	}
	if cap(q.entries) > 10_000 {
		t.Errorf("a queue of one holds %d places", cap(q.entries))
	}
}

func TestQueueEnds(t *testing.T) {
	t.Parallel()
	q := newQueue()
	q.put(&Unknown{})
	q.end()
	if m, ended, err := q.next(t.Context()); m == nil || ended || err != nil {
		t.Errorf("%v %v %v", m, ended, err)
	}
	for range 2 {
		if _, ended, err := q.next(t.Context()); !ended || err != nil {
			t.Errorf("ended %v %v", ended, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := newQueue().next(ctx); err == nil {
		t.Error("no error from a cancelled wait")
	}
}
