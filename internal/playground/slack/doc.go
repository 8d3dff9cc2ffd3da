// Package slack is a Slack workspace on loopback: the Web API, Socket Mode,
// response URLs and file transfer as an app sees them, and a control API
// through which tests, scripts and the playground's page act as the people.
//
// It is meant to be indistinguishable, for an app, from the real thing: slack-go
// and Slack's own Node SDK run against it unchanged. It keeps Slack's limits
// (blocks, text, rates, sizes), its error codes, its delivery rules (an
// acknowledgement within three seconds, retries of events but not of clicks, an
// envelope to any one of up to ten connections) and its lifetimes (trigger ids,
// streams, response URLs).
//
// It is not a general Slack emulator: one workspace, one app, no OAuth, no
// Events API over HTTP, no search, no admin methods. It knows nothing of the
// bot: it is the outside world.
//
// # Addresses
//
//	/api/METHOD    the Web API
//	/socket        Socket Mode, with the ticket of apps.connections.open
//	/files/…       uploads, downloads and avatars
//	/hooks/…       response URLs
//	/_control/…    the control API; only for Host headers that name loopback
//
// # Goroutines
//
// [Server] owns them all: a reader and a writer for each socket, one for each
// envelope that waits for its acknowledgement or its retry, one for each live
// events stream (its HTTP handler), one that writes the state file. [Server.Close]
// ends them and waits. One mutex guards the workspace; every Web API method and
// every control action runs under it and leaves it before anything is awaited.
package slack
