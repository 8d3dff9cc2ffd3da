package place

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/sandbox"
	"deckhand/internal/store"
)

// MCPServer is an MCP server that a project's agents reach by HTTP, through the gateway.
type MCPServer struct {
	URL string
	SSE bool // the older form, of two addresses
	// Headers are added outside. ${NAME} in a value is a variable of the bot's environment.
	Headers map[string]string
}

var variableUse = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// Variables are the names of those that the value of a header uses.
func Variables(value string) []string {
	var out []string
	for _, m := range variableUse.FindAllStringSubmatch(value, -1) {
		out = append(out, m[1])
	}
	return out
}

// Unfit is why the value of a variable cannot be in a header; empty if it can.
func Unfit(value string) string {
	switch {
	case value == "":
		return "is not set"
	case strings.ContainsAny(value, "\r\n"):
		return "has a line break in it"
	case strings.Contains(value, "\x00"):
		return "has a NUL in it"
	}
	return ""
}

// server is the server with its headers as they are sent.
func (s MCPServer) server() (egress.Server, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return egress.Server{}, err
	}
	out := egress.Server{URL: u, SSE: s.SSE, Headers: http.Header{}}
	for name, value := range s.Headers {
		for _, variable := range Variables(value) {
			v := os.Getenv(variable)
			if what := Unfit(v); what != "" {
				return egress.Server{}, fmt.Errorf("its header %s needs %s, which %s in the bot's environment", name, variable, what)
			}
			value = strings.ReplaceAll(value, "${"+variable+"}", v)
		}
		out.Headers.Set(name, value)
	}
	return out, nil
}

// servers are the project's MCP servers. The error is a sentence for people.
func (p Project) servers() (map[string]egress.Server, error) {
	out := map[string]egress.Server{}
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		s, err := p.MCPServers[name].server()
		if err != nil {
			return nil, fmt.Errorf("the MCP server %s: %w", name, err)
		}
		out[name] = s
	}
	return out, nil
}

// webTokenVariable holds what a call of an MCP server shows, inside.
const webTokenVariable = "DECKHAND_WEB_TOKEN"

// openWeb opens the way to the web beside the session's way to the model, if the project
// has domains or servers.
func (h *Host) openWeb(t store.Thread, p Project, s *sandbox.Session) (*egress.Session, error) {
	if !p.Sandbox.Network.Proxied() && len(p.MCPServers) == 0 {
		return nil, nil //nolint:nilnil // none is a way, too
	}
	if s.Socket == "" {
		return nil, errors.New("the gateway is not reached from where this sandbox leads")
	}
	rules, err := egress.ParseRules(p.Sandbox.Domains)
	if err != nil {
		return nil, err
	}
	servers, err := p.servers()
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	web, err := h.Web.Open(filepath.Join(filepath.Dir(s.Socket), "web"), egress.Options{
		Project: p.Name, Rules: rules, Ask: p.Sandbox.Network == sandbox.Ask, Servers: servers, Token: token,
		Denied: func(host string, port uint16) string {
			d := h.Policy.Decide(policy.Call{Tool: policy.NetworkTool, Input: policy.NetworkInput(host, port), Project: p.Name, Channel: t.ChannelID})
			if d.Verdict != policy.Deny {
				return ""
			}
			return strings.TrimSuffix(d.Rule+": "+d.Terms.Because, ": ")
		},
	})
	if err != nil {
		return nil, err
	}
	s.Web, s.Env = web.Socket(), append(s.Env, webTokenVariable+"="+token)
	return web, nil
}

// mcpConfig is how the CLI reaches the project's servers. Others can read it: what is
// secret in it is put in by the CLI.
func (p Project) mcpConfig() (string, error) {
	servers, err := p.servers()
	if err != nil {
		return "", err
	}
	return egress.MCPConfig(servers, "${"+sandbox.WebVariable+"}", "${"+webTokenVariable+"}"), nil
}
