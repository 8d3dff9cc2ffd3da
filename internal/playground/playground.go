// Package playground is the outside world on loopback: a Slack workspace, a
// model, and a page on which people can use them, all on one address. `bot demo`
// runs the bot against it, and so does every end-to-end test.
//
//	/api/ /socket /files/ /hooks/   the workspace, as an app sees it (package slack)
//	/model/                         the Messages API, as the CLI sees it (package model)
//	/forge/ /api/v1/                git repositories, pull requests (package forge)
//	/_control/                      acting as the people, watching, faults, the bill
//	/                               the page (package page)
//
// It imports nothing of the bot: what the bot and the playground know of each
// other is what the bot and Slack know of each other. [Playground] owns the HTTP
// server's goroutines and those of the workspace; Close waits for them.
package playground

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/playground/forge"
	"deckhand/internal/playground/model"
	"deckhand/internal/playground/page"
	"deckhand/internal/playground/slack"
)

// Part is one half of the playground.
type Part string

// The parts; the empty Part means both.
const (
	OnlySlack Part = "slack"
	OnlyModel Part = "model"
)

// Options say where and how to run a playground.
type Options struct {
	// Listen is host:port on loopback; port 0 takes a free one.
	Listen string
	// Dir keeps the workspace over restarts; empty keeps it in memory.
	Dir string
	// Fresh forgets what Dir holds.
	Fresh bool
	// Only runs one part; empty runs both.
	Only Part
	// CharsPerSecond is the model's pace of speech; 0 is as fast as possible.
	CharsPerSecond int
	// NoRateLimits switches Slack's limits per minute off.
	NoRateLimits bool
	Log          *zap.Logger
}

// Playground is a running playground.
type Playground struct {
	url    string
	slack  *slack.Server
	model  *model.Server
	server *http.Server
	serve  sync.WaitGroup
}

// Start listens and serves until [Playground.Close].
func Start(ctx context.Context, o Options) (*Playground, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	listener, err := listen(ctx, o.Listen)
	if err != nil {
		return nil, err
	}
	p := &Playground{url: "http://" + listener.Addr().String()}
	mux := http.NewServeMux()
	if o.Only != OnlySlack {
		if p.model, err = model.New(model.Options{CharsPerSecond: o.CharsPerSecond, Log: o.Log.Named("model")}); err != nil {
			_ = listener.Close()
			return nil, fmt.Errorf("start the model: %w", err)
		}
		mux.Handle("/model/", http.StripPrefix("/model", p.model))
		control := guarded(p.model.Control())
		mux.Handle("/_control/bill", control)
		if o.Only == OnlyModel {
			mux.Handle("/_control/faults", control)
		}
	}
	if o.Only != OnlyModel {
		so := slack.Options{
			Fresh: o.Fresh, NoRateLimits: o.NoRateLimits, Log: o.Log.Named("slack"),
			PublicURL: func() string { return p.url },
		}
		if o.Dir != "" {
			so.StateFile = filepath.Join(o.Dir, "workspace.json")
		}
		if p.model != nil {
			so.OtherFaults = modelFaults{p.model}
		}
		if p.slack, err = slack.New(so); err != nil {
			_ = listener.Close()
			return nil, fmt.Errorf("start the workspace: %w", err)
		}
		for _, prefix := range slack.Routes() {
			mux.Handle(prefix, p.slack.Handler())
		}
		mux.Handle("/", page.Handler())
	}
	if o.Only == "" && o.Dir != "" {
		var f *forge.Forge
		var err error
		if o.Fresh {
			err = os.RemoveAll(ForgeDir(o.Dir))
		}
		if err == nil {
			f, err = forge.New(ForgeDir(o.Dir), func() string { return p.url })
		}
		if err != nil {
			_ = listener.Close()
			return nil, err
		}
		f.Register(mux)
	}
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	p.serve.Go(func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("serve the playground", zap.Error(err))
		}
	})
	return p, nil
}

// Check says what of the options makes no sense; nil if all does.
//
// The playground listens on nothing but loopback: whoever reaches it is everybody in its
// workspace, and runs tools on this machine.
func (o Options) Check() error {
	host, _, err := net.SplitHostPort(cmp.Or(o.Listen, anyPort))
	switch ip := net.ParseIP(host); {
	case err != nil:
		return fmt.Errorf("the address %q is not host:port: write 127.0.0.1:8065", o.Listen)
	case host != "localhost" && (ip == nil || !ip.IsLoopback()):
		return fmt.Errorf("the playground listens on loopback only, since whoever reaches it may do everything: write 127.0.0.1 instead of %q", host)
	case o.Only != "" && o.Only != OnlySlack && o.Only != OnlyModel:
		return fmt.Errorf("there is no part %q of the playground: write slack or model", o.Only)
	case o.CharsPerSecond < 0:
		return fmt.Errorf("nobody speaks at %d characters a second: write 0, for as fast as possible, or more", o.CharsPerSecond)
	}
	return nil
}

const anyPort = "127.0.0.1:0"

func listen(ctx context.Context, addr string) (net.Listener, error) {
	addr = cmp.Or(addr, anyPort)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// URL is the address of the page and of the control API.
func (p *Playground) URL() string { return p.url }

// SlackAPIURL is the Web API's base, for SLACK_API_URL.
func (p *Playground) SlackAPIURL() string { return p.url + "/api/" }

// ForgeDir is where the repositories of a playground lie that keeps what it has in dir.
func ForgeDir(dir string) string { return filepath.Join(dir, "forge") }

// ForgeURL is the address of a repository of the forge.
func (p *Playground) ForgeURL(name string) string { return p.url + forge.Root + name }

// ModelURL is the Messages API's base, for ANTHROPIC_BASE_URL.
func (p *Playground) ModelURL() string { return p.url + "/model" }

// Slack is the workspace; nil with OnlyModel.
func (p *Playground) Slack() *slack.Server { return p.slack }

// Model is the model; nil with OnlySlack.
func (p *Playground) Model() *model.Server { return p.model }

// Close ends every connection and waits for what serves them, no longer than ctx.
func (p *Playground) Close(ctx context.Context) error {
	var errs []error
	if p.slack != nil {
		errs = append(errs, p.slack.Close(ctx))
	}
	errs = append(errs, p.server.Close())
	p.serve.Wait()
	return errors.Join(errs...)
}

// guarded keeps other sites' pages from a control API on loopback.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slack.Guard(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}

// modelFaults takes the faults of the control API that say "target": "model".
type modelFaults struct{ *model.Server }

func (m modelFaults) AddFault(raw []byte) (bool, error) {
	var f struct {
		Target string `json:"target"`
		model.Fault
	}
	if err := json.Unmarshal(raw, &f); err != nil || f.Target != "model" {
		return false, nil // slack's own check names what is wrong with it
	}
	var strict struct {
		Target string `json:"target"`
		model.Fault
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&strict); err != nil {
		return true, fmt.Errorf("model fault: %w", err)
	}
	m.SetFaults(append(m.Faults(), strict.Fault))
	return true, nil
}

func (m modelFaults) ClearFaults() { m.Server.ClearFaults() }
