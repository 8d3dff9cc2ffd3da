package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// The moments at which a bot may be killed in an ambush: what it has just written down,
// and not yet shown, or shown and not yet written down, lies between them.
const (
	whenAsked    = "asked the model"
	whenAnswered = "been answered"
	whenShown    = "shown something"
)

// moment tells of one, and springs the ambushes that wait for it.
func (c *chaos) moment(which string) {
	c.mu.Lock()
	var sprung []chaosStep
	for i := range c.ambushes {
		if a := &c.ambushes[i]; a.in == which && a.n > 0 {
			if a.n--; a.n == 0 {
				sprung = append(sprung, *a)
			}
		}
	}
	c.mu.Unlock()
	for _, a := range sprung {
		c.running.Go(func() {
			time.Sleep(a.long) // drawn: the moment is anywhere behind what was seen
			c.note("kill all bots, %v after one has %s", a.long, a.in)
			for _, r := range c.replicas {
				r.signal(syscall.SIGKILL)
			}
		})
	}
}

// watch tells what the bot shows, from the playground's own stream of events.
func (c *chaos) watch() {
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.URL+"/_control/events", nil)
	if err != nil {
		c.t.Error(err)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Error(err)
		return
	}
	go func() { // until the playground closes
		defer resp.Body.Close() //nolint:errcheck // read to its end
		in := bufio.NewScanner(resp.Body)
		in.Buffer(nil, 1<<24)
		for in.Scan() {
			data, ok := strings.CutPrefix(in.Text(), "data: ")
			if ok {
				c.news.Store(true)
			}
			var e struct {
				Kind    string
				Message struct{ User string }
			}
			if ok && json.Unmarshal([]byte(data), &e) == nil && e.Kind == "message" && e.Message.User == c.BotUser {
				c.moment(whenShown)
			}
		}
	}()
}
