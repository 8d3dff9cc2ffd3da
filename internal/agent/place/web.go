package place

import (
	"context"
	"encoding/json"
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
	"deckhand/internal/redact"
	"deckhand/internal/sandbox"
	"deckhand/internal/store/threads"
)

// MCPServer is an MCP server of a project's agents, which they reach by HTTP, through the gateway; or a command that
// Claude Code starts beside itself, in the sandbox, and speaks to by stdio.
type MCPServer struct {
	Command []string
	Env     map[string]string // what else stands in the command's environment; nothing secret

	URL string
	SSE bool // the older form, of two addresses
	// Headers are added outside. ${NAME} in a value is a variable of the bot's environment.
	Headers map[string]string
	// Person is the site at which people connect to it, who act there as themselves; empty for none. Acts is as
	// whom a process acts.
	Person string
	Acts   *egress.Person
}

// nobody is as whom a process acts that was begun for nobody.
var nobody = egress.Person{
	Token: func(context.Context) (string, error) {
		return "", errors.New("acts as whoever asks, and nobody does")
	},
	Refused: func(context.Context, string) {},
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
	out := egress.Server{URL: u, SSE: s.SSE, Headers: http.Header{}, Person: s.Acts}
	if s.Person != "" && s.Acts == nil {
		out.Person = &nobody
	}
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

// servers are the project's MCP servers by HTTP. The error is a sentence for people.
func (p Project) servers() (map[string]egress.Server, error) {
	out := map[string]egress.Server{}
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		if len(p.MCPServers[name].Command) > 0 {
			continue
		}
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
func (h *Host) openWeb(t threads.Thread, p Project, s *sandbox.Session) (*egress.Session, error) {
	servers, err := p.servers()
	if err != nil {
		return nil, err
	}
	if !p.Sandbox.Network.Proxied() && len(servers) == 0 {
		return nil, nil //nolint:nilnil // none is a way, too
	}
	if s.Socket == "" {
		return nil, errors.New("the gateway is not reached from where this sandbox leads")
	}
	rules, err := egress.ParseRules(p.Sandbox.Domains)
	if err != nil {
		return nil, err
	}
	token := redact.Token()
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
	all := egress.MCPConfig(servers, "${"+sandbox.WebVariable+"}", "${"+webTokenVariable+"}")
	for name, s := range p.MCPServers {
		if len(s.Command) > 0 {
			all[name] = map[string]any{"type": "stdio", "command": "/bin/sh", "args": s.started()}
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	out, err := json.Marshal(map[string]any{"mcpServers": all})
	return string(out), err
}

// serverScript starts a server in an environment that has only what its programs need, and what
// is set for it: that of the CLI has tokens by which a session reaches the gateway. It begins in
// the root folder, since launchers such as npx look for what they run where they begin, and
// sessions write to the workspace.
const serverScript = `cd / && for n in %s; do eval "[ -z \"\$$n\" ] || set -- \"$n=\$$n\" \"\$@\""; done; exec env -i "$@"`

// serverNeeds are the variables of the session's that a server gets.
var serverNeeds = []string{
	"PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
}

// started are the arguments by which a shell starts the server.
func (s MCPServer) started() []string {
	out := []string{"-c", fmt.Sprintf(serverScript, strings.Join(serverNeeds, " ")), "sh"}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		out = append(out, name+"="+s.Env[name])
	}
	return append(out, s.Command...)
}
