// Package judge looks at a workspace after a history of accidents, from outside, and
// says what people were promised and did not get. It is the checker of `make chaos`.
//
// It knows nothing of the bot's code. What it reads is what others keep: the messages of
// the playground's Slack as they stand, what the model was asked and what it bills, the
// lines that each tool that ran has written, the rows of Postgres by SQL of its own, the
// branches of the project's repository, and the process table. [Scan] reads them into
// [Evidence]; [Evidence.Judge] compares them and needs nothing else, so that a test can
// change evidence and see what the judge says of it.
//
// A post says itself what is expected of it, in the directives that the scripted model
// follows:
//
//	@deckhand tool: Bash {"command":"/dir/run.sh ask t0007-1 2"}
//	say: answer-0007
//
// run.sh writes a line when it begins and one when it has ended; its verbs are
//
//	ask     a person decides about it
//	free    a rule allows it
//	commit  a rule allows it; it commits its id to the thread's branch
//	loose   a rule allows it; it writes its id into a file that is not committed
//	look    a rule allows it; it writes down which ids of both kinds it finds
package judge
