package slack

import (
	"regexp"
	"strings"
)

// mention is what people type that becomes a link: @name, #channel, and links
// that are in Slack's form already.
var mention = regexp.MustCompile(`<(?:@U|@W|#C|#G|!subteam\^S)[A-Z0-9]+(?:\|[^<>]*)?>|<!(?:here|channel|everyone)>|[@#][\p{L}\p{N}][\p{L}\p{N}._-]*(?: \p{Lu}[\p{L}\p{N}]*)?|https?://[^\s<>|]+`)

// escaper does what Slack's composer does to what people type.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// composed turns what a person typed into a message's text: names become
// mentions, addresses become links, and the three special characters entities.
func (s *Server) composed(typed string) string {
	var b strings.Builder
	at := 0
	for _, hit := range mention.FindAllStringIndex(typed, -1) {
		if hit[0] > 0 && wordBefore(typed[:hit[0]]) && typed[hit[0]] != '<' {
			continue // an e-mail address, or a # in the middle of a word
		}
		link, used := s.linked(typed[hit[0]:hit[1]])
		if used == 0 {
			continue
		}
		b.WriteString(escaper.Replace(typed[at:hit[0]]))
		b.WriteString(link)
		at = hit[0] + used
	}
	b.WriteString(escaper.Replace(typed[at:]))
	return b.String()
}

func wordBefore(t string) bool {
	last := t[len(t)-1]
	return last >= '0' && last <= '9' || last >= 'a' && last <= 'z' || last >= 'A' && last <= 'Z' || last == '_' || last == '/'
}

// linked resolves one candidate. It returns the link and how many bytes of the
// candidate it stands for; 0 when it is nobody's name.
func (s *Server) linked(hit string) (string, int) {
	switch {
	case strings.HasPrefix(hit, "<!"):
		return hit, len(hit)
	case hit[0] == '<':
		id := strings.TrimLeft(hit, "<@#!subteam^")
		id = strings.TrimSuffix(id, ">")
		id, _, _ = strings.Cut(id, "|")
		if s.ws.user(id) == nil && s.ws.channel(id) == nil && s.ws.group(id) == nil {
			return "", 0
		}
		return hit, len(hit)
	case strings.HasPrefix(hit, "http"):
		end := strings.TrimRight(hit, ".,;:!?)'\"*_~`")
		return "<" + strings.ReplaceAll(end, "&", "&amp;") + ">", len(end)
	}
	// A name may have a second word ("@Ada Admin"); a full stop after it is not
	// part of it.
	for name := hit[1:]; name != ""; {
		if link := s.named(hit[0], name); link != "" {
			return link, len(name) + 1
		}
		cut := strings.TrimRight(name, "._-")
		if cut == name {
			i := strings.LastIndexByte(name, ' ')
			if i < 0 {
				break
			}
			cut = name[:i]
		}
		name = cut
	}
	return "", 0
}

func (s *Server) named(sign byte, name string) string {
	if sign == '#' {
		if c := s.ws.channelNamed(strings.ToLower(name)); c != nil {
			return "<#" + c.ID + "|" + c.Name + ">"
		}
		return ""
	}
	switch strings.ToLower(name) {
	case "here", "channel", "everyone":
		return "<!" + strings.ToLower(name) + ">"
	}
	for _, u := range s.ws.Users {
		first, _, _ := strings.Cut(u.RealName, " ")
		if strings.EqualFold(name, u.Name) || strings.EqualFold(name, u.RealName) || strings.EqualFold(name, first) || name == u.ID {
			return "<@" + u.ID + ">"
		}
	}
	for _, g := range s.ws.Groups {
		if strings.EqualFold(name, g.Handle) {
			return "<!subteam^" + g.ID + "|@" + g.Handle + ">"
		}
	}
	return ""
}

// richPiece finds what becomes an element of its own in a person's message.
var richPiece = regexp.MustCompile("(?s)```\n?(.*?)```|`([^`\n]+)`|<([^<>]+)>")

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// composedBlocks is the rich_text block that Slack's client sends with a text.
func composedBlocks(t string) []any {
	if t == "" {
		return nil
	}
	var sections, line []any
	flush := func() {
		if len(line) > 0 {
			sections = append(sections, object{"type": "rich_text_section", "elements": line})
			line = nil
		}
	}
	plain := func(part string) {
		if part != "" {
			line = append(line, object{"type": "text", "text": unescaper.Replace(part)})
		}
	}
	at := 0
	for _, hit := range richPiece.FindAllStringSubmatchIndex(t, -1) {
		plain(t[at:hit[0]])
		at = hit[1]
		switch {
		case hit[2] >= 0:
			flush()
			if code := unescaper.Replace(strings.TrimSuffix(t[hit[2]:hit[3]], "\n")); code != "" {
				sections = append(sections, object{"type": "rich_text_preformatted", "border": 0, "elements": []any{object{"type": "text", "text": code}}})
			}
		case hit[4] >= 0:
			line = append(line, object{"type": "text", "text": unescaper.Replace(t[hit[4]:hit[5]]), "style": object{"code": true}})
		default:
			line = append(line, richLink(t[hit[6]:hit[7]]))
		}
	}
	plain(t[at:])
	flush()
	return []any{object{"type": "rich_text", "block_id": newBlockID(), "elements": sections}}
}

// richLink is the element for what stands between < and >.
func richLink(inner string) object {
	target, label, _ := strings.Cut(inner, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		return object{"type": "user", "user_id": target[1:]}
	case strings.HasPrefix(target, "#"):
		return object{"type": "channel", "channel_id": target[1:]}
	case strings.HasPrefix(target, "!subteam^"):
		return object{"type": "usergroup", "usergroup_id": strings.TrimPrefix(target, "!subteam^")}
	case strings.HasPrefix(target, "!"):
		return object{"type": "broadcast", "range": target[1:]}
	}
	o := object{"type": "link", "url": unescaper.Replace(target)}
	if label != "" {
		o["text"] = unescaper.Replace(label)
	}
	return o
}
