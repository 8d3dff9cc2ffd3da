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

// parseLink reads the inline link that s, which begins with [, begins with.
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
		return link{fake: true} // a later line may close it, and lead anywhere
	}
	l := link{text: s[1:end]}
	shown := hostOf(bare(l.text))
	rest := s[end+1:]
	if !strings.HasPrefix(rest, "(") {
		// A link by reference, whose target is elsewhere: text that is a URL
		// promises where it leads.
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
		// It is not complete yet, a later line has where it leads, or it is very long.
		begun := strings.TrimLeft(rest[1:], " \t")
		l.fake = !long || shown != "" || !linkable(begun) || !strings.ContainsAny(begun, ":/?#")
		return l
	}
	target, _, _ := strings.Cut(strings.Trim(strings.TrimSpace(l.target), "<>"), " ")
	l.target = target
	l.fake = !linkable(target) || shown != "" && shown != hostOf(bare(target))
	return l
}

// bare is what a text reads as: without escapes, entities and marks.
func bare(text string) string { return html.UnescapeString(marks.Replace(text)) }

var marks = strings.NewReplacer(`\`, "", "*", "", "_", "", "~", "", "`", "")

// linkable reports whether people may be led to target by a click: the web, mail,
// and places that the reader's own Slack makes nothing of.
func linkable(target string) bool {
	target = strings.Trim(html.UnescapeString(strings.ReplaceAll(target, `\`, "")), "<>")
	if strings.ContainsFunc(target, func(r rune) bool { return r < ' ' || unicode.Is(unicode.Cf, r) }) {
		return false
	}
	scheme, rest, ok := strings.Cut(target, ":")
	switch {
	case !ok || strings.ContainsAny(scheme, "/?#"):
		return true // a path
	case strings.Contains(scheme, "."): // a file's line, and not com.example.app:open
		return rest != "" && rest[0] >= '0' && rest[0] <= '9'
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return true
	}
	return false
}

// hostOf returns the host that a text seems to name when it reads as an address
// of the web, else "".
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
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if i := strings.IndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
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

// looksLikeDomain tells example.com from main.go: a bare name counts as an
// address when it has a path or one of the common endings.
func looksLikeDomain(ending, whole string) bool {
	switch ending {
	case "com", "org", "net", "io", "dev", "app", "ai", "edu", "gov", "info", "cloud", "co", "de", "uk", "fr", "eu", "jp", "cn", "ru":
		return true
	}
	_, path, ok := strings.Cut(whole, "/")
	return ok && path == "" && len(ending) >= 2
}
