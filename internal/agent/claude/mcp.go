package claude

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// mcpServers serves MCP servers of this process to the CLI, which reaches them
// by mcp_message requests: each carries one JSON-RPC message, and its answer
// the JSON-RPC response.
type mcpServers struct {
	p      *Process
	ctx    context.Context
	cancel context.CancelFunc
	ending sync.WaitGroup

	mu      sync.Mutex
	servers map[string]*mcp.Server
	conns   map[string]*mcpConn
	stopped bool
}

func newMCPServers(p *Process) *mcpServers {
	ctx, cancel := context.WithCancel(context.Background())
	return &mcpServers{
		p: p, ctx: ctx, cancel: cancel,
		servers: make(map[string]*mcp.Server), conns: make(map[string]*mcpConn),
	}
}

func (s *mcpServers) add(servers map[string]*mcp.Server) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, server := range servers {
		if server == nil || name == "" {
			return fmt.Errorf("MCP server %q is nil or has no name", name)
		}
		s.servers[name] = server
	}
	return nil
}

// serve passes a message on to its server. It is called by the reader and does not
// wait.
func (s *mcpServers) serve(m *mcpRequest) {
	message, err := jsonrpc.DecodeMessage(m.Message)
	s.mu.Lock()
	defer s.mu.Unlock()
	server := s.servers[m.ServerName]
	if server == nil || s.stopped {
		s.post(errorLine(m.RequestID, "no such MCP server"))
		return
	}
	if err != nil {
		s.post(errorLine(m.RequestID, "not a JSON-RPC message"))
		return
	}
	request, isRequest := message.(*jsonrpc.Request)
	conn := s.conns[m.ServerName]
	// The CLI begins anew when it reconnects; a session cannot.
	if conn == nil || isRequest && request.Method == "initialize" && conn.initialized {
		if conn, err = s.connect(m.ServerName, server); err != nil {
			s.post(errorLine(m.RequestID, err.Error()))
			return
		}
	}
	if isRequest && request.IsCall() {
		conn.initialized = conn.initialized || request.Method == "initialize"
		conn.expect(request.ID, m.RequestID)
	} else {
		// A notification gets an answer too, or the CLI waits for one.
		s.post(responseLine(m.RequestID, []byte(`{"mcp_response":{"jsonrpc":"2.0","id":0,"result":{}}}`)))
	}
	conn.put(message)
}

// connect opens a session for a server, in the place of the one it had. The
// caller holds the lock.
func (s *mcpServers) connect(name string, server *mcp.Server) (*mcpConn, error) {
	if old := s.conns[name]; old != nil {
		s.end(old)
	}
	conn := &mcpConn{
		servers: s, name: name, wake: make(chan struct{}, 1), closed: make(chan struct{}),
		requests: make(map[jsonrpc.ID]string),
	}
	session, err := server.Connect(s.ctx, conn, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to MCP server %s: %w", name, err)
	}
	conn.session = session
	s.conns[name] = conn
	return conn, nil
}

// end closes a session in the background: tools that run in it may take time.
func (s *mcpServers) end(conn *mcpConn) {
	s.ending.Go(func() {
		_ = conn.session.Close() // nobody is left to be told
	})
}

// cancelRequest forgets a request that the CLI has withdrawn.
func (s *mcpServers) cancelRequest(requestID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		conn.forget(requestID)
	}
}

// stop ends all sessions and waits for them, and for the tools that run in
// them, whose contexts are done.
func (s *mcpServers) stop() {
	s.cancel()
	s.mu.Lock()
	s.stopped = true
	for name, conn := range s.conns {
		s.end(conn)
		delete(s.conns, name)
	}
	s.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.ending.Wait()
	}()
	select {
	case <-finished:
	case <-time.After(5 * time.Second):
		s.p.log.Warn("a tool of an in-process MCP server ignores its context")
	}
}

func (s *mcpServers) post(line []byte) {
	if err := s.p.in.post(line, nil); err != nil {
		s.p.log.Debug("answer of an MCP server not sent", zap.Error(err))
	}
}

// mcpConn is the connection of one session, and its own transport.
type mcpConn struct {
	servers     *mcpServers
	name        string
	session     *mcp.ServerSession
	initialized bool

	mu       sync.Mutex
	incoming []jsonrpc.Message
	requests map[jsonrpc.ID]string
	wake     chan struct{}
	once     sync.Once
	closed   chan struct{}
}

// Connect implements mcp.Transport.
func (c *mcpConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

func (c *mcpConn) expect(id jsonrpc.ID, requestID string) {
	c.mu.Lock()
	c.requests[id] = requestID
	c.mu.Unlock()
}

func (c *mcpConn) forget(requestID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.requests {
		if r == requestID {
			delete(c.requests, id)
		}
	}
}

func (c *mcpConn) put(m jsonrpc.Message) {
	c.mu.Lock()
	c.incoming = append(c.incoming, m)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Read implements mcp.Connection.
func (c *mcpConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		c.mu.Lock()
		if len(c.incoming) > 0 {
			m := c.incoming[0]
			c.incoming = c.incoming[1:]
			c.mu.Unlock()
			return m, nil
		}
		c.mu.Unlock()
		select {
		case <-c.wake:
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Write implements mcp.Connection: a response answers the request that brought
// its call, and everything else becomes a request of ours.
func (c *mcpConn) Write(_ context.Context, m jsonrpc.Message) error {
	body, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encode MCP message: %w", err)
	}
	if response, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		requestID, expected := c.requests[response.ID]
		delete(c.requests, response.ID)
		c.mu.Unlock()
		if expected {
			answer := append([]byte(`{"mcp_response":`), body...)
			c.servers.post(responseLine(requestID, append(answer, '}')))
		}
		return nil
	}
	id, _, err := c.servers.p.calls.begin()
	if err != nil {
		return fmt.Errorf("send MCP message: %w", err)
	}
	// The CLI's answer to a notification says nothing.
	c.servers.p.calls.forget(id)
	line := fmt.Appendf(nil, `{"type":"control_request","request_id":%q,"request":{"subtype":"mcp_message","server_name":%q,"message":%s}}`, id, c.name, body)
	c.servers.post(line)
	return nil
}

// Close implements mcp.Connection.
func (c *mcpConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// SessionID implements mcp.Connection.
func (c *mcpConn) SessionID() string { return "" }
