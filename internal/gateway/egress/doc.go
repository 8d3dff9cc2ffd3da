// Package egress is a sandbox's way to the web: an HTTP proxy on a unix socket per session,
// and behind it the hosts that the project's network: names, and no others. It also leads
// to the project's MCP servers that are reached by HTTP.
//
// Inside, a forwarder on loopback (see package sandbox) carries bytes to the socket, and
// HTTP_PROXY and its like name it. Nothing secret is inside. The forwarder is no part of
// the wall: whoever kills it or speaks in its place has the socket, which is the same.
//
// What leaves. CONNECT host:port, and plain HTTP by a call with a whole address, to a host
// that a [Rule] names, on a port that it names, else on 80 and 443. Hosts are taken in one
// spelling only: no address unless it is listed, no number that programs read as one, no
// user, dot at the end, zone or letter that is not ASCII.
//
// What is asked. In a session with Options.Ask a call to a host that no rule names is held
// until the session's [Asker] has answered for it, one question for a host and its port
// however many calls wait; they wait for ten minutes at most, 64 of them at once. What
// cannot be opened by an answer (addresses that are not public, names that no public
// network has) is refused without a question, and nothing is looked up before the answer.
// Answers are not kept here: every call asks whoever knows what holds, and ends when what
// it was allowed for does.
//
// Where it leads. The host is looked up once, and the address that was found is looked at
// when the kernel is about to connect to it (net.Dialer.ControlContext): nothing is looked
// up again in between, so that a name that changes its mind gains nothing. Only addresses
// that are known to be public are connected to, none of this machine's own; with
// "internal:" in the rule those of private networks and of loopback, too, and never those
// of links and of clouds' metadata. Redirects are the caller's to follow: by a new call.
//
// What a tunnel carries. Its first bytes are looked at: a hello of TLS has to ask for the
// host that the tunnel was opened to, or that is where a server with many names would be
// led away; by port 443 nothing but TLS leaves. What is said after it is encrypted: a
// server that answers for another name behind its own certificate can be asked for it, and
// so can one that takes encrypted hellos.
//
// By another proxy. Where the bot's HTTPS_PROXY or HTTP_PROXY leads to one, it looks hosts
// up and connects to them, and what it reaches it has to know: then addresses are not
// looked at here, and names are all that is held.
//
// MCP servers. The CLI calls them by the forwarder with the session's token, at the paths
// that they have; headers are added here. Calls leave for the configured origin, at the
// configured path and below it. Redirects are not followed.
//
// Limits: connections of a session, heads, the time that a head or a hello takes, the time
// that nothing is carried. What was visited, with its bytes, is [Session.Take]'s.
//
// Why no library: stripe/smokescreen has no releases and brings a fork of goproxy, a logger,
// a command line and a client of statsd, for a refusal that net.Dialer has a hook for;
// elazarl/goproxy is well kept, and what it does beyond CONNECT is decrypting and rewriting
// pages, which is what we do not want. net/http and httputil.ReverseProxy are the rest.
package egress
