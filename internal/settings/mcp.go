package settings

import (
	"net/url"
	"os"
	"regexp"
	"strings"

	"deckhand/internal/agent"
	"deckhand/internal/sandbox"
)

// mcpYAML is an MCP server that a project's agents use, by HTTP.
type mcpYAML struct {
	// Type is http (the default) or sse.
	Type string `yaml:"type"`
	URL  string `yaml:"url"`
	// Headers may hold ${NAME}, a variable of the bot's environment.
	Headers map[string]string `yaml:"headers"`
}

var mcpName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// servers checks a project's MCP servers.
func (v *validation) servers(at string, all map[string]mcpYAML, kind sandbox.Kind) {
	if len(all) > 0 && kind == sandbox.Command {
		v.add(at, "kind: command leads to a place from which the bot's gateway is not reached; leave mcp_servers out, or choose another sandbox")
	}
	for _, name := range sorted(all) {
		at, s := at+"."+name, all[name]
		if !mcpName.MatchString(name) {
			v.add(at, "%q is not a server's name; write small letters, digits and -", name)
		}
		if s.Type != "" && s.Type != "http" && s.Type != "sse" {
			v.add(at+".type", "%q is not reached by the gateway; write http or sse", s.Type)
		}
		u, err := url.Parse(s.URL)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.add(at+".url", "this is not an http(s) address; write one such as https://mcp.example.com/mcp")
		case u.User != nil || u.Fragment != "":
			v.add(at+".url", "an address has neither user nor fragment here; write a header: Authorization: Basic ${NAME}")
		}
		for _, h := range sorted(s.Headers) {
			v.header(at+".headers."+h, h, s.Headers[h])
		}
	}
}

func (v *validation) header(at, name, value string) {
	if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
		v.add(at, "%q is no header; write one such as Authorization: Bearer ${NAME}", name)
	}
	for _, variable := range agent.Variables(value) {
		if kept(variable) {
			v.add(at, "%s is the bot's own and never sent to a server", variable)
		}
	}
}

func mcpServers(all map[string]mcpYAML) map[string]agent.MCPServer {
	if len(all) == 0 {
		return nil
	}
	out := map[string]agent.MCPServer{}
	for name, s := range all {
		out[name] = agent.MCPServer{URL: s.URL, SSE: s.Type == "sse", Headers: s.Headers}
	}
	return out
}

// mcpSecrets are the values that are put into the headers of a project's servers.
func mcpSecrets(p agent.Project) []string {
	var out []string
	for _, s := range p.MCPServers {
		for _, value := range s.Headers {
			for _, name := range agent.Variables(value) {
				out = append(out, os.Getenv(name))
			}
		}
	}
	return out
}
