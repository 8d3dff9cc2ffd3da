package settings

import (
	"fmt"
	"net/textproto"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/accounts"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/tools"
	"deckhand/internal/gateway"
	"deckhand/internal/sandbox"
)

// mcpYAML is an MCP server for a project's agents: by HTTP, or a command in their sandbox.
type mcpYAML struct {
	// Type is http (the default) or sse; or stdio, which a command is.
	Type string `yaml:"type"`
	URL  string `yaml:"url"`
	// Command is a program and its arguments, and Env what else stands in its environment.
	Command names             `yaml:"command"`
	Env     map[string]string `yaml:"env"`
	// Headers may hold ${NAME}, a variable of the bot's environment.
	Headers map[string]string `yaml:"headers"`
	// Reads are the names of its read-only tools: a contained posture runs them.
	Reads names `yaml:"reads"`
	// As is person where whoever is worked for acts as themselves, and Connect is how they connect; nil: as
	// the server says.
	As      string          `yaml:"as"`
	Connect *mcpConnectYAML `yaml:"connect"`
}

// mcpConnectYAML is the OAuth app by which people connect to an MCP server, or where they make a token.
type mcpConnectYAML struct {
	ClientID        string `yaml:"client_id"`
	ClientSecretEnv string `yaml:"client_secret_env"`
	Scopes          names  `yaml:"scopes"`
	TokenPage       string `yaml:"token_page"`
}

// site is where people connect to a server.
func (s mcpYAML) site() accounts.Site {
	out := accounts.Site{URL: s.URL, Server: &accounts.Server{}}
	if c := s.Connect; c != nil {
		out.ClientID, out.ClientSecretEnv = c.ClientID, c.ClientSecretEnv
		*out.Server = accounts.Server{Scopes: c.Scopes, TokenPage: c.TokenPage}
	}
	return out
}

var (
	mcpName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	mcpTool = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
)

// transportHeaders are HTTP's own, and those that the gateway sets. (Proxy-… are, too.)
var transportHeaders = []string{"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// servers checks a project's MCP servers. Variables in credentials are not sent to them.
func (v *validation) servers(at string, p projectYAML, kind sandbox.Kind, credentials map[string]bool) {
	all := p.MCPServers
	if kind == sandbox.Command && slices.ContainsFunc(sorted(all), func(name string) bool { return len(all[name].Command) == 0 }) {
		v.add(at, "kind: command does not take the way to MCP servers along, which is a socket of its own; leave those by HTTP out, or choose another sandbox")
	}
	for _, name := range sorted(all) {
		at, s := at+"."+name, all[name]
		if !mcpName.MatchString(name) {
			v.add(at, "%q is not a server's name; write small letters, digits and -", name)
		}
		if name == tools.Server {
			v.add(at, "the bot's own tools have the name %s; give this server another", name)
		}
		if len(s.Command) > 0 || s.Type == "stdio" {
			v.mcpCommand(at, p.Dir, s)
		} else {
			v.mcpAddress(at, s)
		}
		v.mcpPerson(at, s, credentials)
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

// mcpPerson checks how people act at a server as themselves.
func (v *validation) mcpPerson(at string, s mcpYAML, credentials map[string]bool) {
	if s.As != "" && s.As != asPerson {
		v.add(at+".as", "%q is nobody to act as; write person, or leave it out to act as the bot", s.As)
	}
	if s.As == "" {
		if s.Connect != nil {
			v.add(at+".connect", "nobody connects to a server that acts as the bot; write as: person, or leave connect out")
		}
		return
	}
	u, err := url.Parse(s.URL)
	switch {
	case len(s.Command) > 0 || s.Type == "stdio":
		v.add(at+".as", "a command runs in the sandbox, where every command could read a person's token; as: person takes a server by HTTP")
		return
	case err == nil && u.Scheme == "http" && !accounts.Secure(s.URL):
		v.add(at+".url", "people's tokens are sent there: write https")
	}
	for _, h := range sorted(s.Headers) {
		if textproto.CanonicalMIMEHeaderKey(h) == "Authorization" {
			v.add(at+".headers."+h, "with as: person this header holds the token of whoever asks; leave it out")
		}
	}
	c := s.Connect
	if c == nil {
		return
	}
	switch {
	case c.TokenPage != "" && c.ClientID != "":
		v.add(at+".connect.token_page", "people enter a token or connect by an OAuth app; leave one of them out")
	case c.ClientSecretEnv != "" && c.ClientID == "":
		v.add(at+".connect.client_secret_env", "this is the secret of an OAuth app; add its client_id, or leave it out")
	}
	if u, err := url.Parse(c.TokenPage); c.TokenPage != "" && (err != nil || u.Host == "" || u.Scheme != "https") {
		v.add(at+".connect.token_page", "this is not an https address; write the page where people make a token")
	}
	if name := c.ClientSecretEnv; name != "" && (kept(name) || credentials[name] || ofTheModel(name)) {
		v.add(at+".connect.client_secret_env", "%s holds another secret; write the name of a variable that holds the app's own", name)
	}
}

// mcpAddress checks a server that is reached by HTTP.
func (v *validation) mcpAddress(at string, s mcpYAML) {
	if s.Type != "" && s.Type != "http" && s.Type != "sse" {
		v.add(at+".type", "%q is no type of a server; write http, sse or stdio", s.Type)
	}
	if len(s.Env) > 0 {
		v.add(at+".env", "a server by HTTP runs elsewhere, so it has no environment here; write headers, or a command")
	}
	u, err := url.Parse(s.URL)
	switch {
	case strings.Contains(s.URL, "${"):
		v.add(at+".url", "an address takes no variables; write it out, and what is secret as a header: Authorization: Bearer ${NAME}")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		v.add(at+".url", "this is not an http(s) address; write one such as https://mcp.example.com/mcp, or a command: [npx, name@1.2.3]")
	case u.User != nil || u.Fragment != "":
		v.add(at+".url", "an address has neither user nor fragment here; write a header: Authorization: Basic ${NAME}")
	}
}

var (
	// npmPinned is a package of npm's of exactly one version. To npm, 1.2 is whatever begins so, and 1.2.3.4 a tag.
	npmPinned = regexp.MustCompile(`^(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*@[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z.-]+)?$`)
	// fetching are programs that fetch what they run, and what is a package of exactly one version to them.
	fetching = map[string]*regexp.Regexp{
		"npx": npmPinned, "bunx": npmPinned, "pnpx": npmPinned,
		"uvx": regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*@[0-9]+(?:\.[0-9]+)*(?:[-+.]?[0-9A-Za-z.]+)?$`),
	}
	// longer are other words for them, and the short one.
	longer = map[string]struct{ words, short string }{
		"npm": {"exec x", "npx"}, "pnpm": {"dlx exec", "npx"}, "yarn": {"dlx", "npx"}, "bun": {"x", "bunx"}, "uv": {"tool x", "uvx"}, "pipx": {"run", "uvx"},
	}
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// mcpCommand checks a server that is a command. It runs where everything of the session does: what it gets, every
// command of the session can read. dir is the project's folder, if it has one.
func (v *validation) mcpCommand(at, dir string, s mcpYAML) {
	if s.Type != "" && s.Type != "stdio" {
		v.add(at+".type", "a command is spoken to by stdio; leave type out, or write url instead of command")
	}
	if s.URL != "" || len(s.Headers) > 0 {
		v.add(at, "a server is a command or an address; leave out command, or url and headers")
	}
	if len(s.Command) == 0 {
		v.add(at+".command", "there is no command; write one such as [npx, name@1.2.3]")
		return
	}
	for i, word := range s.Command {
		if strings.Contains(word, "${") || strings.ContainsAny(word, "\x00") {
			v.add(fmt.Sprintf("%s.command[%d]", at, i), "a command takes no variables; write it out. What is secret cannot be given to a command, which runs in the sandbox: use a server by HTTP, to which the bot adds headers")
		}
	}
	program := s.Command[0]
	switch {
	case strings.Contains(program, "/") && !path.IsAbs(program), dir != "" && strings.HasPrefix(path.Clean(program)+"/", path.Clean(dir)+"/"):
		v.add(at+".command[0]", "%q would be looked for in a folder that sessions write to, so that a repository could say what runs unasked; write a name in the PATH, or a path that begins with / and is not in the project's folder", program)
	case slices.ContainsFunc(s.Command[1:], func(w string) bool { return slices.Contains(strings.Fields(longer[path.Base(program)].words), w) }):
		short := longer[path.Base(program)].short
		v.add(at+".command", "%s fetches what it runs; write %s name@1.2.3, whose version is checked", path.Base(program), short)
	case fetching[path.Base(program)] != nil:
		if words := slices.DeleteFunc(slices.Clone(s.Command[1:]), func(w string) bool { return w == "-y" || w == "--yes" }); len(words) == 0 || !fetching[path.Base(program)].MatchString(words[0]) {
			v.add(at+".command", "%s runs whatever its registry has under that name on the day when a session starts; write exactly one version after it, such as %s name@1.2.3, and no options before that but -y", path.Base(program), path.Base(program))
		}
	}
	for _, name := range sorted(s.Env) {
		switch value := s.Env[name]; {
		case !envName.MatchString(name) || strings.Contains(value, "\x00"):
			v.add(at+".env", "%q is no variable's name; write letters, digits and _", name)
		case kept(name) || ofTheModel(name):
			v.add(at+".env."+name, "%s is one of the bot's or the model's, which a server does not get", name)
		case strings.Contains(value, "${"):
			v.add(at+".env."+name, "a value is taken as it stands, and no variable of the bot's is sent into a sandbox, where every command could read it; write the value out, or use a server by HTTP, to which the bot adds headers")
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
		server := place.MCPServer{URL: s.URL, SSE: s.Type == "sse", Headers: s.Headers, Command: s.Command, Env: s.Env}
		if s.As == asPerson {
			server.Person = s.site().Host()
		}
		out[name] = server
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
