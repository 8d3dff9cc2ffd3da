// Package slackui is Deckhand in Slack: it takes what Socket Mode delivers and hands it to package
// chat, shows what that says, and the agent's turns.
//
//	socket.go     frames → decode.go → [chat.Chat.Take]
//	record.go     what people wrote, from Slack's own record
//	poster.go     what is told to people, posted and edited → render → publish
//	modals.go     their windows
//	turns.go      turns → render → publish; turncards.go cards, as parts of them
//	left.go       what a turn of a process that died has left
//	sessions.go   what Slack shows of an agent beside messages
//	outside.go    what is needed of Slack's Web API
//
// Each of these is a type that has the [poster]; together they are a [chat.Screen], see app.go.
//
// Questions about costs are answered by package costs, who people are is looked up by
// package directory. Rendering is package render (pure), sending is package publish
// (the one scheduler of outgoing calls). The package knows nothing of the CLI's process.
//
// Goroutines: [App.Run] owns the socket's supervision, the publisher, the keeper of
// the digests' schedule, and what package chat does, and waits for all of them.
//
// Security. Slack signs nothing on the socket: the app token is the root of
// trust, so Run pins team and app ids and refuses another team's envelopes.
package slackui
