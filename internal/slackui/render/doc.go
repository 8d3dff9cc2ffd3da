// Package render turns what Deckhand knows into what people see in Slack: turns
// into messages, approvals into cards and what leads to a decision into forms,
// grants into lists, the ledger and the reports into tables.
//
// It is pure. Nothing in it reads a clock, a file or the network, holds state or
// starts a goroutine; the same value always renders the same. When something is
// shown, how often and in what order is package publish's business.
//
// Three rules hold for all of it:
//
//   - Text from a model, a tool, a repository or a person is never markup of ours.
//     It goes into rich_text and plain_text elements as it is, where Slack parses
//     nothing, into mrkdwn escaped, and into markdown blocks cleaned: mentions are
//     taken apart with a zero-width space (also in code, where they are exact),
//     raw HTML is escaped, images become links, and links that pretend to lead
//     elsewhere become text. The text is cleaned as a whole at each rendering, so
//     that a mention that arrives in two pieces is seen. Package mrkdwn does this.
//   - Nothing is cut silently. Where something does not fit it says how much is
//     missing, in characters, and where it is.
//   - Everything stays within Slack's limits, whatever comes in.
//
// Text must be redacted as a whole, before it is cut: that is why Options carries
// the redaction.
package render
