package page_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/playground/page"
	"deckhand/internal/playground/page/pagetest"
	"deckhand/internal/playground/slack"
	"deckhand/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a workspace, the page before it, and an app that is connected to it.
type desk struct {
	workspace *slack.Server
	url       string
	server    *httptest.Server
	app       *app
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	workspace, err := slack.New(slack.Options{NoRateLimits: true})
	if err != nil {
		t.Fatalf("start the workspace: %v", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", page.Handler())
	for _, path := range slack.Routes() {
		mux.Handle(path, workspace.Handler())
	}
	server := httptest.NewServer(mux)
	d := &desk{workspace: workspace, url: server.URL, server: server}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waittest.Limit)
		defer cancel()
		if err := workspace.Close(ctx); err != nil {
			t.Errorf("close the workspace: %v", err)
		}
		server.Close()
	})
	d.app = connect(t, workspace, server.URL)
	return d
}

// open opens the page at a path.
func (d *desk) open(t *testing.T, chrome *pagetest.Browser, path string) *pagetest.Tab {
	t.Helper()
	return chrome.Open(t, d.url, path)
}

// at is the page's address of a channel as a person.
func at(channel, person string) string {
	return "/#/c/" + channel + "?user=" + url.QueryEscape(person)
}
