// Package mrkdwn makes text safe for Slack, whether from a model, a tool, a repository or a person. Slack has three
// kinds of text:
//
//   - mrkdwn, Slack's own markup: [Escape] and [Code] for plain text, [Convert] for CommonMark;
//   - markdown blocks, which accept CommonMark: [Clean] removes mentions, HTML, images and links with a disguised
//     target;
//   - plain text: [Mute] and [Printable].
//
// [Reveal] makes invisible characters visible, for what people decide about. [Clip], [Prefix], [Cut] and [Tail]
// shorten a text, in Slack's units, without breaking what they cut through.
//
// It is pure, knows nothing of turns and approvals, and makes no blocks; package render does. Texts must already be
// redacted.
package mrkdwn
