package mrkdwn

import (
	"html"
	"net/url"
	"strings"
	"unicode"
)

// link is a [text](target) found in a line.
type link struct {
	size         int // 0 if there is none
	text, target string
	fake         bool // must not be shown as a link
}

// parseLink parses the inline link at the beginning of s, which begins with [.
func parseLink(s string) link {
	long := len(s) > Lookahead-100
	s = s[:min(len(s), Lookahead-100)]
	depth, end := 0, -1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				end = i
			}
		}
		if end >= 0 {
			break
		}
	}
	if end < 0 {
		return link{fake: true} // a later line may close it, with any target
	}
	l := link{text: s[1:end]}
	shown := hostOf(bare(l.text))
	rest := s[end+1:]
	if !strings.HasPrefix(rest, "(") {
		// A reference link, whose target is elsewhere: a text that is a URL would promise its target.
		l.fake = shown != "" && strings.HasPrefix(rest, "[")
		if rest, defines := strings.CutPrefix(rest, ":"); defines {
			target, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			l.fake = shown != "" || target == "" || !linkable(target) || long && !strings.ContainsAny(target, ":/?#")
		}
		return l
	}
	depth = 0
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			l.target, l.size = rest[1:i], end+1+i+1
			break
		}
	}
	if l.size == 0 {
		// It is incomplete, a later line has its target, or it is very long.
		begun := strings.TrimLeft(rest[1:], " \t")
		l.fake = !long || shown != "" || !linkable(begun) || !strings.ContainsAny(begun, ":/?#")
		return l
	}
	target, _, _ := strings.Cut(strings.Trim(strings.TrimSpace(l.target), "<>"), " ")
	l.target = target
	l.fake = !linkable(target) || shown != "" && shown != hostOf(bare(target))
	return l
}

// bare is a text without escapes, entities and marks.
func bare(text string) string { return html.UnescapeString(marks.Replace(text)) }

var marks = strings.NewReplacer(`\`, "", "*", "", "_", "", "~", "", "`", "")

// linkable reports whether a click may lead to target: the web, mail, and targets that the reader's Slack ignores.
func linkable(target string) bool {
	target = strings.Trim(html.UnescapeString(strings.ReplaceAll(target, `\`, "")), "<>")
	if strings.ContainsFunc(target, func(r rune) bool { return r < ' ' || unicode.Is(unicode.Cf, r) }) {
		return false
	}
	scheme, rest, ok := strings.Cut(target, ":")
	switch {
	case !ok || strings.ContainsAny(scheme, "/?#"):
		return true // a path
	case strings.Contains(scheme, "."): // a file's line, not com.example.app:open
		return rest != "" && rest[0] >= '0' && rest[0] <= '9'
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return true
	}
	return false
}

// hostOf returns the host of a text that looks like a web address, else "".
func hostOf(text string) string {
	text = strings.Trim(strings.TrimSpace(text), "*_~`<>\"'")
	lower := strings.ToLower(text)
	explicit := false
	for _, p := range [...]string{"https://", "http://", "//"} {
		if strings.HasPrefix(lower, p) {
			lower, explicit = lower[len(p):], true
			break
		}
	}
	host := lower
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	host, _, _ = strings.Cut(host[strings.LastIndexByte(host, '@')+1:], ":")
	if decoded, err := url.PathUnescape(host); err == nil {
		host = decoded
	}
	host = strings.TrimPrefix(host, "www.")
	if host == "" || strings.ContainsAny(host, " \t\n") {
		return ""
	}
	dot := strings.LastIndexByte(host, '.')
	if !explicit && (dot < 1 || dot == len(host)-1 || !looksLikeDomain(host[dot+1:], lower)) {
		return ""
	}
	return host
}

// looksLikeDomain distinguishes example.com from main.go: a bare name is an address if it has a path or a common
// ending.
func looksLikeDomain(ending, whole string) bool {
	switch ending {
	case "com", "org", "net", "io", "dev", "app", "ai", "edu", "gov", "info", "cloud", "co", "de", "uk", "fr", "eu", "jp", "cn", "ru":
		return true
	}
	_, path, ok := strings.Cut(whole, "/")
	return ok && path == "" && len(ending) >= 2
}
