// Package chat is what the bot is in any chat: it commits what was delivered, checks who sent it,
// turns it into one of a handful of commands, and has answers shown. It knows no Slack: whoever is
// the chat program implements [Screen] and [People], hands in what people do as [Incoming], and
// shows the values of package view. The way of a message:
//
//	take.go       what was delivered → inbox row, committed → acknowledged
//	route.go      inbox row → what it is → authorised → a command
//	authorise.go  the one function that every way in passes; access has the rules
//	commands.go   the one table of commands: stop, costs, grants, approve, deny, …
//	actions.go    the one table of buttons and forms
//	prompt.go     everything else that is said: work for the thread's session
//	decide.go     decide is where all ways to a decision about one request meet
//	batch.go      a decision about several of a card, which does without decide
//	waiting.go    what waits in the inbox, tried again
//	frontend.go   what the agent shows: turns go to the screen, the rest as it stands in the database
//	posts.go      what is posted once and edited: cards.go, queueposts.go, places.go, budgetposts.go, pulls.go
//	outbox.go     what people must see and may not have seen; rows.go how each row is shown
//	cursor.go     up to when no message was missed; scans.go and found.go find those that were
//
// Each area (decisions, budgets, steering, …) is a small type that embeds the [Chat]; chat.go lists them.
//
// Goroutines: [Chat.Run] owns those that keep the inbox, the cursor and people's own pages going,
// [Chat.KeepShowing] one for each thing that is being read to be shown again. [Chat.Wait] waits for what is acted
// on, and [Outbox.Close] for what is being sent.
//
// Security. A button carries an unguessable id and nothing else; what it decides about is read
// from the database, and the person is looked up again at every click.
package chat
