package slack

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// avatarURL is where a user's picture is served.
func (s *Server) avatarURL(id string) string { return s.base() + "/files/avatar/" + id + ".svg" }

// serveAvatar draws a coloured tile: initials for people, an anchor for the bot.
func (s *Server) serveAvatar(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimSuffix(r.PathValue("user"), ".svg")
	s.mu.Lock()
	u := s.ws.user(id)
	s.mu.Unlock()
	if u == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=3600")
	mark := anchorMark
	if !u.Bot {
		mark = fmt.Sprintf(`<text x="36" y="37" fill="#fff" font-family="system-ui,sans-serif" font-size="30" font-weight="600" text-anchor="middle" dominant-baseline="central">%s</text>`, html.EscapeString(initials(u.RealName)))
	}
	_, _ = fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 72"><rect width="72" height="72" fill="#%s"/>%s</svg>`, u.Color, mark)
}

const anchorMark = `<g fill="none" stroke="#fff" stroke-width="5" stroke-linecap="round"><circle cx="36" cy="18" r="6"/><path d="M36 24v34M25 33h22M16 42c1 11 9 16 20 16s19-5 20-16"/></g>`

// initials are the first letters of the first and the last name.
func initials(name string) string {
	var out []rune
	for word := range strings.FieldsSeq(name) {
		out = append(out, []rune(word)[0])
	}
	if len(out) > 2 {
		out = []rune{out[0], out[len(out)-1]}
	}
	return strings.ToUpper(string(out))
}
