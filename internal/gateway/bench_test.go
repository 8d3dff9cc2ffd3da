package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"
)

// median of durations, in milliseconds.
func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}

// BenchmarkFirstDelta compares, turn by turn in one run, how long the real CLI takes to
// the first text: straight to the model, and through the gateway. ratio is gateway ÷
// straight; at most 1.1 is wanted.
func BenchmarkFirstDelta(b *testing.B) {
	straight, through := newCLI(b, false), newCLI(b, true)
	straight.turn("say: warm", nil)
	through.turn("say: warm", nil)
	first := func(c *cli, text string) (d time.Duration) {
		began := time.Now()
		c.turn(text, func() { d = time.Since(began) })
		return d
	}
	var without, with []time.Duration
	for i := range 40 {
		without = append(without, first(straight, fmt.Sprintf("say: straight %d", i)))
		with = append(with, first(through, fmt.Sprintf("say: through %d", i)))
	}
	b.ReportMetric(median(without), "straight-ms")
	b.ReportMetric(median(with), "gateway-ms")
	b.ReportMetric(median(with)/median(without), "ratio")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// BenchmarkCall is what one call costs the bot, its body of 50 KB (the CLI's shortest) or
// 1 MB read and checked, and its answer passed on. straight-ms is the same without the
// gateway.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{50 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			web := newProvider(b, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "event: message_stop\n")
			})
			go func() {
				for range web.calls {
				}
			}()
			b.Cleanup(func() { close(web.calls) })
			s := open(b, newGateway(b, nil), "ANTHROPIC_BASE_URL="+web.URL, "ANTHROPIC_API_KEY="+realKey)
			block := `{"role":"user","content":[{"type":"text","text":"` + string(slices.Repeat([]byte("word "), 400)) + `"}]}`
			body := `{"model":"m","messages":[` + block
			for len(body) < size {
				body += "," + block
			}
			body += "]}"
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			do := func(c *http.Client, r *http.Request) time.Duration {
				began := time.Now()
				resp, err := c.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(resp.Status, err)
				}
				_ = resp.Body.Close()
				return time.Since(began)
			}
			var with, without []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				with = append(with, do(s.client, s.request(http.MethodPost, "/v1/messages", body)))
				r := s.request(http.MethodPost, "/v1/messages", body)
				r.URL.Host = web.Listener.Addr().String()
				without = append(without, do(client, r))
			}
			b.ReportMetric(median(with), "gateway-ms")
			b.ReportMetric(median(without), "straight-ms")
		})
	}
}
