// Package model is a stand-in for Anthropic's Messages API: it answers the
// real Claude Code CLI from scripts, with no account and no network.
//
// It serves POST /v1/messages (streamed and not) and /v1/messages/count_tokens
// in Anthropic's shapes, byte for byte where clients look, and keeps a [Bill]:
// what every session's calls cost, in tokens and micro-USD, by the list prices
// that the CLI itself uses, so that the bill and the CLI's total_cost_usd
// agree to the micro-dollar. It is no proxy, no emulator of a model's mind,
// and knows nothing of Slack or of the bot.
//
// The package owns no goroutines. Every call is answered in the goroutine that
// serves it and ends when its client leaves; whoever runs the HTTP server
// waits for them.
//
// # What is answered
//
// The model looks at the latest message that a person wrote: text that is not
// a tool result, a reminder or a note of the CLI. In this order:
//
//  1. Calls that the CLI makes for itself (titles, summaries, probes, web
//     searches) get a fitting short answer.
//  2. Directives in the message are followed, see below.
//  3. The first script that matches the message decides, in the order of the
//     file names.
//  4. Anything else is echoed in a sentence: You said: “…”, with the pictures and
//     documents that arrived beside it.
//
// Which step comes next is read from the conversation alone: the number of
// rounds of tool calls since that message, and their results. So a session can
// be resumed by another process, and a request can be repeated. A message that
// a person adds while a turn runs is answered in the same turn, after the
// first. A note such as "continue where you left off", after a turn that was
// cut short, goes on with the message before it.
//
// # Directives
//
// A message may hold lines that say exactly what to do, one per line, between
// any other text, and after a speaker or a mention ("[Alice in #general]: ",
// "@deckhand "):
//
//	tool: NAME {json}    call this tool; the JSON may go on over several lines
//	tools: [{"name": NAME, "input": {json}}, …]    several in one response
//	say: TEXT            say TEXT; in the same call as a tool that follows
//	say_json: "TEXT"     the same, TEXT being a JSON string (for line breaks)
//	fill: N              say N characters of filler
//	think: TEXT          think TEXT, as a thinking block
//	slow: N              stream at N characters a second, from here on; the
//	                     first one counts for what stands before it, too
//	usage: {json}        the token usage of the call it stands in
//	error: STATUS        answer this call with an API error first, once; the
//	                     CLI tries again and gets the answer
//
// They are followed in order, one model call for each tool or tools line. After
// the last tool what is left to say is said, or a closing sentence. In tool
// inputs {{cwd}} and {{plan_file}} are replaced as in scripts.
//
// # Scripts
//
// A script is a YAML file:
//
//	about: what it is for
//	match:                      # any of them, tried on the message
//	  regexp: ['(?i)\bfix\b']
//	  contains: ["some words"]  # not case sensitive
//	pace: 400                   # characters a second, for all its steps
//	steps:                      # one per model call
//	  - thinking: …             # all optional, but a step must do something
//	    say: …
//	    tool: Bash              # one tool, or …
//	    input: {command: npm test}
//	    tools:                  # … several in one call
//	      - {name: Read, input: {file_path: "{{cwd}}/README.md"}}
//	  - when: {denied: true}    # skipped unless the last results fit
//	    say: You said no ({{denial}}), so I stop here.
//
// Steps are taken from the top, one for each round of tool calls; a step whose
// condition does not fit is skipped, and one without a tool ends the turn.
// After a step with a tool comes the one below it, or the one whose label it
// names as next. A condition (when) may name, all of which must hold:
//
//	denied                 a call was refused by a person or a rule
//	failed                 a tool ran and failed (a command's exit code, too)
//	tool_result_contains, tool_result_lacks    plain text
//	tool_result_matches    a regular expression
//	plan_mode              the session is in plan mode
//
// In texts and inputs these are replaced: {{cwd}} (the CLI's working
// directory), {{plan_file}}, {{message}}, {{match.1}} (a group of the matching
// expression), {{result}} (the last results) and {{denial}} (the reason a
// person gave).
package model
