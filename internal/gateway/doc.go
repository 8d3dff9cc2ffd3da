// Package gateway is a sandbox's way to the model, and the only one: a unix socket per
// session, and behind it a reverse proxy that adds what must not be inside.
//
// Who may call. Whoever can open the session's socket and shows the session's token. The
// socket's folder is bound into that session's sandbox alone; the folder above it can be
// entered by the bot's user only. The token is random, made for one process, in the
// header X-Deckhand-Token of every call, and is worth nothing elsewhere or after
// [Session.Close].
//
// What leaves. Calls of the model: POST to the paths by which the CLI asks it and counts
// tokens, in the form of the provider that the session's environment chooses (Anthropic's
// API, Amazon Bedrock, Google Vertex AI, Microsoft Foundry), to that provider's address
// and no other. Of their headers only those that are known. The variables of the
// environment that hold credentials hold a placeholder inside; where a call carries the
// placeholder, the gateway puts the credential. A call with any other credential is
// refused: with a key of an attacker's own, the workspace could be carried to their
// account at the same provider.
//
// The body of a call is read before it is passed on (see check): what makes the provider
// itself fetch or connect (MCP servers, pages, files by their URL) is refused, as it
// would be a way round the sandbox's network.
//
// What does not leave. Every other method, path, query and header; upgrades; a call that
// is larger than the providers take. Redirects are not followed, and not handed in.
//
// What comes back. The answer as it arrives, without a buffer: each event of a stream
// reaches the CLI when the provider sends it. Errors keep their status and are always the
// JSON of Anthropic's API, in which credentials are masked; an error of the way there
// names no address. The log has the whole of it.
//
// Not held here. Who signs its calls itself (Bedrock with keys of AWS, Vertex with
// Google's credentials) has those credentials inside, and what it signs passes as it is.
// The same holds for a session for which the bot has no credential at all, as the
// launcher of CLAUDE_COMMAND may bring one.
package gateway
