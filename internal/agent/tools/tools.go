// Package tools has the tools that the bot itself gives to a session: an MCP server of this
// process for each, which the CLI reaches by its own protocol. A tool is an entry: its name,
// what the model is told of it, and what it does.
//
// A call of one passes the hook and the policy like every other, and runs only if the database
// holds a decision that allows this tool use, with exactly this input, in a turn that runs: once.
// What runs, runs in the bot and not in the sandbox.
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
)

// Server is the name of the server.
const Server = "deckhand"

// Prefix begins the names of the tools, as the CLI and the policy have them.
const Prefix = "mcp__" + Server + "__"

// Tool is one tool.
type Tool struct {
	Name        string
	Description string // for the model
	Schema      string // of its input, a JSON object
	// Run does it, and returns what the model is told. Its error is a sentence for the model.
	Run func(ctx context.Context, c Call) (string, error)
}

// Call is a call that was allowed.
type Call struct {
	ThreadID int64
	Input    json.RawMessage
	Approval approvals.Approval
}

// Decisions tell which calls are allowed.
type Decisions interface {
	CallAllowed(ctx context.Context, threadID int64, toolUseID string) (approvals.Approval, error)
}

// gate lets calls through that were decided.
type gate struct {
	threadID  int64
	decisions Decisions
	log       *zap.Logger

	mu   sync.Mutex
	used map[string]bool // approvals
}

// New is the server of a thread's process.
func New(threadID int64, list []Tool, decisions Decisions, log *zap.Logger) *mcp.Server {
	g := &gate{threadID: threadID, decisions: decisions, log: log, used: map[string]bool{}}
	server := mcp.NewServer(&mcp.Implementation{Name: Server, Version: "1"}, nil)
	for _, t := range list {
		server.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: json.RawMessage(t.Schema)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			said, err := g.run(ctx, t, r)
			if err != nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
		})
	}
	return server
}

// toolUseKey is where the CLI says which tool use a call is.
const toolUseKey = "claudecode/toolUseId"

func (g *gate) run(ctx context.Context, t Tool, r *mcp.CallToolRequest) (string, error) {
	id, _ := r.Params.GetMeta()[toolUseKey].(string)
	a, err := g.admit(ctx, t, id, r.Params.Arguments)
	if err != nil {
		return "", err
	}
	return t.Run(ctx, Call{ThreadID: g.threadID, Input: a.ToRun(), Approval: a})
}

// admit returns the decision that allows a call, which is used up.
func (g *gate) admit(ctx context.Context, t Tool, toolUseID string, input json.RawMessage) (approvals.Approval, error) {
	a, err := g.decisions.CallAllowed(ctx, g.threadID, toolUseID)
	if err != nil && !errors.Is(err, pg.ErrNotFound) {
		g.log.Error("read the decision about a call", zap.String("tool", t.Name), zap.Error(err))
		return a, errors.New("the bot's database did not answer, so nothing was done; try again")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || a.ToolName != Prefix+t.Name || g.used[a.ID] || !sameJSON(a.ToRun(), input) {
		g.log.Warn("a call that nobody has allowed", zap.String("tool", t.Name), zap.String("tool_use", toolUseID))
		return a, errors.New("nobody has allowed this call, so it did not run")
	}
	g.used[a.ID] = true
	return a, nil
}

// sameJSON reports whether two texts hold the same value.
func sameJSON(a, b json.RawMessage) bool {
	x, err := canonical(a)
	if err != nil {
		return false
	}
	y, err := canonical(b)
	return err == nil && bytes.Equal(x, y)
}

func canonical(raw json.RawMessage) ([]byte, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// Read reads a tool's input, by the names as people are shown them: another spelling, such as Title
// beside title, would be what runs and not what was approved. Its error is a sentence for the model.
func Read(input json.RawMessage, into any) error {
	if err := jsonv2.Unmarshal(input, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("the input is not what this tool takes: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
