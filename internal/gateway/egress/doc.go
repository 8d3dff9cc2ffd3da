// Package egress is a sandbox's way to the web: an HTTP proxy on a unix socket per session,
// and behind it the hosts that the project's network: names, and no others. It also leads
// to the project's MCP servers that are reached by HTTP.
//
// Inside, a forwarder on loopback (see package sandbox) carries bytes to the socket, and HTTP_PROXY and its like
// name it. Nothing secret is inside. The forwarder is not part of the boundary: whoever replaces it has only the
// socket.
//
// What leaves. CONNECT host:port, and plain HTTP with an absolute URL, to a host that a [Rule] names, on the port
// that it names, else on 80 and 443. Hosts are accepted in one spelling only: no address unless listed, no number
// that programs read as an address, no user, final dot, zone or non-ASCII letter.
//
// What is asked. In a session with Options.Ask a call to a host that no rule names waits until the session's
// [Asker] has answered, with one question per host and port. Calls wait ten minutes at most, 64 of them at once.
// What no answer can open (addresses that are not public, names that no public network has) is refused without a
// question, and nothing is looked up before the answer. Answers are not cached: every call asks again, and ends
// when its permission ends.
//
// Addresses. The host is looked up once, and the address is checked when the kernel is about to connect
// (net.Dialer.ControlContext), so DNS rebinding gains nothing. Only public addresses that are not this machine's
// are connected to; with "internal:" in the rule also private networks and loopback, but never link-local or cloud
// metadata addresses. Redirects are left to the caller, who makes a new call.
//
// What a tunnel carries. Its first bytes are checked: a TLS hello must name the host that the tunnel was opened to,
// and only TLS leaves by port 443. The rest is encrypted: a server that answers for another name behind its own
// certificate can still be asked for it, and so can one that accepts encrypted hellos.
//
// By another proxy. Where the bot's HTTPS_PROXY or HTTP_PROXY names one, that proxy looks hosts up and connects to
// them. Then only names are checked here; the proxy must restrict addresses.
//
// MCP servers. The CLI calls them by the forwarder with the session's token, at their own paths; headers are added
// here. Calls leave for the configured origin, at or below the configured path. Redirects are not followed. A tool is
// called only as a tool use that was decided about, with its input, and once: see [Session.AllowCall].
//
// Limits: connections per session, size of heads, time for a head or a hello, idle time. [Session.Take] returns
// what was visited, with its bytes.
//
// Why no library: stripe/smokescreen has no releases and brings a fork of goproxy, a logger,
// a command line and a client of statsd, for a refusal that net.Dialer has a hook for;
// elazarl/goproxy is well kept, and what it does beyond CONNECT is decrypting and rewriting
// pages, which is what we do not want. net/http and httputil.ReverseProxy are the rest.
package egress
