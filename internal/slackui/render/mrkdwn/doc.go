// Package mrkdwn makes text safe to show in Slack, whoever wrote it: a model, a tool,
// a repository or a person. Slack has three kinds of text, and each has its way in:
//
//   - mrkdwn, Slack's own markup: [Escape] and [Code] for text that is no markup,
//     [Convert] for CommonMark;
//   - markdown blocks, which take CommonMark: [Clean], which takes mentions, HTML,
//     images and links that pretend to lead elsewhere out of it;
//   - plain text: [Mute] and [Printable].
//
// [Reveal] shows what cannot be seen, for what people decide about. [Clip], [Prefix],
// [Cut] and [Tail] make a text fit, in the units that Slack counts, without breaking
// what they cut through.
//
// It is pure, knows nothing of turns and approvals, and makes no blocks: that is
// package render's. A text must be redacted before it comes here.
package mrkdwn
