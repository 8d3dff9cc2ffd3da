// Package slackui is Deckhand in Slack: it takes what Socket Mode delivers,
// commits it, acknowledges it, checks who sent it, and turns it into one of a
// handful of commands; and it shows what the agent does. The way of a message:
//
//	socket.go     envelope → inbox row, committed → acknowledged
//	route.go      inbox row → what it is → authorised → a command
//	authorise.go  the one function that every way in passes; access has the rules
//	commands.go   the one table of commands: stop, costs, grants, approve, deny, …
//	prompt.go     everything else that is said: work for the thread's session
//	clicks.go     buttons and modals; decide is where all ways to a decision meet
//	frontend.go   turns and marks → render → publish
//	cards.go      approvals → their card, read from the database → render → publish
//	outside.go    what is needed of the database and of Slack's Web API
//
// Questions about costs are answered by package costs, who people are is looked up by
// package directory. Rendering is package render (pure), sending is package publish
// (the one scheduler of outgoing calls). The package knows nothing of the CLI's process.
//
// Goroutines: [App.Run] owns the socket's supervision, the publisher, the keeper of
// the digests' schedule, one short-lived goroutine per envelope and one per card that
// is being read, and waits for all of them.
//
// Security. Slack signs nothing on the socket: the app token is the root of
// trust, so Run pins team and app ids and refuses another team's envelopes. A
// button carries an unguessable id and nothing else; what it decides about is
// read from Postgres, and the person is looked up again at every click.
package slackui
