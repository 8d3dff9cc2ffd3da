package slack_test

import (
	"context"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"

	"deckhand/internal/playground/slack"
)

// benchBundle is a workspace on an address, for measuring.
type benchBundle struct {
	b   *testing.B
	api *slackgo.Client
}

func newBenchBundle(b *testing.B) *benchBundle {
	b.Helper()
	srv, err := slack.New(slack.Options{NoRateLimits: true})
	if err != nil {
		b.Fatal(err)
	}
	web := httptest.NewServer(srv.Handler())
	b.Cleanup(func() {
		if err := srv.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
		web.Close()
	})
	return &benchBundle{b: b, api: slackgo.New(srv.BotToken(), slackgo.OptionAppLevelToken(srv.AppToken()), slackgo.OptionAPIURL(web.URL+"/api/"), slackgo.OptionHTTPClient(web.Client()))}
}

// serve connects a socket that acknowledges everything.
func (n *benchBundle) serve() {
	n.b.Helper()
	_, url, err := n.api.StartSocketModeContext(n.b.Context())
	if err != nil {
		n.b.Fatal(err)
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(n.b.Context(), url, nil)
	if err != nil {
		n.b.Fatal(err)
	}
	_ = resp.Body.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			var e struct {
				ID string `json:"envelope_id"`
			}
			_, r, err := conn.NextReader()
			if err != nil {
				return
			}
			raw, err := io.ReadAll(r)
			if err != nil {
				return
			}
			if id := envelopeID(raw); id != "" {
				e.ID = id
				if conn.WriteJSON(e) != nil {
					return
				}
			}
		}
	}()
	n.b.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
}

// envelopeID finds the id in a frame without decoding all of it.
func envelopeID(raw []byte) string {
	const key = `"envelope_id":"`
	for i := range len(raw) - len(key) - 36 {
		if string(raw[i:i+len(key)]) == key {
			return string(raw[i+len(key) : i+len(key)+36])
		}
	}
	return ""
}
