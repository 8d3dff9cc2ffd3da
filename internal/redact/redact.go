// Package redact takes secrets out of text before it leaves the process, for Slack,
// for the logs and for whatever else people read: values that it was told, and what
// has the shape of a well-known token.
//
// It is pure, but for [Token]. A text must be redacted as a whole, before it is cut: a
// secret of which one half is elsewhere is not found.
package redact

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mark stands for a secret in what was redacted.
const Mark = "[redacted]"

// secretMin is the length from which a known value is looked for: shorter ones
// would be found in innocent text.
const secretMin = 8

// Redactor takes secrets out of text before it leaves for Slack or the logs: the
// values that it was given, and what has the shape of a well-known token. It
// reads a text once, in time linear in its length for a given number of values.
// The zero value knows the shapes only. It is safe for concurrent use.
type Redactor struct {
	known []string // longest first
	first [256]bool
}

// New returns a redactor for the given secret values, also where they
// stand percent-encoded or in base64. Values shorter than 8 bytes are ignored.
func New(values ...string) *Redactor {
	r := &Redactor{}
	add := func(v string) {
		if len(v) >= secretMin && !slices.Contains(r.known, v) {
			r.known = append(r.known, v)
		}
	}
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) < secretMin {
			continue
		}
		add(v)
		add(url.QueryEscape(v))
		add(base64.StdEncoding.EncodeToString([]byte(v)))
		add(base64.URLEncoding.EncodeToString([]byte(v)))
		add(strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(v)), "="))
		for line := range strings.Lines(v) { // a key file may be shown in part
			if line = strings.TrimSpace(line); len(line) >= 2*secretMin && !strings.Contains(line, " ") {
				add(line)
			}
		}
	}
	slices.SortStableFunc(r.known, func(a, b string) int { return len(b) - len(a) })
	for _, v := range r.known {
		r.first[v[0]] = true
	}
	return r
}

// ours begins the tokens by which a session's process is known to the bot.
const ours = "dkh_"

// TokenLength is the length of a token of ours, in bytes.
const TokenLength = 64

// Token returns a new token for a session's process. Every redactor knows it by its beginning: what a program
// in the session prints of its environment is shown without it.
func Token() string {
	b := make([]byte, (TokenLength-len(ours))/2)
	_, _ = rand.Read(b) // it never fails
	return ours + hex.EncodeToString(b)
}

// tokenShape is a kind of token: a prefix and at least min bytes of tail after it.
type tokenShape struct {
	prefix string
	min    int
	tail   *[256]bool
}

var (
	tailWord   = byteSet("_-")
	tailDotted = byteSet("_-.")
	tailBase64 = byteSet("_-./+=~")
	tailPath   = byteSet("_-/")
	tailAlnum  = byteSet("")
)

func byteSet(more string) *[256]bool {
	var set [256]bool
	for c := range 256 {
		set[c] = isAlnum(byte(c)) || strings.IndexByte(more, byte(c)) >= 0
	}
	return &set
}

// tokenShapes are the tokens that are known by their looks.
var tokenShapes = []tokenShape{
	{ours, 20, tailAlnum},
	{"xoxb-", 10, tailWord},
	{"xoxp-", 10, tailWord},
	{"xoxa-", 10, tailWord},
	{"xoxr-", 10, tailWord},
	{"xoxs-", 10, tailWord},
	{"xoxc-", 10, tailWord},
	{"xoxd-", 10, tailBase64},
	{"xoxe-", 10, tailWord},
	{"xoxe.", 10, tailDotted},
	{"xapp-", 10, tailWord},
	{"hooks.slack.com/services/", 10, tailPath},
	{"sk-ant-", 8, tailWord},
	{"sk-proj-", 16, tailWord},
	{"sk_live_", 10, tailWord},
	{"rk_live_", 10, tailWord},
	{"sk-", 32, tailWord},
	{"ghp_", 20, tailAlnum},
	{"gho_", 20, tailAlnum},
	{"ghu_", 20, tailAlnum},
	{"ghs_", 20, tailAlnum},
	{"ghr_", 20, tailAlnum},
	{"github_pat_", 20, tailWord},
	{"glpat-", 16, tailWord},
	{"AKIA", 16, tailAlnum},
	{"ASIA", 16, tailAlnum},
	{"AIza", 30, tailWord},
	{"ya29.", 20, tailDotted},
	{"npm_", 30, tailAlnum},
	{"pypi-", 40, tailWord},
	{"hf_", 30, tailAlnum},
	{"SG.", 30, tailDotted},
	{"eyJ", 20, tailDotted}, // a JSON web token; see tokenAt
	{"Bearer ", 16, tailBase64},
	{"bearer ", 16, tailBase64},
	{"BEARER ", 16, tailBase64},
	{"Basic ", 20, tailBase64},
	{"basic ", 20, tailBase64},
}

// shapesByFirst are the shapes by their first byte.
var shapesByFirst = func() (by [256][]tokenShape) {
	for _, s := range tokenShapes {
		by[s.prefix[0]] = append(by[s.prefix[0]], s)
	}
	return by
}()

// beginnings says what may begin with a byte besides known values: nothing, a
// token, which begins a word, or something else.
var beginnings = func() (by [256]uint8) {
	for _, s := range tokenShapes {
		by[s.prefix[0]] = beginsToken
	}
	by[':'], by['-'] = beginsOther, beginsOther
	return by
}()

const (
	beginsToken = 1 + iota
	beginsOther
)

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' }

// Redact returns s with each secret replaced by "[redacted]". It must see a text
// as a whole: a secret that is split over two calls is not found.
func (r *Redactor) Redact(s string) string {
	var b strings.Builder
	last, key := 0, 0 // up to key something goes on that begins like a private key
	for i := 0; i < len(s); i++ {
		c := s[i]
		if i >= key && !r.first[c] && (beginnings[c] == 0 || beginnings[c] == beginsToken && i > 0 && isWord(s[i-1])) {
			continue
		}
		n, keep := 0, 0
		switch {
		case c == ':':
			n, keep = passwordAt(s, i)
		case c == '-' && i >= key && strings.HasPrefix(s[i:], "-----BEGIN "):
			var inside int
			n, inside = keyBlockAt(s[i:])
			key = i + inside
		case beginnings[c] == beginsToken && (i == 0 || !isWord(s[i-1])):
			n, keep = tokenAt(s[i:], shapesByFirst[c])
		}
		if n == 0 && i < key && (i == 0 || !isAlnum(s[i-1]) && s[i-1] != '+' && s[i-1] != '/' && s[i-1] != '=') {
			n, keep = keyLineAt(s[i:]), 0
		}
		if r.first[c] {
			for _, v := range r.known {
				if v[0] == c && len(v) >= n && strings.HasPrefix(s[i:], v) {
					n, keep = len(v), 0
					break
				}
			}
		}
		if n == 0 {
			continue
		}
		b.WriteString(s[last : i+keep])
		b.WriteString(Mark)
		last = i + n
		i = last - 1
	}
	if last == 0 {
		return s
	}
	b.WriteString(s[last:])
	return b.String()
}

// tokenAt returns the length of the token that s begins with, 0 if none, and how
// much of it may stay since it is a keyword.
func tokenAt(s string, shapes []tokenShape) (n, keep int) {
	for _, shape := range shapes {
		if !strings.HasPrefix(s, shape.prefix) {
			continue
		}
		at := len(shape.prefix)
		if shape.prefix == "eyJ" {
			// Without a dot it is base64 of some JSON, not a signed token. The bound
			// keeps many of them in a row from costing the square of their number.
			if dot := strings.IndexByte(s[:min(len(s), 1024)], '.'); dot < shape.min {
				continue
			}
		}
		end := at
		for end < len(s) && shape.tail[s[end]] {
			end++
		}
		if end-at < shape.min {
			continue
		}
		switch shape.prefix {
		case "eyJ":
			if strings.IndexByte(s[:end], '.') < 0 {
				continue
			}
		case "Basic ", "basic ":
			if !strings.ContainsAny(s[at:end], "0123456789=+/") {
				continue // prose
			}
		}
		if strings.HasSuffix(shape.prefix, " ") {
			keep = at
		}
		return end, keep
	}
	return 0, 0
}

// keyBlock is a private key as files and programs write it, whole or cut off, and nothing else: what
// stands between is base64 in lines, but for the last.
var keyBlock = regexp.MustCompile(`^-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----` +
	`(?:` + keySpace + `+(?:Proc-Type: ?[0-9A-Z,]+|DEK-Info: ?[0-9A-Z,-]+|[A-Za-z0-9+/=]{16,}))*` +
	`(?:` + keySpace + `+[A-Za-z0-9+/=]{1,15})?` + keySpace + `*(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)`)

// keySpace is what ends a key's lines, also as JSON and shells write it.
const keySpace = `(?:\s|\\+[nrt])`

// keyBlockAt returns the length of the private key that s begins with, or 0. Where s only begins
// like one, inside is how far it may go on; there keyLineAt finds its lines, and shows what is none.
func keyBlockAt(s string) (n, inside int) {
	kind, _, ok := strings.Cut(s[:min(len(s), 80)], "PRIVATE KEY")
	if !ok || strings.Contains(kind, "\n") {
		return 0, 0
	}
	if found := keyBlock.FindStringIndex(s); found != nil {
		return found[1], 0
	}
	if inside = strings.Index(s, "-----END "); inside < 0 {
		inside = len(s)
	}
	return 0, inside
}

// keyLineAt returns the length of the line of a private key that s begins with, or 0. Short ones
// are words.
func keyLineAt(s string) int {
	n := 0
	for n < len(s) && (isAlnum(s[n]) || strings.IndexByte("+/=", s[n]) >= 0) {
		n++
	}
	if n >= 16 || n > 0 && strings.HasPrefix(strings.TrimLeft(s[n:], "\r\n"), "-----END ") {
		return n
	}
	return 0
}

// passwordAt looks at the colon s[i]: in scheme://user:password@host it returns
// what follows up to the @, and that the colon stays.
func passwordAt(s string, i int) (n, keep int) {
	if !strings.HasPrefix(s[i:], "://") {
		return 0, 0
	}
	rest := s[i+3:]
	rest = rest[:min(len(rest), 512)]
	end := strings.IndexAny(rest, "/ \t\n\"'`<>")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	colon := strings.IndexByte(rest[:end], ':')
	if at < 0 || colon < 0 || colon+1 >= at {
		return 0, 0
	}
	return 3 + at, 3 + colon + 1
}
