package forge

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"
	"github.com/yuin/goldmark"
)

// maxDiff is what the page shows of a diff.
const maxDiff = 400 << 10

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": func(id string) string { return id[:min(8, len(id))] },
	// goldmark leaves raw HTML and addresses of scripts out; pictures from elsewhere stay out by
	// the page's policy.
	"markdown": func(text string) (template.HTML, error) {
		var out bytes.Buffer
		err := goldmark.Convert([]byte(text), &out)
		return template.HTML(out.String()), err //nolint:gosec // see above
	},
}).Parse(pageHTML))

// shownPage is what the page is made of.
type shownPage struct {
	Who    person
	People []person
	Repo   string
	Error  string
	List   []*pull

	Pull       *pull
	Mergeable  string // why not, if it is open
	Commits    [][]string
	Files      []*diffFile
	Cut        bool
	Checks     []*status
	Path, Line string // that a comment is about to be for
}

type diffFile struct {
	Name  string
	Lines []diffLine
}

type diffLine struct {
	Kind, Text string
	Line       uint64 // of the new file, 0 if it is not there
	Comments   []*gitea.PullReviewComment
}

func (f *Forge) pages(mux *http.ServeMux) {
	show := func(w http.ResponseWriter, r *http.Request, do func(*call) (*shownPage, error)) {
		f.mu.Lock()
		defer f.mu.Unlock()
		c, err := f.about(r, false)
		s := &shownPage{}
		if err == nil {
			if cookie, noCookie := r.Cookie("forge_person"); noCookie == nil {
				if who, nobody := personOf(cookie.Value); nobody == nil {
					c.who = who
				}
			} else {
				c.who = people[1]
			}
			s, err = do(c)
		}
		if err == nil && s == nil {
			return // it has answered
		}
		status := http.StatusOK
		if err != nil {
			s, status = &shownPage{Error: err.Error()}, http.StatusBadRequest
		}
		if c != nil {
			s.Who, s.Repo = c.who, c.name
		}
		s.People = people[1:]
		var out bytes.Buffer
		if err := page.Execute(&out, s); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = w.Write(out.Bytes())
	}
	handle := func(pattern string, do func(http.ResponseWriter, *call) (*shownPage, error)) {
		mux.Handle(pattern, local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			show(w, r, func(c *call) (*shownPage, error) { return do(w, c) })
		})))
	}
	handle("GET "+Root+"{$}", func(w http.ResponseWriter, c *call) (*shownPage, error) {
		repos, err := filepath.Glob(filepath.Join(f.dir, "*.git"))
		if err != nil || len(repos) == 0 {
			return nil, refuse(404, "there is no repository yet")
		}
		http.Redirect(w, c.Request, Root+strings.TrimSuffix(filepath.Base(repos[0]), ".git")+"/pulls", http.StatusFound)
		return nil, nil //nolint:nilnil // it has answered
	})
	handle("GET "+Root+"{repo}/pulls", func(_ http.ResponseWriter, c *call) (*shownPage, error) {
		for _, p := range c.repo.Pulls {
			if err := f.look(c.name, p); err != nil {
				return nil, err
			}
		}
		list := slices.Clone(c.repo.Pulls)
		slices.Reverse(list)
		return &shownPage{List: list}, nil
	})
	handle("GET "+Root+"{repo}/pulls/{number}", func(_ http.ResponseWriter, c *call) (*shownPage, error) { return f.pullPage(c) })
	handle("POST "+Root+"{repo}/pulls/{number}", func(w http.ResponseWriter, c *call) (*shownPage, error) {
		if err := f.act(c); err != nil {
			return nil, err
		}
		http.SetCookie(w, &http.Cookie{Name: "forge_person", Value: c.who.Login, Path: Root, SameSite: http.SameSiteStrictMode, HttpOnly: true})
		http.Redirect(w, c.Request, c.URL.Path, http.StatusSeeOther)
		return nil, nil //nolint:nilnil // it has answered
	})
	mux.Handle("GET "+Root+"{repo}/actions/runs/{run}/jobs/{id}", local(f.answering(f.getLog)))
}

// act does what a person pressed.
func (f *Forge) act(c *call) (err error) {
	if c.who, err = personOf(c.FormValue("user")); err != nil {
		return err
	}
	switch do := c.FormValue("do"); do {
	case "approved", "changes_requested", "commented":
		_, err = f.addReview(c.name, c.repo, c.pull, c.who, reviewOf(controlled{
			Verdict: do, Body: c.FormValue("body"), Path: c.FormValue("path"), Line: number(c.FormValue("line")),
		}))
	case "check":
		_, err = f.addStatus(c.name, c.repo, c.who, c.pull.Head.Sha, c.FormValue("body"), gitea.CreateStatusOption{
			Context: c.FormValue("name"), State: gitea.StatusState(c.FormValue("state")),
		})
	case "merge", "squash":
		err = f.merge(c.name, c.repo, c.pull, c.who, gitea.MergePullRequestOption{Style: gitea.MergeStyle(do), HeadCommitId: c.FormValue("head")})
	case "closed", "open":
		state := gitea.StateType(do)
		err = f.edit(c.pull, c.who, gitea.EditPullRequestOption{State: &state})
	case "": // another person looks
	default:
		err = refuse(422, "nothing is called %q", do)
	}
	return err
}

func (f *Forge) pullPage(c *call) (*shownPage, error) {
	p, q := c.pull, c.URL.Query()
	s := &shownPage{Pull: p, Checks: c.repo.checks(p.Head.Sha), Path: q.Get("path"), Line: q.Get("line")}
	base := p.Since
	if base == "" {
		_, at, clean, err := f.tree(c.name, p)
		switch {
		case err != nil:
			s.Mergeable = "Git cannot say whether it can be merged: " + err.Error()
		case !clean:
			s.Mergeable = "It conflicts with " + p.Base.Ref + "."
		case c.repo.unmet(p) != "":
			s.Mergeable = c.repo.unmet(p) + "."
		}
		base = at
	}
	log, err := f.in(c.name, "log", "--format=%h%x00%an%x00%s", "--max-count=100", base+".."+p.Head.Sha)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(log) {
		s.Commits = append(s.Commits, strings.Split(strings.TrimSpace(line), "\x00"))
	}
	diff, err := f.in(c.name, "-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", base+"..."+p.Head.Sha)
	if err != nil {
		return nil, err
	}
	if s.Cut = len(diff) > maxDiff; s.Cut {
		diff = diff[:maxDiff]
	}
	s.Files = filesOf(diff)
	for _, v := range p.Reviews {
		for _, m := range v.Comments {
			for _, file := range s.Files {
				i := slices.IndexFunc(file.Lines, func(l diffLine) bool { return l.Line == m.LineNum && m.LineNum > 0 })
				if file.Name == m.Path && i >= 0 {
					file.Lines[i].Comments = append(file.Lines[i].Comments, m)
				}
			}
		}
	}
	return s, nil
}

// filesOf reads a diff of git's.
func filesOf(diff string) []*diffFile {
	var files []*diffFile
	var at uint64
	inHunk := false
	for text := range strings.Lines(diff) {
		text = strings.TrimRight(text, "\n")
		switch {
		case strings.HasPrefix(text, "diff --git "):
			_, name, _ := strings.Cut(text, " b/")
			files = append(files, &diffFile{Name: name})
			inHunk = false
			continue
		case len(files) == 0:
			continue
		}
		file, l := files[len(files)-1], diffLine{Text: text}
		switch {
		case strings.HasPrefix(text, "@@"):
			inHunk = true
			_, from, _ := strings.Cut(text, "+")
			at, _ = strconv.ParseUint(from[:max(0, strings.IndexAny(from, ", "))], 10, 64)
			l.Kind = "hunk"
		case !inHunk:
			l.Kind = "hunk"
			if strings.HasPrefix(text, "index ") || strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "+++ ") {
				continue
			}
		case strings.HasPrefix(text, "-"):
			l.Kind = "del"
		case strings.HasPrefix(text, "\\"):
		default:
			if strings.HasPrefix(text, "+") {
				l.Kind = "add"
			}
			l.Line = at
			at++
		}
		file.Lines = append(file.Lines, l)
	}
	return files
}

// CommentURL is where one comments on a line.
func (p *shownPage) CommentURL(file string, line uint64) string {
	return "?" + url.Values{"path": {file}, "line": {strconv.FormatUint(line, 10)}}.Encode() + "#review"
}
