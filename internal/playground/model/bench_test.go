package model

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkCall is a streamed answer to a request of a usual size: 12 tools
// with long descriptions and 40 messages.
func BenchmarkCall(b *testing.B) {
	var tools, msgs []map[string]any
	for i := range 12 {
		tools = append(tools, map[string]any{"name": fmt.Sprint("Tool", i), "description": strings.Repeat("what it does ", 250), "input_schema": map[string]any{"type": "object"}})
	}
	for i := range 20 {
		msgs = append(
			msgs, map[string]any{"role": "user", "content": fmt.Sprint("message ", i)},
			map[string]any{"role": "assistant", "content": strings.Repeat("an answer ", 30)},
		)
	}
	msgs = append(msgs, map[string]any{"role": "user", "content": "fill: 500"})
	body, err := json.Marshal(map[string]any{"model": "claude-opus-5-5", "stream": true, "max_tokens": 1000, "tools": tools, "messages": msgs})
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), "POST", "/v1/messages", strings.NewReader(string(body)))
		r.Header.Set("X-Api-Key", "k")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}
