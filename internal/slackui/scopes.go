package slackui

import (
	"slices"
	"strings"
)

// use is what one bot scope is asked for: the methods of the Web API that are called
// with it, the events that come by it, and the features of the manifest that take it.
type use struct {
	scope string // empty for what takes none
	what  string // does not work without it
	// methods, events and features are separated by blanks. A method that takes
	// another scope for each kind of conversation is in more than one row.
	methods, events, features string
}

// uses is everything of Slack's that the app uses, and the bot scope that it takes by
// Slack's documentation. deploy/slack-manifest.yaml asks for these scopes and events and
// no others, and the doctor compares them with what was granted: a call without a row, and
// a row without a call, fail a test.
var uses = []use{
	{
		what: "the tokens, modals and the home tab", methods: "auth.test apps.connections.open views.open views.update views.publish",
		events: "app_home_opened",
	},
	{scope: "app_mentions:read", what: "mentions", events: "app_mention"},
	// Slack adds it to every app that is declared as an agent.
	{scope: "assistant:write", what: "Slack's view for agents, with its suggestions and Stop button", methods: "assistant.threads.setSuggestedPrompts assistant.threads.setTitle", events: "agent_session_stopped assistant_thread_started", features: "agent_view"},
	{scope: "channels:history", what: "messages in threads of public channels", methods: "conversations.history conversations.replies", events: "message.channels"},
	{scope: "channels:read", what: "whether a public channel is shared with another company", methods: "conversations.info conversations.list"},
	{scope: "chat:write", what: "answers, approval cards and what goes on in a thread", methods: "chat.postMessage chat.startStream chat.appendStream chat.stopStream chat.update chat.delete chat.postEphemeral agents.sessions.setStatus assistant.threads.setStatus"},
	{scope: "commands", what: "/deckhand and the shortcuts", features: "shortcuts slash_commands"},
	{scope: "files:read", what: "files that people attach", methods: "files.info"},
	{scope: "files:write", what: "long results, charts and CSV as files", methods: "files.getUploadURLExternal files.completeUploadExternal"},
	{scope: "groups:history", what: "messages in threads of private channels", methods: "conversations.history conversations.replies", events: "message.groups"},
	{scope: "groups:read", what: "whether a private channel is shared with another company, and who is in it", methods: "conversations.info conversations.list users.conversations"},
	{scope: "im:history", what: "direct messages", methods: "conversations.history conversations.replies", events: "message.im"},
	{scope: "im:read", what: "direct messages that were sent while nobody listened", methods: "users.conversations"},
	{scope: "im:write", what: "requests and reports by direct message, each sent once", methods: "conversations.open"},
	{scope: "reactions:read", what: "emojis that the team has given a meaning", events: "reaction_added"},
	{scope: "reactions:write", what: "👀, ⏳, ✅ and ⚠️ on a message: how far it is", methods: "reactions.add reactions.remove"},
	{scope: "usergroups:read", what: "who is in a group that may approve", methods: "usergroups.list usergroups.users.list"},
	{scope: "users:read", what: "who is a guest", methods: "users.info users.list"},
	{scope: "users:read.email", what: "whose account at the forge is whose, and the address in commits"},
}

// Scopes compares the bot token's scopes with those that the app uses. missing says of
// each what does not work without it; superfluous are asked for by nothing here. known is
// false where Slack did not tell.
func (w *Workspace) Scopes() (missing, superfluous []string, known bool) {
	asked := map[string]bool{}
	for _, u := range uses {
		asked[u.scope] = true
		if u.scope != "" && !slices.Contains(w.scopes, u.scope) {
			missing = append(missing, u.scope+" (for "+u.what+")")
		}
	}
	for _, scope := range w.scopes {
		if !asked[scope] {
			superfluous = append(superfluous, scope)
		}
	}
	return missing, superfluous, w.scopes != nil
}

// grantedScopes reads the header of auth.test that tells a token's scopes; nil where
// there is none.
func grantedScopes(header string) (scopes []string) {
	for scope := range strings.SplitSeq(header, ",") {
		if scope = strings.TrimSpace(scope); scope != "" {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}
