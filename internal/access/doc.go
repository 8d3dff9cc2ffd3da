// Package access says who may do what, and where: the roles of deckhand.yaml, who is
// turned away whatever their role, what an approval's terms add, and what people may
// see of costs.
//
// It is pure. What it has to know of the world comes as [Facts], plain values; it looks
// nothing up, keeps nothing and knows neither Slack nor the database. Facts are dear,
// since each is a question to Slack, so an [Answer] asks for the one that it lacks:
//
//	request ──► Authorise ──► Need ──► look it up ──┐
//	               ▲  │                             │
//	               │  └─────► Allowed or Refusal    │
//	               └────────── facts + 1 ◄──────────┘
//
// What is not known is asked for; what could not be established is a fact with an error,
// and refuses. The zero values of rules, facts and answers let nobody in.
package access
