// Package ask knows what is asked about a turn's tool calls, and what becomes of them: the
// terms of a request, the words in which the model is told of an answer, inputs that people
// have changed, what a push would bring to the forge, the calls that run and the hosts that
// their programs want to reach. It decides about nothing by itself and has no goroutine: the
// worker of package agent asks the policy and people, and commits what they decide.
package ask
