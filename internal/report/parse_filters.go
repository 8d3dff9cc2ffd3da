package report

import (
	"regexp"
	"slices"
	"strings"
)

// nouns are the words before a name.
var nouns = map[string]string{
	"project": "project", "projects": "project", "model": "model", "models": "model",
	"user": "user", "users": "user", "person": "user", "channel": "channel", "channels": "channel",
}

var (
	userID    = regexp.MustCompile(`^[UW][A-Z0-9]+$`)
	channelID = regexp.MustCompile(`^[CGD][A-Z0-9]+$`)
	digit     = regexp.MustCompile(`[0-9]`)
)

func (p *parser) entity() error {
	m := entity.FindStringSubmatch(p.words[p.i].raw)
	p.i++
	if m[1] == "@" {
		p.q.Users = append(p.q.Users, m[2])
	} else {
		p.q.Channels = append(p.q.Channels, m[2])
	}
	return nil
}

func (p *parser) self() error {
	if p.o.Asker == "" {
		return p.fail("I do not know who “" + p.word(0) + "” is here: name the person, as in “for <@U012AB3CD>”.")
	}
	p.q.Users = append(p.q.Users, p.o.Asker)
	p.i++
	return nil
}

func (p *parser) thisThread() error {
	if p.o.ThreadID == 0 {
		return p.fail("I do not know which thread “this thread” is: ask in the thread itself, in a message that mentions me.")
	}
	p.q.ThreadID = p.o.ThreadID
	p.i += 2
	return nil
}

// named reads the names after a noun: "project web", "projects web, api and shop".
func (p *parser) named(noun string) error {
	p.i++
	if p.i >= len(p.words) {
		return p.fail("Which " + noun + "? Write its name after the word “" + noun + "”.")
	}
	for {
		n, err := p.name(noun)
		if err != nil {
			return err
		}
		p.i += n
		next := p.i
		if next < len(p.words) && (p.word(0) == "and" || p.word(0) == "or") {
			next++
		} else if !p.words[p.i-1].comma {
			return nil
		}
		if next >= len(p.words) || p.starts(p.words[next:]) {
			return nil
		}
		p.i = next
	}
}

// name reads one name of a kind and gives the number of words that it took.
func (p *parser) name(noun string) (int, error) {
	w := p.words[p.i]
	switch noun {
	case "project":
		if name, ok := p.project(w); ok {
			p.q.Projects = append(p.q.Projects, name)
			return 1, nil
		}
		return 0, p.noSuch(noun, w, p.o.Projects)
	case "model":
		if ids, n := p.model(); n > 0 {
			p.q.Models = append(p.q.Models, ids...)
			return n, nil
		}
		return 0, p.noSuch(noun, w, p.o.Models)
	}
	if entity.MatchString(w.raw) {
		return 0, p.entity() // which has passed over it
	}
	id := w.bare()
	switch {
	case noun == "user" && userID.MatchString(id):
		p.q.Users = append(p.q.Users, id)
	case noun == "channel" && channelID.MatchString(id):
		p.q.Channels = append(p.q.Channels, id)
	default:
		return 0, p.noDirectory(w)
	}
	return 1, nil
}

// bare reads a name that no noun stands before, if there is one thing it can be.
func (p *parser) bare() error {
	w := p.words[p.i]
	id := w.bare()
	if name, ok := p.project(w); ok && p.o.Projects != nil {
		p.q.Projects = append(p.q.Projects, name)
		p.i++
		return nil
	}
	if ids, n := p.model(); n > 0 && p.o.Models != nil {
		p.q.Models = append(p.q.Models, ids...)
		p.i += n
		return nil
	}
	switch hasDigit := digit.MatchString(id); {
	case w.quoted:
	case hasDigit && len(id) >= 6 && userID.MatchString(id):
		p.q.Users = append(p.q.Users, id)
		p.i++
		return nil
	case hasDigit && len(id) >= 6 && channelID.MatchString(id):
		p.q.Channels = append(p.q.Channels, id)
		p.i++
		return nil
	}
	return p.unknown()
}

// project finds the project that a word names. If there is no list, it is believed.
func (p *parser) project(w word) (string, bool) {
	if p.o.Projects == nil {
		name := w.bare()
		return name, name != ""
	}
	for _, said := range []string{w.raw, w.bare()} {
		if i := slices.IndexFunc(p.o.Projects, func(name string) bool { return strings.EqualFold(name, said) }); i >= 0 {
			if j := slices.Index(p.o.Projects, said); j >= 0 {
				i = j
			}
			return p.o.Projects[i], true
		}
	}
	return "", false
}

// model finds the models that the words from here on name: one id, or all that the
// words are a part of the name of ("opus", "sonnet 4.5").
func (p *parser) model() (ids []string, n int) {
	w := p.words[p.i]
	if p.o.Models == nil {
		if id := w.bare(); id != "" {
			return []string{id}, 1
		}
		return nil, 0
	}
	for _, said := range []string{w.raw, w.bare()} {
		if slices.Contains(p.o.Models, said) {
			return []string{said}, 1
		}
	}
	for n := min(4, len(p.words)-p.i); n > 0; n-- {
		var said []string
		for _, w := range p.words[p.i : p.i+n] {
			said = append(said, modelParts(w.bare())...)
		}
		for _, id := range p.o.Models {
			if holds(modelParts(id), said) {
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 {
			return ids, n
		}
	}
	return nil, 0
}

// modelParts are the telling parts of a model's id: claude-sonnet-4-5-20250929 is
// sonnet, 4, 5.
func modelParts(id string) []string {
	var parts []string
	for part := range strings.FieldsFuncSeq(strings.ToLower(id), func(r rune) bool { return strings.ContainsRune("-._ []:/@", r) }) {
		if part != "claude" && (len(part) < 8 || !whole.MatchString(part)) {
			parts = append(parts, part)
		}
	}
	return parts
}

// holds reports whether the parts stand in the list, side by side.
func holds(list, parts []string) bool {
	if len(parts) == 0 {
		return false
	}
	for i := range list {
		if len(list)-i >= len(parts) && slices.Equal(list[i:i+len(parts)], parts) {
			return true
		}
	}
	return false
}
