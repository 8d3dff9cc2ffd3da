package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/agent/place"
)

// mcpHeader is a server with one header.
func mcpHeader(name, value string) string {
	return "mcp_servers: {x: {url: 'https://x.example/mcp', headers: {" + name + ": '" + value + "'}}}"
}

func TestMCPServers(t *testing.T) {
	t.Setenv("LINEAR_TOKEN", "linear-secret")
	f, err := ReadFile(write(t, `projects:
  web:
    dir: /srv/web
    mcp_servers:
      linear: {url: "https://mcp.linear.app/mcp", headers: {Authorization: "Bearer ${LINEAR_TOKEN}"}}
      old: {type: sse, url: "http://10.1.2.3:8080/sse"}
      files: {command: [npx, -y, "@modelcontextprotocol/server-filesystem@2026.1.14", /srv], env: {LOG_LEVEL: debug}}
      own: {command: /opt/own/server}
      hosted: {url: "https://mcp.example/mcp", as: person, connect: {client_id: ours, client_secret_env: MCP_SECRET, scopes: [read]}}
      time: {command: [uvx, mcp-server-time@2.1]}
`+channelsAndRoles))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]place.MCPServer{
		"linear": {URL: "https://mcp.linear.app/mcp", Headers: map[string]string{"Authorization": "Bearer ${LINEAR_TOKEN}"}},
		"files":  {Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem@2026.1.14", "/srv"}, Env: map[string]string{"LOG_LEVEL": "debug"}},
		"own":    {Command: []string{"/opt/own/server"}},
		"hosted": {URL: "https://mcp.example/mcp", Person: "mcp.example/mcp"},
		"time":   {Command: []string{"uvx", "mcp-server-time@2.1"}},
		"old":    {URL: "http://10.1.2.3:8080/sse", SSE: true},
	}
	if diff := cmp.Diff(want, f.Projects["web"].MCPServers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if secrets := (Environment{}).Secrets(f.Projects); !strings.Contains(strings.Join(secrets, " "), "linear-secret") {
		t.Errorf("what is sent to a server is no secret: %q", secrets)
	}
	for name, tt := range map[string]struct{ project, want string }{
		"somebody else":            {"mcp_servers: {x: {url: 'https://x.example/mcp', as: bot}}", `"bot" is nobody to act as; write person`},
		"a command as a person":    {"mcp_servers: {x: {command: /opt/x, as: person}}", "every command could read a person's token"},
		"a person in clear":        {"mcp_servers: {x: {url: 'http://x.example/mcp', as: person}}", "people's tokens are sent there: write https"},
		"a person and a header":    {"mcp_servers: {x: {url: 'https://x.example/mcp', as: person, headers: {authorization: 'Bearer x'}}}", "this header holds the token of whoever asks"},
		"an app for nobody":        {"mcp_servers: {x: {url: 'https://x.example/mcp', connect: {client_id: a}}}", "nobody connects to a server that acts as the bot"},
		"a code":                   {"mcp_servers: {x: {url: 'https://x.example/mcp', as: person, connect: {client_id: a, device_url: 'https://x.example/d'}}}", `there is no key "device_url" here; there are client_id, client_secret_env, scopes`},
		"an app and a token":       {"mcp_servers: {x: {url: 'https://x.example/mcp', as: person, connect: {client_id: a, token_page: 'https://x.example/p'}}}", "leave one of them out"},
		"a secret of no app":       {"mcp_servers: {x: {url: 'https://x.example/mcp', as: person, connect: {client_secret_env: MCP_SECRET}}}", "this is the secret of an OAuth app"},
		"an app's secret of ours":  {"mcp_servers: {x: {url: 'https://x.example/mcp', as: person, connect: {client_id: a, client_secret_env: SLACK_BOT_TOKEN}}}", "SLACK_BOT_TOKEN holds another secret"},
		"a command":                {"mcp_servers: {x: {type: stdio, url: 'https://x.example/mcp'}}", `:1:51: projects.web.mcp_servers.x: a server is a command or an address; leave out command, or url and headers`},
		"a type that is none":      {"mcp_servers: {x: {type: ws, url: 'https://x.example/mcp'}}", `:1:57: projects.web.mcp_servers.x.type: "ws" is no type of a server; write http, sse or stdio`},
		"no command":               {"mcp_servers: {x: {type: stdio}}", "there is no command; write one such as [npx, name@1.2.3]"},
		"both":                     {"mcp_servers: {x: {command: /opt/x, url: 'https://x.example/mcp'}}", "a server is a command or an address"},
		"a command by http":        {"mcp_servers: {x: {type: http, command: /opt/x}}", "a command is spoken to by stdio"},
		"the newest of npx":        {"mcp_servers: {x: {command: [npx, -y, '@acme/server']}}", "npx runs whatever its registry has under that name on the day when a session starts; write exactly one version after it, such as npx name@1.2.3"},
		"some of npx":              {"mcp_servers: {x: {command: [npx, 'server@^1.2.0']}}", "write exactly one version"},
		"a tag of npx":             {"mcp_servers: {x: {command: [npx, server@latest]}}", "write exactly one version"},
		"a major of npx":           {"mcp_servers: {x: {command: [npx, server@1]}}", "write exactly one version"},
		"a minor of npx":           {"mcp_servers: {x: {command: [npx, server@1.2]}}", "write exactly one version"},
		"a tag like a version":     {"mcp_servers: {x: {command: [bunx, server@1.2.3.4]}}", "write exactly one version"},
		"no version after all":     {"mcp_servers: {x: {command: [npx, server@1.2.3-a..b]}}", "write exactly one version"},
		"npx in other words":       {"mcp_servers: {x: {command: [npm, --yes, exec, server]}}", "npm fetches what it runs; write npx name@1.2.3"},
		"uvx in other words":       {"mcp_servers: {x: {command: [/usr/bin/uv, tool, run, server]}}", "uv fetches what it runs; write uvx name@1.2.3"},
		"a package by an option":   {"mcp_servers: {x: {command: [/usr/bin/npx, --package=evil, server@1.2.3]}}", "no options before that but -y"},
		"an address for npx":       {"mcp_servers: {x: {command: [npx, 'github:a/b@1.2.3']}}", "write exactly one version"},
		"the newest of uvx":        {"mcp_servers: {x: {command: [uvx, server]}}", "uvx runs whatever"},
		"a file of the repository": {"mcp_servers: {x: {command: [./server.js]}}", "so that a repository could say what runs unasked"},
		"one of the project's":     {"mcp_servers: {x: {command: [/srv/x/../web/server.js]}}", "so that a repository could say what runs unasked"},
		"a variable in a command":  {"mcp_servers: {x: {command: [/opt/x, '--key=${KEY}']}}", "a command takes no variables"},
		"a variable for a command": {"mcp_servers: {x: {command: /opt/x, env: {KEY: '${KEY}'}}}", "no variable of the bot's is sent into a sandbox"},
		"a name of ours":           {"mcp_servers: {x: {command: /opt/x, env: {SLACK_BOT_TOKEN: x}}}", "SLACK_BOT_TOKEN is one of the bot's"},
		"a name of the model's":    {"mcp_servers: {x: {command: /opt/x, env: {ANTHROPIC_API_KEY: x}}}", "ANTHROPIC_API_KEY is one of the bot's or the model's"},
		"a name that is none":      {"mcp_servers: {x: {command: /opt/x, env: {'A B': x}}}", "is no variable's name"},
		"an environment by http":   {"mcp_servers: {x: {url: 'https://x.example/mcp', env: {A: b}}}", "a server by HTTP runs elsewhere"},
		"no address":               {"mcp_servers: {x: {url: x.example}}", "write one such as https://mcp.example.com/mcp"},
		"a user":                   {"mcp_servers: {x: {url: 'https://me:secret@x.example/mcp'}}", "write a header: Authorization: Basic ${NAME}"},
		"a name":                   {"mcp_servers: {X_y: {url: 'https://x.example/mcp'}}", `"X_y" is not a server's name`},
		"the bot's own name":       {"mcp_servers: {deckhand: {url: 'https://x.example/mcp'}}", "the bot's own tools have the name deckhand; give this server another"},
		"a variable of ours":       {"mcp_servers: {x: {url: 'https://x.example/mcp', headers: {A: '${SLACK_BOT_TOKEN}'}}}", "SLACK_BOT_TOKEN is the bot's own"},
		"one of the model's":       {mcpHeader("A", "Bearer ${ANTHROPIC_API_KEY}"), "ANTHROPIC_API_KEY holds a credential"},
		"the model's OAuth token":  {mcpHeader("A", "${CLAUDE_CODE_OAUTH_TOKEN}"), "CLAUDE_CODE_OAUTH_TOKEN holds a credential"},
		"the model's bearer":       {mcpHeader("A", "${ANTHROPIC_AUTH_TOKEN}"), "ANTHROPIC_AUTH_TOKEN holds a credential"},
		"a key of AWS's":           {mcpHeader("A", "${AWS_SECRET_ACCESS_KEY}"), "AWS_SECRET_ACCESS_KEY holds a credential"},
		"a key of Google's":        {mcpHeader("A", "${GOOGLE_API_KEY}"), "GOOGLE_API_KEY holds a credential"},
		"one of a provider's":      {"provider: {kind: anthropic, api_key_env: WEB_KEY}, " + mcpHeader("A", "${WEB_KEY}"), "WEB_KEY holds a credential"},
		"a provider's header":      {"provider: {kind: anthropic, headers_env: {X: WEB_KEY}}, " + mcpHeader("A", "${WEB_KEY}"), "WEB_KEY holds a credential"},
		"one of git's":             {"git: {token_env: GIT_TOKEN}, " + mcpHeader("A", "${GIT_TOKEN}"), "GIT_TOKEN holds a credential"},
		"a variable without end":   {mcpHeader("A", "${unclosed"), "there is a ${ that names no variable; write ${NAME}"},
		"one of two without end":   {mcpHeader("A", "${NAME} ${NAME"), "there is a ${ that names no variable"},
		"a variable without name":  {mcpHeader("A", "${}"), "there is a ${ that names no variable"},
		"the call's host":          {mcpHeader("host", "x"), "Host is written by the gateway for each call; leave it out"},
		"the call's length":        {mcpHeader("Content-Length", "1"), "Content-Length is written by the gateway"},
		"the connection's":         {mcpHeader("transfer-encoding", "x"), "Transfer-Encoding is written by the gateway"},
		"a proxy's":                {mcpHeader("Proxy-Authorization", "x"), "Proxy-Authorization is written by the gateway"},
		"a variable in an address": {"mcp_servers: {x: {url: 'https://x.example/${KEY}'}}", ".url: an address takes no variables"},
		"a variable for a host":    {"mcp_servers: {x: {url: '${URL}'}}", ".url: an address takes no variables"},
		"a header that is two":     {`mcp_servers: {x: {url: 'https://x.example/mcp', headers: {A: "b\nC: d"}}}`, `"A" is no header`},
		"by a launcher":            {"sandbox: {kind: command, command: [ssh, x]}, mcp_servers: {x: {url: 'https://x.example/mcp'}}", "does not take the way to MCP servers along"},
		"a key that is none":       {"mcp_servers: {x: {ulr: 'https://x.example/mcp'}}", `there is no key "ulr" here; there are type, url, command`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFile(write(t, "projects: {web: {dir: /srv/web, "+tt.project+"}}\n"+channelsAndRoles))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, not %q", err, tt.want)
			}
		})
	}
}
