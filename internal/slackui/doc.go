// Package slackui is Deckhand in Slack: it takes what Socket Mode delivers and hands it to package
// chat, shows what that says, and shows what the agent does.
//
//	socket.go     frames → decode.go → [chat.Chat.Take]
//	record.go     what people wrote, from Slack's own record
//	screen.go     what is told to people, and modals.go their windows: [chat.Screen]
//	frontend.go   turns and marks → render → publish
//	cards.go      approvals → their card, read from the database → render → publish
//	outside.go    what is needed of Slack's Web API
//
// Questions about costs are answered by package costs, who people are is looked up by
// package directory. Rendering is package render (pure), sending is package publish
// (the one scheduler of outgoing calls). The package knows nothing of the CLI's process.
//
// Goroutines: [App.Run] owns the socket's supervision, the publisher, the keeper of
// the digests' schedule, what package chat does, and one goroutine per card that
// is being read, and waits for all of them.
//
// Security. Slack signs nothing on the socket: the app token is the root of
// trust, so Run pins team and app ids and refuses another team's envelopes.
package slackui
