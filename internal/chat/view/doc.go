// Package view is what people are told and asked, as plain values: pages, forms and what the
// controls of both are called and say when they are used. It holds the one table of what is known
// of tools, too. Whoever is the chat shows the values as it can: package render does in Slack.
package view
