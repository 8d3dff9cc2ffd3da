// Package page is the web page of the playground: a workspace that looks and
// works like Slack, for people who try Deckhand and for tests that watch it.
//
// The page is a React application. Its sources (src, package.json) lie beside
// this file; what they were built into is committed in dist and embedded, so
// that building Deckhand needs no Node and running it needs no network. After a
// change: npm ci && npm test && npm run build. A test fails when dist is older
// than its sources. While working on it, npm run dev serves the sources and
// passes the API on to the playground at PLAYGROUND_URL.
//
// The page speaks only to the control API of the address that served it (see
// package slack). It is not a client of Slack's own API, and this package knows
// nothing of the workspace behind the page. It owns no goroutines.
package page

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

//go:embed all:dist
var embedded embed.FS

// policy keeps the page to itself: no inline scripts, nothing loaded from and
// nothing sent to any other address, no frames around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// contentTypes are those of the built files. They are named here because the
// operating system's table may say otherwise.
var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".md":   "text/plain; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is one built file.
type asset struct {
	name        string
	contentType string
	cache       string
	body        []byte
}

// Handler serves the page at "/", its assets, and "/archives/CHANNEL/pTS", the
// form of Slack's own permalinks, which leads to that message in the page.
// Everything else is 404. It is safe for concurrent use.
func Handler() http.Handler {
	files, err := load()
	if err != nil {
		panic(fmt.Sprintf("page: the embedded files are broken: %v", err))
	}
	mux := http.NewServeMux()
	for _, file := range files {
		pattern := "GET /" + file.name
		if file.name == "index.html" {
			pattern = "GET /{$}"
		}
		mux.HandleFunc(pattern, file.serve)
	}
	mux.HandleFunc("GET /archives/{channel}/{message}", servePermalink)
	return mux
}

// load reads the embedded files once.
func load() ([]asset, error) {
	dist, err := fs.Sub(embedded, "dist")
	if err != nil {
		return nil, fmt.Errorf("open dist: %w", err)
	}
	var files []asset
	err = fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(dist, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		files = append(files, asset{name: name, contentType: typeOf(name), cache: cacheOf(name), body: body})
		return nil
	})
	return files, err
}

func typeOf(name string) string {
	if t, ok := contentTypes[path.Ext(name)]; ok {
		return t
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// cacheOf lets browsers keep what bears its contents' hash in its name, and
// makes them ask for the rest.
func cacheOf(name string) string {
	if strings.HasPrefix(name, "assets/") {
		return "public, max-age=31536000, immutable"
	}
	return "no-cache"
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", a.cache)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.body))
}

// servePermalink leads from Slack's form of a message's address to the page's.
func servePermalink(w http.ResponseWriter, r *http.Request) {
	digits := strings.TrimPrefix(r.PathValue("message"), "p")
	if len(digits) <= 6 || strings.Trim(digits, "0123456789") != "" {
		http.NotFound(w, r)
		return
	}
	thread := r.URL.Query().Get("thread_ts")
	if thread == "" {
		thread = digits[:len(digits)-6] + "." + digits[len(digits)-6:]
	}
	http.Redirect(w, r, "/#/c/"+url.PathEscape(r.PathValue("channel"))+"/t/"+url.PathEscape(thread), http.StatusFound)
}
