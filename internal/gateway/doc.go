// Package gateway is a sandbox's way to the model, and the only one: a unix socket per
// session, and behind it a reverse proxy that adds what must not be inside.
//
// Who may call. Whoever can open the session's socket and shows the session's token. The socket's folder is bound
// into that session's sandbox alone; only the bot's user can enter the folder above it. The token is random, made
// for one process, sent in the header X-Deckhand-Token of every call, and useless elsewhere or after
// [Session.Close].
//
// What leaves. Calls of the model: POST to the paths by which the CLI asks it and counts tokens, in the form of the
// session's provider (Anthropic's API, Amazon Bedrock, Google Vertex AI, Microsoft Foundry), to that provider's
// address and no other, with known headers only. Where the CLI chooses between credentials, its variables hold
// placeholders; where a call carries a placeholder, the gateway puts the credential. A call with any other
// credential is refused: an attacker could use a key of their own to carry the workspace to their account at the
// same provider.
//
// The body of a call is read before it is passed on (see check). What makes the provider itself fetch or connect
// (MCP servers, pages, files by their URL) is refused: it would bypass the sandbox's network.
//
// What is refused. Every other method, path, query and header; upgrades; a call larger than the providers take.
// Redirects are neither followed nor passed to the session.
//
// When a call ends. A call that costs something is read to its end even if its caller hangs up, is killed, reads
// nothing, or its session is closed, so that its cost is known and nothing inside can lower it. Only [Call.Cut] and
// [Gateway.Close] cut it.
//
// What comes back. The answer as it arrives, unbuffered: each event of a stream reaches the CLI when the provider
// sends it. Errors keep their status and are always the JSON of Anthropic's API, with credentials masked; a network
// error names no address. The log has all of it.
//
// Who pays. A session has one [Provider], its project's, and no other credentials. What has to be made per call (a
// signature of AWS, a token of Google's or Microsoft's) is made just before the call leaves. If it cannot be had,
// the session is not opened, and a call of an open session is answered with a sentence. Calls of Vertex AI always
// go to the provider's project and regions.
//
// Remote sessions. Sessions that no socket reaches connect to a TCP listener, if there is one ([Listen]). It knows
// the tokens of such open sessions, and answers everybody else 401. Whoever can read a session's token where it
// runs can call its model until the session ends.
package gateway
