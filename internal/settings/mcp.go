package settings

import (
	"fmt"
	"net/textproto"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/agent/place"
	"deckhand/internal/agent/tools"
	"deckhand/internal/gateway"
	"deckhand/internal/sandbox"
)

// mcpYAML is an MCP server for a project's agents, by HTTP.
type mcpYAML struct {
	// Type is http (the default) or sse.
	Type string `yaml:"type"`
	URL  string `yaml:"url"`
	// Headers may hold ${NAME}, a variable of the bot's environment.
	Headers map[string]string `yaml:"headers"`
	// Reads are the names of its read-only tools: a contained posture runs them.
	Reads names `yaml:"reads"`
}

var (
	mcpName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	mcpTool = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
)

// transportHeaders are HTTP's own, and those that the gateway sets. (Proxy-… are, too.)
var transportHeaders = []string{"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// servers checks a project's MCP servers. Variables in credentials are not sent to them.
func (v *validation) servers(at string, all map[string]mcpYAML, kind sandbox.Kind, credentials map[string]bool) {
	if len(all) > 0 && kind == sandbox.Command {
		v.add(at, "kind: command does not take the way to MCP servers along, which is a socket of its own; leave mcp_servers out, or choose another sandbox")
	}
	for _, name := range sorted(all) {
		at, s := at+"."+name, all[name]
		if !mcpName.MatchString(name) {
			v.add(at, "%q is not a server's name; write small letters, digits and -", name)
		}
		if name == tools.Server {
			v.add(at, "the bot's own tools have the name %s; give this server another", name)
		}
		if s.Type != "" && s.Type != "http" && s.Type != "sse" {
			v.add(at+".type", "%q is not reached by the gateway; write http or sse", s.Type)
		}
		u, err := url.Parse(s.URL)
		switch {
		case strings.Contains(s.URL, "${"):
			v.add(at+".url", "an address takes no variables; write it out, and what is secret as a header: Authorization: Bearer ${NAME}")
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.add(at+".url", "this is not an http(s) address; write one such as https://mcp.example.com/mcp")
		case u.User != nil || u.Fragment != "":
			v.add(at+".url", "an address has neither user nor fragment here; write a header: Authorization: Basic ${NAME}")
		}
		for i, tool := range s.Reads {
			if !mcpTool.MatchString(tool) {
				v.add(fmt.Sprintf("%s.reads[%d]", at, i), "%q is no tool of a server; write its name as the server has it, without mcp__ and without *, such as search_issues", tool)
			}
		}
		for _, h := range sorted(s.Headers) {
			v.header(at+".headers."+h, h, s.Headers[h], credentials)
		}
	}
}

// header checks a header of an MCP server. It never repeats the value, which may be a secret.
func (v *validation) header(at, name, value string, credentials map[string]bool) {
	if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
		v.add(at, "%q is no header; write one such as Authorization: Bearer ${NAME}", name)
	}
	if canonical := textproto.CanonicalMIMEHeaderKey(name); slices.Contains(transportHeaders, canonical) || strings.HasPrefix(canonical, "Proxy-") {
		v.add(at, "%s is written by the gateway for each call; leave it out", canonical)
	}
	rest := value
	for _, variable := range place.Variables(value) {
		rest = strings.ReplaceAll(rest, "${"+variable+"}", "")
		switch {
		case kept(variable):
			v.add(at, "%s is the bot's own and never sent to a server", variable)
		case credentials[variable] || ofTheModel(variable):
			v.add(at, "%s holds a credential of the model's or of git, and is never sent to a server; write the name of a variable that holds the server's own", variable)
		}
	}
	if strings.Contains(rest, "${") {
		v.add(at, "there is a ${ that names no variable; write ${NAME}")
	}
}

// ofTheModel reports whether a variable may hold a credential for Claude Code or a cloud's libraries: it matches
// prefixes, since new names are added.
func ofTheModel(variable string) bool {
	return gateway.Owns(variable) || slices.ContainsFunc([]string{"ANTHROPIC_", "AWS_", "AZURE_", "CLAUDE_", "GOOGLE_"}, func(prefix string) bool {
		return strings.HasPrefix(variable, prefix)
	})
}

func mcpServers(all map[string]mcpYAML) map[string]place.MCPServer {
	if len(all) == 0 {
		return nil
	}
	out := map[string]place.MCPServer{}
	for name, s := range all {
		out[name] = place.MCPServer{URL: s.URL, SSE: s.Type == "sse", Headers: s.Headers}
	}
	return out
}

// mcpSecrets are the values inserted into headers of a project's servers.
func mcpSecrets(p place.Project) []string {
	var out []string
	for _, s := range p.MCPServers {
		for _, value := range s.Headers {
			for _, name := range place.Variables(value) {
				out = append(out, os.Getenv(name))
			}
		}
	}
	return out
}
