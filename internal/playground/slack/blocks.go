package slack

import (
	"fmt"
	"slices"
	"strings"
)

// surface is where blocks are shown; it decides which ones may be and how many.
type surface int

const (
	surfaceMessage surface = iota
	surfaceModal
	surfaceHome
	surfaceStream
)

// Limits of Block Kit, in characters and items.
const (
	maxMessageBlocks = 50
	maxViewBlocks    = 100
	maxSectionText   = 3000
	maxFieldText     = 2000
	maxFields        = 10
	maxHeaderText    = 150
	maxContext       = 10
	maxActions       = 25
	maxBlockID       = 255
	maxInputText     = 3000
	maxTableRows     = 100
	maxTableColumns  = 20

	// maxPlainBlocks bounds the text of all blocks except markdown, and
	// maxAllBlocks that of all together; both are reports from the field.
	maxPlainBlocks = 10000
	maxAllBlocks   = 13200
)

// problems collects what is wrong, in Slack's words, with a pointer to where.
type problems struct {
	list      []string
	fileKnown func(string) bool
	surface   surface
}

func (p *problems) add(at, what string) {
	p.list = append(p.list, what+" [json-pointer:"+at+"]")
}

func (p *problems) addf(at, format string, args ...any) { p.add(at, fmt.Sprintf(format, args...)) }

// only refuses fields that a type does not have.
func (p *problems) only(o object, at string, allowed ...string) {
	var extra []string
	for k := range o {
		if !slices.Contains(allowed, k) {
			extra = append(extra, k)
		}
	}
	slices.Sort(extra)
	for _, k := range extra {
		p.add(at, "invalid additional property: "+k)
	}
}

// object reads a field that must be an object; nil when it is not.
func (p *problems) object(v any, at string) object {
	o, ok := v.(object)
	if !ok {
		p.add(at, "must provide an object")
		return nil
	}
	return o
}

// items reads a field that must be an array of so many items; false when it is not.
func (p *problems) items(o object, at, key string, least, most int) ([]any, bool) {
	v, ok := o[key]
	if !ok || v == nil {
		if least > 0 {
			p.add(at, "missing required field: "+key)
		}
		return nil, false
	}
	list, ok := v.([]any)
	switch {
	case !ok:
		p.add(at+"/"+key, "must provide an array")
	case len(list) < least:
		p.addf(at+"/"+key, "no less than %d items allowed", least)
	case len(list) > most:
		p.addf(at+"/"+key, "no more than %d items allowed", most)
	default:
		return list, true
	}
	return nil, false
}

// length checks a field that must be a text of so many characters; the field is
// required when at least one is.
func (p *problems) length(o object, at, key string, least, most int) {
	v, ok := o[key]
	if !ok || v == nil {
		if least > 0 {
			p.add(at, "missing required field: "+key)
		}
		return
	}
	t, ok := v.(string)
	switch n := lengthOf(t); {
	case !ok:
		p.add(at+"/"+key, "must provide a string")
	case n < least:
		p.addf(at+"/"+key, "must be more than %d characters", least-1)
	case n > most:
		p.addf(at+"/"+key, "must be less than %d characters", most+1)
	}
}

// flags checks fields that must be truth values if they are there.
func (p *problems) flags(o object, at string, keys ...string) {
	for _, k := range keys {
		if v, ok := o[k]; ok {
			if _, ok := v.(bool); !ok {
				p.add(at+"/"+k, "must provide a boolean")
			}
		}
	}
}

// enum checks a field that must be one of a few texts if it is there.
func (p *problems) enum(o object, at, key string, values ...string) {
	if v, ok := o[key]; ok && !slices.Contains(values, text(v)) {
		p.add(at+"/"+key, "must be a valid enum value: "+strings.Join(values, ", "))
	}
}

// link checks a field that must be a web address if it is there.
func (p *problems) link(o object, at, key string, required bool) {
	least := 0
	if required {
		least = 1
	}
	p.length(o, at, key, least, 3000)
	if t, ok := o[key].(string); ok && t != "" && !strings.HasPrefix(t, "http://") && !strings.HasPrefix(t, "https://") && !strings.HasPrefix(t, "slack://") && !strings.HasPrefix(t, "mailto:") {
		p.add(at+"/"+key, "must provide a valid URL")
	}
}

// The kinds of text object that a field takes.
const (
	plainOnly = false
	anyText   = true
)

// textObject checks a text object of 1 to most characters.
func (p *problems) textObject(v any, at string, required bool, most int, mrkdwn bool) {
	if v == nil {
		if required {
			i := strings.LastIndexByte(at, '/')
			p.add(at[:i], "missing required field: "+at[i+1:])
		}
		return
	}
	q := &problems{}
	o := q.object(v, at)
	if o != nil {
		switch kind := text(o["type"]); {
		case kind == "plain_text":
			q.only(o, at, "type", "text", "emoji")
			q.flags(o, at, "emoji")
		case kind == "mrkdwn" && mrkdwn:
			q.only(o, at, "type", "text", "verbatim")
			q.flags(o, at, "verbatim")
		case o["type"] == nil:
			q.add(at, "missing required field: type")
		default:
			q.add(at+"/type", "unsupported type: "+kind)
		}
		q.length(o, at, "text", 1, most)
	}
	if len(q.list) > 0 && mrkdwn {
		p.add(at, "failed to match all allowed schemas")
	}
	p.list = append(p.list, q.list...)
}

// checkBlocks checks a list of blocks as Slack does. It returns them with the
// block and action ids that were left out, or what is wrong with them. fileKnown
// says whether a file id may be referred to.
func checkBlocks(list []any, on surface, at string, fileKnown func(string) bool) ([]any, []string) {
	p := &problems{fileKnown: fileKnown, surface: on}
	most := maxMessageBlocks
	if on == surfaceModal || on == surfaceHome {
		most = maxViewBlocks
	}
	if len(list) > most {
		p.addf(at, "no more than %d items allowed", most)
		return nil, p.list
	}
	out := make([]any, 0, len(list))
	ids := map[string]bool{}
	tables, markdown := 0, 0
	for i, raw := range list {
		here := fmt.Sprintf("%s/%d", at, i)
		b := p.object(raw, here)
		if b == nil {
			continue
		}
		b = p.block(b, here)
		if b == nil {
			continue
		}
		id := text(b["block_id"])
		if ids[id] {
			p.add(here+"/block_id", "`block_id` "+id+" is already in use")
		}
		ids[id] = true
		switch b["type"] {
		case "table", "data_table":
			tables++
		case "markdown":
			markdown += lengthOf(text(b["text"]))
		}
		out = append(out, b)
	}
	if tables > 1 {
		p.add(at, "only_one_table_allowed")
	}
	if markdown > maxMarkdownText {
		p.addf(at, "markdown text of all blocks must be less than %d characters", maxMarkdownText+1)
	}
	if len(p.list) > 0 {
		return nil, p.list
	}
	return out, nil
}

// blockCheck finds the check of a type of block, which gets a copy whose ids are
// complete; nil if there is no such type.
func blockCheck(kind string) func(*problems, object, string) {
	switch kind {
	case "section":
		return (*problems).section
	case "context":
		return (*problems).context
	case "actions":
		return (*problems).actions
	case "divider":
		return func(p *problems, b object, at string) { p.only(b, at, "type", "block_id") }
	case "header":
		return (*problems).header
	case "image":
		return (*problems).imageBlock
	case "input":
		return (*problems).input
	case "rich_text":
		return (*problems).richText
	case "markdown":
		return (*problems).markdown
	case "table":
		return (*problems).table
	case "task_card":
		return (*problems).taskCard
	case "plan":
		return (*problems).plan
	case "data_visualization":
		return (*problems).chart
	case "video":
		return (*problems).video
	case "file":
		return (*problems).fileBlock
	case "context_actions":
		return (*problems).contextActions
	case "alert":
		return (*problems).alert
	case "card":
		return (*problems).card
	case "carousel":
		return (*problems).carousel
	case "container":
		return (*problems).container
	case "data_table":
		return (*problems).dataTable
	default:
		return nil
	}
}

// The types that only some surfaces take.
var (
	notInMessages = []string{"alert", "card", "carousel"} // these come by streams
	notInViews    = []string{"markdown", "table", "file", "task_card", "plan", "data_visualization", "data_table", "container", "context_actions"}
)

// block checks one block and returns a completed copy; nil if its type is unknown.
func (p *problems) block(b object, at string) object {
	kind := text(b["type"])
	check := blockCheck(kind)
	switch {
	case b["type"] == nil:
		p.add(at, "missing required field: type")
		return nil
	case check == nil,
		p.surface == surfaceMessage && slices.Contains(notInMessages, kind),
		(p.surface == surfaceModal || p.surface == surfaceHome) && slices.Contains(notInViews, kind):
		p.add(at+"/type", "unsupported type: "+kind)
		return nil
	}
	p.length(b, at, "block_id", 0, maxBlockID)
	b = clone(b)
	if text(b["block_id"]) == "" {
		b["block_id"] = newBlockID()
	}
	completeActionIDs(b)
	check(p, b, at)
	seen := map[string]bool{}
	eachElement([]any{b}, func(_ string, e object) {
		id := text(e["action_id"])
		if seen[id] {
			p.add(at, "`action_id` "+id+" is already in use in this block")
		}
		seen[id] = true
	})
	return b
}

// completeActionIDs gives a block's elements the action ids that they lack. The
// block is a copy already; its lists and elements are copied here.
func completeActionIDs(b object) {
	one := func(v any) any {
		e, ok := v.(object)
		if !ok {
			return v
		}
		if _, interactive := elementTypes[text(e["type"])]; !interactive || text(e["type"]) == "image" || text(e["action_id"]) != "" {
			return v
		}
		e = clone(e)
		e["action_id"] = newBlockID()
		return e
	}
	for _, k := range []string{"accessory", "element"} {
		if b[k] != nil {
			b[k] = one(b[k])
		}
	}
	for _, k := range []string{"elements", "actions"} {
		if list, ok := b[k].([]any); ok && b["type"] != "rich_text" && b["type"] != "carousel" {
			list = slices.Clone(list)
			for i := range list {
				list[i] = one(list[i])
			}
			b[k] = list
		}
	}
}

// blocksTooLong says whether all text of a message's blocks is more than Slack takes.
func blocksTooLong(blocks []any) bool {
	all := textSize(blocks)
	markdown := 0
	for _, raw := range blocks {
		if b, ok := raw.(object); ok && b["type"] == "markdown" {
			markdown += lengthOf(text(b["text"]))
		}
	}
	return all > maxAllBlocks || all-markdown > maxPlainBlocks
}

// textSize counts the characters of all texts in blocks.
func textSize(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n += textSize(x)
		}
	case object:
		for k, x := range v {
			if t, ok := x.(string); ok {
				if k == "text" || k == "title" || k == "alt_text" {
					n += lengthOf(t)
				}
				continue
			}
			n += textSize(x)
		}
	}
	return n
}
