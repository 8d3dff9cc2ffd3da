// Package judge inspects a workspace after a history of accidents, from outside, and reports broken promises to
// people. It is the checker of `make chaos`.
//
// It knows nothing of the bot's code. It reads what others keep: the messages in the playground's Slack, what the
// model was asked and what it bills, the lines written by each tool that ran, the rows of Postgres by its own SQL,
// the branches of the project's repository, and the process table. [Scan] reads them into [Evidence];
// [Evidence.Judge] compares them and needs nothing else, so that a test can change evidence and check the verdict.
//
// A post itself says what is expected of it, in the directives for the scripted model:
//
//	@deckhand tool: Bash {"command":"/dir/run.sh ask t0007-1 2"}
//	say: answer-0007
//
// run.sh writes a line at its beginning and its end; its verbs are
//
//	ask     a person decides about it
//	free    a rule allows it
//	commit  a rule allows it; it commits its id to the thread's branch
//	loose   a rule allows it; it writes its id into a file that is not committed
//	sub     a rule allows it; a subagent runs it, which may fail where its post is answered
//	look    a rule allows it; it writes down which ids of both kinds it finds
package judge
