package render

import (
	"deckhand/internal/plaintext"
	"deckhand/internal/store/approvals"
)

// retold shows how what the model is told of a tool has changed since it was allowed, each text
// in about most units from where they differ on.
func (c *card) retold(most int) {
	change := c.a.ToolChange
	if change == nil {
		return
	}
	before, now := change.Before.Description, change.Now.Description
	if change.Before.Schema != change.Now.Schema {
		before, now = before+"\n"+change.Before.Schema, now+"\n"+change.Now.Schema
	}
	was, is := []rune(c.o.redact(before)), []rune(c.o.redact(now))
	same := 0
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	said := "⚠️ *What the model is told of this tool has changed since it was allowed.* Its server writes that. Before, and now:"
	if same == len(was) && same == len(is) {
		said = "⚠️ *What the model is told of this tool has changed since it was allowed*, behind its first 8 KiB, which are:"
	}
	if c.a.ToolSHA256 == (approvals.Sum{}) {
		said = "⚠️ *The model is told of this tool otherwise than was allowed*, in more ways than one or in ways that are not known. So it is asked each time. What was allowed, and what it is told now:"
	}
	c.section(said)
	c.add(preBlock(c.id(), textFrom(was, same, most)))
	c.add(preBlock(c.id(), textFrom(is, same, most)))
}

// textBefore is how many characters of a text stand before those that differ.
const textBefore = 80

// textFrom is a text from shortly before a place on, in about most units, which says what it leaves out.
func textFrom(text []rune, at, most int) string {
	out, from := "", 0
	if at > textBefore+20 {
		from = min(at, len(text)) - textBefore
		out = "(" + count(from) + " characters before)… "
	}
	rest := plaintext.Visible(string(text[from:]))
	if shown := plaintext.Prefix(rest, most); shown != rest {
		return out + shown + " …(" + count(runes(rest)-runes(shown)) + " more characters)"
	}
	return out + rest
}
