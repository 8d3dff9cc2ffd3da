package publish_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

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
	b.Run("unchanged page", func(b *testing.B) {
		// A page of a long turn that is full: it is shown again at each rendering.
		fake := newFake()
		fake.latency = 0
		s := publish.New(slack.New("xoxb-bench", slack.OptionHTTPClient(fake), slack.OptionAPIURL("https://slack.invalid/api/")), publish.Options{})
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		m := live("turn/1/0", strings.Repeat("some text in a page ", 375))
		s.Show(m)
		for s.Pending() > 0 {
			time.Sleep(time.Millisecond)
		}
		b.ReportAllocs()
		for b.Loop() {
			s.Show(m)
		}
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
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
