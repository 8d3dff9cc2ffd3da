package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/slacktypes"
	"deckhand/internal/waittest"
)

// sent are the shapes of all that the bots of this process' worlds sent to Slack.
var sent slacktypes.Shapes

// keepSent keeps what a world's bot has sent to Slack, for whatWasSentFits. A world whose Slack
// is gone has nothing to add.
func (w *world) keepSent() {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/_control/calls", http.NoBody)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close() //nolint:errcheck // the body is read whole
	var out struct {
		Calls []struct {
			Method string         `json:"method"`
			Args   map[string]any `json:"args"`
		} `json:"calls"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return
	}
	for _, c := range out.Calls {
		if c.Method == "api.test" {
			continue
		}
		if err := sent.Add(c.Method, c.Args); err != nil {
			w.t.Errorf("what was sent to Slack cannot be read: %v", err)
		}
	}
}

// whatWasSentFits compiles every shape of what the stories sent against the types of Slack's
// own SDK, once, after all tests.
func whatWasSentFits() error {
	if sent.Len() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	required := needtest.Required()
	folder, err := slacktypes.Folder(ctx, "../../internal/playground/bolt/install.sh", required)
	if err != nil && !required {
		return nil // there is no Node.js here, or nobody has fetched the SDK
	}
	if err != nil {
		return err
	}
	problems, err := sent.Check(ctx, folder)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return errors.New("what was sent to Slack does not fit its types:\n" + strings.Join(problems, "\n"))
	}
	return nil
}
