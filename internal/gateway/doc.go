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
// tokens, in the form of the session's provider (Anthropic's API, Amazon Bedrock, Google
// Vertex AI, Microsoft Foundry), to that provider's address and no other. Of their headers
// only those that are known. Where the CLI chooses between credentials, its variables hold
// placeholders; where a call carries one, the gateway puts the credential. A call with any
// other credential is refused: with a key of an attacker's own, the workspace could be
// carried to their account at the same provider.
//
// The body of a call is read before it is passed on (see check): what makes the provider
// itself fetch or connect (MCP servers, pages, files by their URL) is refused, as it
// would be a way round the sandbox's network.
//
// What does not leave. Every other method, path, query and header; upgrades; a call that
// is larger than the providers take. Redirects are not followed, and not handed in.
//
// Who leaves. A call that costs something is read to its end when its caller hangs up, is
// killed, takes nothing of the answer, or its session is closed, so that what it cost is
// known and nothing inside can make it count for less. It is cut from outside alone: by
// [Call.Cut], and by [Gateway.Close].
//
// What comes back. The answer as it arrives, without a buffer: each event of a stream
// reaches the CLI when the provider sends it. Errors keep their status and are always the
// JSON of Anthropic's API, in which credentials are masked; an error of the way there
// names no address. The log has the whole of it.
//
// On whose account. A session has one [Provider], its project's, and the credentials of
// no other. What has to be made for a call (a signature of AWS, a token of Google's or of
// Microsoft's) is made when the call is about to leave; if it cannot be had the session is
// not opened, and a call of one that is open is answered with a sentence. Calls of Vertex
// AI go to the provider's project and regions, whatever they say.
//
// From afar. Sessions that no socket reaches come in by a TCP listener, if there is one
// ([Listen]). It knows nothing but the tokens of such sessions that are open, and answers
// everybody else 401. Who can read a session's token where it runs can call its model
// until it ends.
package gateway
