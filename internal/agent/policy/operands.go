package policy

import (
	"slices"
	"strings"
)

// finish gives the operands their roles, and adds what is read implicitly.
func (r *wordReader) finish() {
	b := r.block
	if b.after != nil {
		r.assign(b.operands, r.operands)
		r.assign(b.after, r.after)
	} else {
		r.assign(b.operands, append(r.operands, r.after...))
	}
	if o, n := b.operands, len(r.operands)+len(r.after); o != nil && len(o.uses) > 0 {
		switch first := o.uses[0].role; {
		case first == roleExec && o.rest != 0 && !r.instead && n == 0:
			r.unknown(0, r.name+" alone does more than a rule for its arguments says")
		case first == roleMoved && n == 1:
			r.unknown(0, r.name+" with one name makes another of it in the folder that it is run in") // and mv does nothing
		}
	}
	r.revisions()
	r.listings()
	if r.pathNamed && !r.vague && !(r.shows == roleHistory && r.others) {
		return
	}
	switch {
	case r.shows != roleNone:
		r.parts = append(r.parts, part{words: r.by, path: ".", role: r.shows})
	case b.fallback != roleNone && b.showsContent() && r.names: // of files, no more than their names
	case b.fallback != roleNone:
		r.parts = append(r.parts, part{path: ".", role: r.inMode(b.fallback, r.mode), every: b.fallback == roleTree && r.mode == roleTree})
	case r.mode == roleTree || r.mode == roleFollow || r.mode == roleFormat:
		r.parts = append(r.parts, part{path: ".", role: r.mode, every: b.operands != nil && slices.ContainsFunc(b.operands.uses, func(u use) bool { return u.role == roleRead })})
	}
}

// listings adds the folders whose names wildcards show, whatever the program does: echo ../* is like ls .. .
func (r *wordReader) listings() {
	seen := map[string]bool{}
	for i, w := range r.args {
		at := strings.LastIndexByte(strings.TrimRight(w.text, "/"), '/')
		if !w.listed || at < 0 {
			continue
		}
		if dir := w.text[:at+1]; !seen[dir] {
			seen[dir] = true
			r.parts = append(r.parts, part{words: []int{i}, path: dir, role: roleStat})
		}
	}
}

// showsContent reports whether a git subcommand shows content by itself.
func (b *block) showsContent() bool {
	return b.fallback == roleTracked || b.fallback == roleHistory
}

// revisions decides what git shows for a revision: everything in it, or what lay at the named paths.
func (r *wordReader) revisions() {
	if r.block.showsContent() && (r.shows != roleNone || !r.names) && r.shows != roleHistory {
		r.shows, r.by = r.block.fallback, nil
	}
	past := len(r.operands) > 0 && slices.ContainsFunc(r.parts, func(p part) bool { return p.role == roleRev })
	for i := range r.parts {
		switch p := &r.parts[i]; {
		case p.role == roleRev && (r.shows == roleNone || len(r.after) > 0):
			p.role = roleTree
		case p.role == roleRev:
			p.shows = r.shows
		case p.role == roleTree && r.shows != roleNone && !p.exact:
			p.role = r.shows
			if past {
				p.role = roleHistory
			}
		}
	}
}

// assign gives operands the roles of a shape.
func (r *wordReader) assign(s *operands, list []int) {
	if s == nil {
		if len(list) > 0 {
			r.unknownFrom(list[0], "nothing is known of "+r.args[list[0]].text+" as an operand of "+r.name)
		}
		return
	}
	uses, rest := s.uses, s.rest
	if r.instead && len(uses) > 0 && rest != 0 {
		uses, rest = uses[1:], max(rest-1, -1)
	}
	roles := make([][]use, len(list))
	for k := range list {
		if u, ok := nth(uses, rest, k, len(list)); ok {
			roles[k] = []use{u}
		}
		if r.vague {
			roles[k] = s.uses
		}
	}
	r.sameForWildcards(list, roles)
	for k, i := range list {
		if len(roles[k]) == 0 {
			r.unknown(i, "nothing is known of "+r.args[i].text+" as an operand of "+r.name)
		}
		for _, u := range roles[k] {
			r.operandUse(u, list, i)
		}
	}
}

// nth is the role of operand k of n.
func nth(uses []use, rest, k, n int) (use, bool) {
	switch {
	case rest < 0:
		if k < len(uses) {
			return uses[k], true
		}
		return use{}, false
	case k < rest:
		return uses[k], true
	case n-k <= len(uses)-1-rest: // of the last ones
		return uses[len(uses)-(n-k)], true
	}
	return uses[rest], true
}

// sameForWildcards gives all words from one wildcard the roles of all of them: their order and number vary.
func (r *wordReader) sameForWildcards(list []int, roles [][]use) {
	for k := 0; k < len(list); {
		source, end, all := r.args[list[k]].source, k+1, roles[k]
		for ; source != 0 && end < len(list) && r.args[list[end]].source == source; end++ {
			for _, u := range roles[end] {
				if !slices.ContainsFunc(all, func(x use) bool { return x.role == u.role }) {
					all = append(slices.Clip(all), u)
				}
			}
		}
		for ; k < end; k++ {
			roles[k] = all
		}
	}
}

func (r *wordReader) operandUse(u use, list []int, i int) {
	text := r.args[i].text
	if r.block.first && strings.HasPrefix(text, "-") && len(text) > 1 && !r.ended && u.role != roleText && u.role != roleArgument {
		r.unknown(i, "the option "+text+" comes after an operand, where "+r.name+" may read it in two ways")
		return
	}
	before := len(r.parts)
	r.judge(u, i, text, r.mode)
	if r.may != roleNone {
		r.judge(u, i, text, r.may)
	}
	if slices.Contains([]string{"zip", "unzip", "zipinfo"}, r.name) { // they add a missing extension
		for _, end := range []string{".zip", ".ZIP"} {
			r.judge(u, i, text+end, r.mode)
			if r.name == "zip" {
				r.file(i, text+end, roleWrite)
			}
		}
	}
	for k := before; k < len(r.parts); k++ {
		r.pathNamed = true
		if r.parts[k].role == roleInto {
			for _, o := range list {
				if o != i {
					r.parts[k].from = append(r.parts[k].from, o)
				}
			}
		}
	}
}

func (r *wordReader) effects(list []effect, words []int) {
	for _, e := range list {
		switch e.kind {
		case effectCode:
			r.code = true
			if p := &r.prog.block; p.first && p.operands != nil && p.operands.uses[0].role == roleExec && len(words) > 1 {
				r.demands = append(r.demands, demand{words, r.name + " runs code of the workspace", false})
			}
		case effectLinks:
			r.links = true
		case effectAsk:
			r.unknown(0, r.name+" may do more than its words say")
			r.stranger(words[len(words)-1] + 1)
		case effectFetch:
			r.demands = append(r.demands, demand{words, r.name + " reaches out to the network", true})
		case effectForeign:
			r.demands = append(r.demands, demand{words, r.name + " can fetch and run what the workspace does not hold", true})
		case effectEnviron:
			r.demands = append(r.demands, demand{words, r.name + " shows the environment", true})
		default:
			if (e.role == roleTracked || e.role == roleHistory) && r.shows < e.role {
				r.shows, r.by = e.role, words
			} else if e.role != roleTracked && e.role != roleHistory {
				r.parts = append(r.parts, part{words: words, path: e.path, role: e.role, every: e.role == roleTree})
			}
		}
	}
}
