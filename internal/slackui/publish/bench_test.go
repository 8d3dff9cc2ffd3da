package publish_test

import (
	"fmt"
	"testing"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/publish"
)

// BenchmarkShow measures what a worker pays for each coalesced update.
func BenchmarkShow(b *testing.B) {
	b.Run("same key", func(b *testing.B) {
		s := publish.New(slack.New("xoxb-bench"), publish.Options{})
		m := live("turn/1/0", "text")
		b.ReportAllocs()
		for b.Loop() {
			s.Show(m)
		}
	})
	b.Run("new key", func(b *testing.B) {
		s := publish.New(slack.New("xoxb-bench"), publish.Options{})
		keys := make([]string, b.N)
		for i := range keys {
			keys[i] = fmt.Sprint("turn/", i)
		}
		m := live("", "text")
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			m.Key = keys[i]
			s.Show(m)
		}
	})
}
