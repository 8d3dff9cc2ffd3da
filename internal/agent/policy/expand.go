package policy

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// Bounds for expansion. Beyond them a call is asked.
const (
	maxExpanded = 128  // words of one command
	maxListed   = 4096 // names in the folders that wildcards look through
)

// expand expands a word as Bash does now: braces to words, wildcards to file names, or to themselves if none
// matches. why says why the word cannot be expanded; it is then one unknown word.
func (r *reader) expand(w *syntax.Word, dirs []string) (out []word, why string) {
	whole := r.word(w)
	if whole.known() || whole.dynamic != "" {
		return []word{whole}, ""
	}
	fail := func(why string) ([]word, string) {
		if whole.stray() {
			r.script.setHard(why)
		}
		return []word{whole}, why
	}
	words := []*syntax.Word{w}
	if whole.brace {
		if words = braces(w); words == nil {
			return fail(whole.hidden())
		}
	}
	r.script.sources++
	for _, one := range words {
		x := readWord(one)
		if x.dynamic != "" || x.brace || x.text == "" { // Bash drops an empty word, unless it is quoted
			return fail(whole.hidden())
		}
		texts, listed := []string{x.text}, false
		if x.glob {
			if len(dirs) != 1 {
				return fail("the folder that the wildcard " + x.text + " is expanded in is not known")
			}
			if texts, why = matches(dirs[0], wildcard(one)); why != "" {
				return fail("the wildcard " + x.text + " " + why)
			}
			if listed = len(texts) > 0; !listed {
				texts = []string{x.text}
			}
		}
		for _, t := range texts {
			if strings.HasPrefix(t, "-") && whole.stray() { // whoever can create files can create options
				r.script.setHard(whole.text + " stands for " + t + ", which programs take for an option; ./" + whole.text + " could not")
			}
			out = append(out, word{text: t, listed: listed, source: r.script.sources})
		}
		if len(out) > maxExpanded {
			return fail(whole.text + " stands for more words than can be judged")
		}
	}
	return out, ""
}

// stray reports whether the expansion may be an option: neither a folder nor --option= stands before the first
// wildcard.
func (w word) stray() bool {
	head := w.text
	if i := strings.IndexAny(head, "*?[{"); i >= 0 {
		head = head[:i]
	}
	if strings.HasPrefix(head, "-") {
		return !strings.HasPrefix(head, "--") || !strings.Contains(head, "=")
	}
	return !strings.Contains(head, "/")
}

// braces are the words that {a,b} expands to; nil for too many or none. Sequences ({1..9}) are left alone.
func braces(w *syntax.Word) []*syntax.Word {
	commas, open := 0, 0
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			if strings.Contains(l.Value, "..") && strings.Contains(l.Value, "{") {
				return nil
			}
			commas += strings.Count(l.Value, ",")
			open += strings.Count(l.Value, "{")
		}
	}
	if commas == 0 || commas > 32 || open > 3 {
		return nil
	}
	own := &syntax.Word{Parts: slices.Clone(w.Parts)}
	if !syntax.SplitBraces(own) {
		return nil
	}
	var out []*syntax.Word
	for one, err := range expand.BracesSeq(&expand.Config{}, own) {
		if err != nil || len(out) == maxExpanded {
			return nil
		}
		out = append(out, one)
	}
	return out
}

// wildcard writes a word as a pattern, with quoted parts escaped.
func wildcard(w *syntax.Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(pattern.QuoteMeta(p.Value, 0))
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if l, ok := q.(*syntax.Lit); ok {
					b.WriteString(pattern.QuoteMeta(doubleQuoted(l.Value), 0))
				}
			}
		}
	}
	return b.String()
}

// matches lists the paths that a pattern matches in a folder, in unspecified order.
func matches(dir, pat string) (out []string, why string) {
	parts := pathPattern(pat)
	heads, listed := []string{""}, 0
	for i, part := range parts {
		last := i == len(parts)-1
		sep := "/"
		if last {
			sep = ""
		}
		if !pattern.HasMeta(part, 0) {
			for k := range heads {
				heads[k] += literal(part) + sep
			}
			continue
		}
		re, err := pattern.Regexp(part, pattern.Filenames|pattern.EntireString|pattern.NoGlobStar|pattern.GlobLeadingDot)
		if err != nil {
			return nil, "is not one that is judged"
		}
		match, err := regexp.Compile(re)
		if err != nil {
			return nil, "is not one that is judged"
		}
		var next []string
		for _, head := range heads {
			names, err := os.ReadDir(inFolder(dir, head))
			if err != nil {
				continue
			}
			if listed += len(names); listed > maxListed {
				return nil, "looks through more files than can be judged"
			}
			for _, name := range append([]string{".", ".."}, fileNames(names)...) {
				if name[0] == '.' && strings.TrimPrefix(part, `\`)[0] != '.' || !match.MatchString(name) {
					continue
				}
				if name == "." || name == ".." {
					return nil, "stands for . and .. in bash before 5.2"
				}
				if unreadable(name) != "" || strings.Contains(name, "\n") {
					return nil, "stands for a file whose name people cannot read"
				}
				next = append(next, head+name+sep)
			}
		}
		heads = next
	}
	heads = slices.DeleteFunc(heads, func(p string) bool {
		_, err := os.Lstat(inFolder(dir, p))
		return err != nil
	})
	slices.Sort(heads)
	return heads, ""
}

func fileNames(list []os.DirEntry) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.Name()
	}
	return out
}

// inFolder is a path as the kernel gets it from a process in dir. It is not cleaned, because .. after a link leads
// elsewhere.
func inFolder(dir, p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return dir + "/" + p
}

// pathPattern splits a pattern at its slashes, quoted or not.
func pathPattern(pat string) (parts []string) {
	var b strings.Builder
	for i := 0; i < len(pat); i++ {
		switch {
		case pat[i] == '\\' && i+1 < len(pat) && pat[i+1] != '/':
			b.WriteByte(pat[i])
			i++
			b.WriteByte(pat[i])
		case pat[i] == '/':
			parts = append(parts, b.String())
			b.Reset()
		case pat[i] != '\\':
			b.WriteByte(pat[i])
		}
	}
	return append(parts, b.String())
}

// literal removes the backslashes of a pattern that matches only itself.
func literal(pat string) string {
	var b strings.Builder
	for i := 0; i < len(pat); i++ {
		if pat[i] == '\\' && i+1 < len(pat) {
			i++
		}
		b.WriteByte(pat[i])
	}
	return b.String()
}
