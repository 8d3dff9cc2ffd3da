package slackui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/chat/view"
	"deckhand/internal/gateway"
	"deckhand/internal/playground/slack"
	"deckhand/internal/sandbox"
	"deckhand/internal/workspace"
)

// asClaude makes the test binary be a CLI that asks for one tool after another and
// writes down when it was answered: twenty real ones would measure the machine.
const asClaude = "TEST_AS_CLAUDE"

// askingCLI speaks as much of the protocol as the bench needs. Its argument is the
// file that it appends to: "COMMAND NANOSECONDS" for every answer.
func askingCLI(record string) int {
	if slices.Contains(os.Args, "--version") {
		fmt.Println("2.1.329 (Claude Code)")
		return 0
	}
	log, err := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	say := func(v map[string]any) {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.Write(append(b, '\n')) // the bot has gone: stdin ends too
	}
	input, asked := bufio.NewReaderSize(os.Stdin, 1<<20), 0
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return 0
		}
		now := time.Now()
		var m struct {
			Type      string `json:"type"`
			RequestID string `json:"request_id"`
			Request   struct {
				Subtype string `json:"subtype"`
			} `json:"request"`
			Response struct {
				RequestID string `json:"request_id"`
			} `json:"response"`
		}
		if json.Unmarshal(line, &m) != nil {
			return 1
		}
		switch {
		case m.Type == "control_request":
			answer := map[string]any{"subtype": "success", "request_id": m.RequestID, "response": map[string]any{
				"session": map[string]any{"total_cost_usd": 0, "model_usage": map[string]any{}},
			}}
			say(map[string]any{"type": "control_response", "response": answer})
		case m.Type == "user", m.Type == "control_response":
			if m.Type == "control_response" {
				fmt.Fprintln(log, m.Response.RequestID, now.UnixNano())
			}
			asked++
			id := fmt.Sprintf("ask-%d-%d", os.Getpid(), asked)
			say(map[string]any{"type": "control_request", "request_id": id, "request": map[string]any{
				"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "toolu_" + id, "input": map[string]any{"command": "make " + id},
			}})
		}
	}
}

const (
	clickThreads = 20
	clicksPerSec = 20
	clickCount   = 300
)

// BenchmarkClick measures, at 20 approvals a second over 20 threads, how long it is
// from a click's envelope to the control_response that the CLI reads: through the
// inbox, authorisation, the commit with its vote and its audit row, and the worker.
// p50 under 10 ms and p99 under 40 ms are wanted. Slack itself allows 50 edits a
// minute, so no workspace shows cards at that rate: the envelopes are handed in.
func BenchmarkClick(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	record, cli := filepath.Join(dir, "answers"), filepath.Join(dir, "claude")
	script := fmt.Sprintf("#!/bin/sh\n%s=%q exec %q \"$@\"\n", asClaude, record, self)
	if err := os.WriteFile(cli, []byte(script), 0o700); err != nil {
		b.Fatal(err)
	}
	m := newMatrix(b)
	way, err := gateway.New(gateway.Options{Dir: filepath.Join(dir, "gateway"), Getenv: func(name string) string { return map[string]string{"ANTHROPIC_API_KEY": "none"}[name] }, Log: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	defer way.Close()
	m.app.Begin(agent.New(agent.Config{
		Store: m.db, Frontend: m.app.Frontend(), Authoriser: m.app, Reminder: m.app, Policy: &policy.Policy{}, Replica: "replica-1", DataDir: dir, Gateway: way,
		Projects: map[string]place.Project{"web": {Name: "web", Dir: dir, Workspace: workspace.Shared, Sandbox: sandbox.Spec{Kind: sandbox.None}}},
		Command:  []string{cli}, CLIVersion: "2.1.329",
	}))
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = m.app.Supervisor().Run(ctx) })
	defer running.Wait()
	defer stop()
	time.Sleep(100 * time.Millisecond) // Run takes up the workers' context

	for range clickThreads {
		if outcome := m.act(m.event(object{"type": "app_mention", "user": slack.UserLinus, "channel": slack.ChannelEngineering, "ts": m.ts(), "text": "<@" + slack.BotUser + "> go"})); outcome != "accepted" {
			b.Fatal(outcome)
		}
	}
	tick := time.NewTicker(time.Second / clicksPerSec)
	defer tick.Stop()
	var mu sync.Mutex
	at, seen := map[string]time.Time{}, map[string]bool{}
	var clicks sync.WaitGroup
	for deadline := time.Now().Add(time.Minute); len(seen) < clickCount && time.Now().Before(deadline); {
		open, err := m.db.TeamPending(ctx, slack.TeamID, 2*clickThreads)
		if err != nil {
			b.Fatal(err)
		}
		for _, a := range open {
			if seen[a.ID] || len(seen) >= clickCount {
				continue
			}
			seen[a.ID] = true
			e := m.click(slack.UserAda, slack.ChannelEngineering, a.ThreadTS, view.ActionApprove, a.ID)
			<-tick.C
			clicks.Go(func() {
				began := time.Now()
				in, err := m.app.screen.decode(e)
				if err != nil {
					b.Error(err)
					return
				}
				var acting sync.WaitGroup
				acting.Go(func() { m.app.Act(ctx, in) })
				if _, _, err := m.db.Receive(ctx, in.Row); err != nil {
					b.Error(err)
				}
				acting.Wait()
				mu.Lock()
				at[a.RequestID] = began
				mu.Unlock()
			})
		}
	}
	clicks.Wait()
	time.Sleep(500 * time.Millisecond) // the last answers
	answers, err := os.ReadFile(record)
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for line := range strings.Lines(string(answers)) {
		request, nanos, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(nanos, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		if began, ok := at[request]; ok {
			took = append(took, time.Unix(0, n).Sub(began))
		}
	}
	if len(took) < clickCount*9/10 {
		b.Fatalf("only %d of %d clicks were answered", len(took), clickCount)
	}
	slices.Sort(took)
	quantile := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(0.5), "p50-ms")
	b.ReportMetric(quantile(0.99), "p99-ms")
}
