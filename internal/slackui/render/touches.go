package render

import (
	"encoding/json"
	"slices"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// touches says what a pending call would touch, as things were when it was asked, in about
// most units: what its words name, and what is not known.
func (c *asking) touches(most int) string {
	var p policy.Preview
	if !c.pending() || len(c.a.Touches) == 0 || json.Unmarshal(c.a.Touches, &p) != nil {
		return ""
	}
	if len(p.Touches) == 1 && view.Tools[c.a.ToolName].File { // the file that it names
		switch t := p.Touches[0]; {
		case t.Outside:
			return ""
		case t.Is == "new":
			return "New file"
		}
		return "Existing file, " + whatIs(p.Touches[0])
	}
	p.Unknown = slices.DeleteFunc(p.Unknown, func(u string) bool { return u == c.a.Terms.Because }) // which the card says
	var parts []string
	for _, t := range p.Touches {
		parts = append(parts, t.Verb+" "+mrkdwn.CodeWithin(c.o.redact(t.Path), 120)+" ("+whatIs(t)+")")
	}
	if p.More > 0 {
		parts = append(parts, plural(p.More, "more file or folder", "more files and folders"))
	}
	for _, h := range p.Hosts {
		parts = append(parts, "connects to "+mrkdwn.CodeWithin(c.o.redact(h), 120))
	}
	said, used := "", 0
	for i, part := range parts {
		if used += plaintext.Width(part) + 3; used > most && i > 0 {
			said += " · and " + count(len(parts)-i) + " more"
			break
		}
		said = joinNonEmpty(" · ", said, part)
	}
	if said != "" {
		said = "Touches, as named: " + said
	}
	return joinNonEmpty("\n", said, c.untold(p.Unknown, said != ""))
}

// untold says what cannot be told of a call before it runs; besides is of one of which
// something can be told.
func (c *asking) untold(list []string, besides bool) string {
	if len(list) == 0 {
		return ""
	}
	for i, u := range list {
		list[i] = mrkdwn.EscapeWithin(c.o.redact(plaintext.OneLine(u)), 150)
	}
	said := strings.Join(list, "; ")
	if besides {
		return "Other effects can't be predicted: " + said + "."
	}
	return "Effects can't be predicted: " + said + "."
}

// whatIs says what lies where something would be touched.
func whatIs(t policy.Touch) string {
	switch {
	case t.Outside:
		return "outside the workspace"
	case t.Is == "folder":
		files := plural(t.Files, "file", "files")
		if t.Over {
			files = "more than " + files
		}
		return "a folder, " + files + ", " + bytesOf(int(t.Bytes))
	case t.Is == "file":
		return bytesOf(int(t.Bytes))
	}
	return "not there yet"
}
