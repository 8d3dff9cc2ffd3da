package policy

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
)

// Preview is what a call would touch, as far as its words and the file system show when it is made. It lists what
// the call names, and Unknown says what is not known. Nothing of the call is run.
type Preview struct {
	Touches []Touch  `json:"touches,omitempty"`
	More    int      `json:"more,omitempty"`  // touches left out
	Hosts   []string `json:"hosts,omitempty"` // that it would connect to
	Unknown []string `json:"unknown,omitempty"`
}

// Touch is a file or folder that a call would write, delete, or, outside the workspace, read.
type Touch struct {
	Verb    string `json:"verb"` // writes, deletes, reads
	Path    string `json:"path"` // relative to the workspace, absolute outside of it
	Outside bool   `json:"outside,omitempty"`
	Is      string `json:"is"`              // file, folder or new; empty outside
	Files   int    `json:"files,omitempty"` // of a folder: the files below it
	Bytes   int64  `json:"bytes,omitempty"`
	Over    bool   `json:"over,omitempty"` // there are more than were counted
}

const (
	maxTouches = 12
	// maxCounted bounds the files counted below folders for one call.
	maxCounted = 2000
)

// Touches previews a call. It reads the names and sizes of files.
func Touches(c Call) (p Preview) {
	defer func() {
		if faultOf(recover()) != "" {
			p = Preview{Unknown: []string{"Deckhand failed while reading it"}}
		}
	}()
	req := readCall(&c)
	v := &viewer{left: maxCounted}
	switch {
	case (req.kind == kindEdit || req.kind == kindBash) && req.root.resolved == "":
		v.unknown("what lies in its folder, which is not on this machine")
	case req.kind == kindEdit && req.bad == "":
		v.add("writes", &req.target[0])
	case req.kind == kindWeb && req.link.host != "":
		v.hosts(req.link.host)
	case req.script != nil:
		v.script(req)
	}
	return v.Preview
}

// viewer collects a preview.
type viewer struct {
	Preview
	left int // files that may still be counted
}

func (v *viewer) script(req *request) {
	s := req.script
	if req.bad != "" || s.hard != "" {
		v.unknown(first(req.bad, s.hard))
	}
	for i := range s.units {
		u := &s.units[i]
		switch {
		case u.target == nil:
			v.command(u)
		case harmless[u.target.written]:
		case req.isEffect(i):
			if u.write {
				v.unknown("which files " + s.units[u.of-1].program() + " writes")
			}
		case u.target.abs == "":
			v.unknown("where " + u.target.written + " lies")
		case !u.target.inside && u.of > 0 && expanded(&s.units[u.of-1]):
			v.unknown("what a wildcard of " + s.units[u.of-1].program() + " finds outside the workspace")
		case u.write && u.of > 0 && removers[baseName(s.units[u.of-1].program())]:
			v.deletes(u.target)
		case u.write:
			v.add("writes", u.target)
		case !u.target.inside:
			v.add("reads", u.target)
		}
	}
}

// deletes notes what is deleted. A link itself is deleted, and not its target.
func (v *viewer) deletes(t *target) {
	if t.linked {
		v.unknown("what lies behind the link in " + t.written)
		return
	}
	v.add("deletes", t)
}

// command notes what is unknown about a command, and its hosts.
func (v *viewer) command(u *unit) {
	args := u.args()
	switch r := u.reading; {
	case u.neutral:
	case r == nil || r.prog == nil:
		v.unknown("what " + args[0].text + " does")
	case r.code:
		v.unknown("what the code that " + args[0].text + " runs does")
	default:
		for _, m := range r.words {
			if m.why != "" {
				v.unknown(m.why)
				break
			}
		}
	}
	for i, w := range args {
		if w.dynamic != "" {
			v.unknown(w.dynamic)
		}
		if i == 0 || w.dynamic != "" {
			continue
		}
		for _, p := range pathsIn(w.text) {
			if at, err := url.Parse(p); err == nil && at.Scheme != "" && at.Host != "" {
				v.hosts(at.Host)
			}
		}
	}
}

func (v *viewer) unknown(what string) {
	if what != "" && !slices.Contains(v.Unknown, what) {
		v.Unknown = append(v.Unknown, what)
	}
}

func (v *viewer) hosts(host string) {
	if !slices.Contains(v.Hosts, host) {
		v.Hosts = append(v.Hosts, host)
	}
}

// expanded reports whether a command's words came from wildcards.
func expanded(u *unit) bool {
	return slices.ContainsFunc(u.words, func(w word) bool { return w.source })
}

// add notes a file. It names a file outside the workspace without inspecting it: the call may run where that
// differs, and readers of the card must learn nothing about this machine.
func (v *viewer) add(verb string, t *target) {
	to := Touch{Verb: verb, Path: t.rel, Outside: !t.inside, Is: "new"}
	if to.Outside {
		to.Path, to.Is = t.abs, ""
	}
	if slices.ContainsFunc(v.Touches, func(o Touch) bool { return o.Verb == verb && o.Path == to.Path }) {
		return
	}
	if len(v.Touches) == maxTouches {
		v.More++
		return
	}
	if !to.Outside {
		v.look(&to, t.resolved)
	}
	v.Touches = append(v.Touches, to)
}

func (v *viewer) look(to *Touch, at string) {
	info, err := os.Lstat(at)
	switch {
	case err != nil:
	case info.IsDir():
		to.Is = "folder"
		to.Files, to.Bytes, to.Over = v.count(at)
	default:
		to.Is, to.Bytes = "file", info.Size()
	}
}

// count counts the files below a folder, and their size.
func (v *viewer) count(folder string) (files int, bytes int64, over bool) {
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			over = true
			return nil
		case v.left == 0:
			over = true
			return filepath.SkipAll
		}
		v.left--
		if d.IsDir() {
			return nil
		}
		files++
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return files, bytes, over || err != nil
}
