package report

import (
	"regexp"
	"slices"
	"strings"
)

// name reads a noun with the name that follows it, or what "this project" and the like
// mean where it is said.
func (r *reading) name(words []word, before string) int {
	w := low(words, 0)
	if (thises[w] || w == "the") && len(words) > 1 {
		next := low(words, 1)
		switch {
		case here[next]:
			r.whose = true
			if r.q.ThreadID = r.o.ThreadID; r.o.ThreadID == 0 {
				r.complain("I do not know which thread “this thread” is: ask in the thread itself, in a message that mentions me.")
			}
			return 2
		case thises[w] && nouns[next] == "project" && r.o.Project != "":
			r.q.Projects, r.whose = append(r.q.Projects, r.o.Project), true
			return 2
		case thises[w] && nouns[next] == "channel" && r.o.Channel != "":
			r.q.Channels, r.whose = append(r.q.Channels, r.o.Channel), true
			return 2
		}
	}
	noun := nouns[w]
	if noun == "" || len(words) < 2 || byWords[before] {
		return 0
	}
	n := 0
	switch name := words[1]; noun {
	case "project":
		if p, ok := r.project(name); ok || r.o.Projects == nil {
			r.q.Projects, n = append(r.q.Projects, p), 2
		} else if name.low == "" || r.means(words[1:]) {
			return 0
		} else {
			r.noSuch(noun, name, r.o.Projects)
			n = 2
		}
	case "team":
		if projects := r.team(name); len(projects) > 0 {
			r.q.Projects, n = append(r.q.Projects, projects...), 2
		} else if len(r.o.Teams) == 0 || name.low == "" || r.means(words[1:]) {
			return 0
		} else {
			r.noSuch(noun, name, r.o.teamNames())
			n = 2
		}
	case "model":
		if ids, took := r.models(words[1:]); took > 0 {
			r.q.Models, n = append(r.q.Models, ids...), 1+took
		} else if r.o.Models == nil {
			r.q.Models, n = append(r.q.Models, name.raw), 2
		}
	case "user":
		if userID.MatchString(name.raw) {
			r.q.Users, n = append(r.q.Users, name.raw), 2
		}
	case "channel":
		if channelID.MatchString(name.raw) {
			r.q.Channels, n = append(r.q.Channels, name.raw), 2
		}
	}
	r.whose = r.whose || n > 0
	return n
}

var (
	userID    = regexp.MustCompile(`^[UW][A-Z0-9]+$`)
	channelID = regexp.MustCompile(`^[CGD][A-Z0-9]+$`)
	digit     = regexp.MustCompile(`[0-9]`)
)

// bare reads a name that no noun stands before, if there is one thing it can be.
func (r *reading) bare(words []word) int {
	w := words[0]
	if p, ok := r.project(w); ok {
		r.q.Projects, r.whose = append(r.q.Projects, p), true
		return r.withNoun(words, 1, "project")
	}
	if ids, n := r.models(words); n > 0 && !digit.MatchString(w.raw[:1]) {
		r.q.Models, r.whose = append(r.q.Models, ids...), true
		return r.withNoun(words, n, "model")
	}
	switch {
	case w.low == "" || len(w.raw) < 6 || !digit.MatchString(w.raw):
		return 0
	case userID.MatchString(w.raw):
		r.q.Users = append(r.q.Users, w.raw)
	case channelID.MatchString(w.raw):
		r.q.Channels = append(r.q.Channels, w.raw)
	default:
		return 0
	}
	r.whose = true
	return 1
}

// withNoun is the number of words of a name of n words with the noun behind it: "the web project".
func (r *reading) withNoun(words []word, n int, noun string) int {
	if nouns[low(words, n)] == noun && (len(words) == n+1 || r.means(words[n+1:])) {
		n++
	}
	return n
}

// noSuch complains of a name that is none.
func (r *reading) noSuch(noun string, w word, names []string) {
	sentence := "There is no " + noun + " “" + clip(w.raw) + "”."
	switch {
	case len(names) == 0:
	case len(names) <= 8:
		sentence += " There is " + strings.Join(names, ", ") + "."
	default:
		sentence += " There is " + strings.Join(names[:8], ", ") + " and more."
	}
	r.complain(sentence)
	r.unknown, r.at = append(r.unknown, w.raw), append(r.at, r.i+1)
}

// project finds the project that a word names.
func (r *reading) project(w word) (string, bool) {
	if slices.Contains(r.o.Projects, w.raw) {
		return w.raw, true
	}
	if i := slices.IndexFunc(r.o.Projects, func(name string) bool { return strings.EqualFold(name, w.raw) }); i >= 0 {
		return r.o.Projects[i], true
	}
	return w.raw, false
}

// models finds the models that the words name: one id, or all that the words are a part
// of the name of ("opus", "sonnet 4.5").
func (r *reading) models(words []word) (ids []string, n int) {
	if slices.Contains(r.o.Models, words[0].raw) {
		return []string{words[0].raw}, 1
	}
	for n := min(4, len(words)); n > 0; n-- {
		var said []string
		for _, w := range words[:n] {
			said = append(said, modelParts(w.raw)...)
		}
		for _, id := range r.o.Models {
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
	for i := range list {
		if len(parts) > 0 && len(list)-i >= len(parts) && slices.Equal(list[i:i+len(parts)], parts) {
			return true
		}
	}
	return false
}
