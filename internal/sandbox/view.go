package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/sandbox/stage"
)

// view is what a session sees, by path inside. Nested paths come later and win.
type view struct {
	at map[string]mount
	// native are folders whose programs are the sandbox's own, whatever this machine has there.
	native []string
	// links caches where paths of this machine lead; see resolved.
	links map[string]string
}

// mount is one entry of a view.
type mount struct {
	kind mountKind
	// source is the host's path, or a link's target.
	source string
	// small is a world-readable file that may be shown as a copy.
	small bool
}

type mountKind int

const (
	readOnly mountKind = iota
	writable
	link
	temporary   // a folder in memory
	emptyFolder // nothing can be put into it
	emptyFile
)

func newView() *view { return &view{at: map[string]mount{}, links: map[string]string{}} }

func (v *view) put(path string, kind mountKind, source string) {
	v.at[filepath.Clean(path)] = mount{kind: kind, source: source}
}

// show puts a host's file or folder at its own place.
func (v *view) show(kind mountKind, path string) { v.put(path, kind, path) }

// shows reports whether the host's path is visible at its own place.
func (v *view) shows(path string) bool {
	for p := path; ; p = filepath.Dir(p) {
		if m, ok := v.at[p]; ok {
			return m.kind == readOnly || m.kind == writable
		}
		if p == "/" {
			return false
		}
	}
}

// paths are the view's paths, each folder before its content.
func (v *view) paths() []string {
	return slices.SortedFunc(maps.Keys(v.at), byParts)
}

// byParts sorts a folder before its content.
func byParts(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// session adds the session's own, and returns its program by its path inside.
func (v *view) session(spec Spec, s Session) ([]string, error) {
	if err := v.room(s.Workspace, s.Home); err != nil {
		return nil, err
	}
	if err := refusePrivileged(s.Workspace); err != nil {
		return nil, err
	}
	for _, p := range spec.See {
		if !exists(p) {
			return nil, fmt.Errorf("there is no %s, which see: names", p)
		}
		v.show(readOnly, p)
	}
	if err := v.place(s); err != nil {
		return nil, err
	}
	if err := v.caches(spec.Caches, s); err != nil {
		return nil, err
	}
	if s.Socket != "" {
		v.show(readOnly, filepath.Dir(s.Socket))
	}
	if s.Web != "" {
		v.show(readOnly, filepath.Dir(s.Web))
	}
	v.authorities(s.Env)
	command, err := v.program(s.Program)
	if err != nil {
		return nil, err
	}
	if err := v.hide(s.Hidden, spec.See); err != nil {
		return nil, err
	}
	v.anchor()
	return v.forwarded(spec, s, command)
}

// caches adds the project's caches. Sessions write to them, so no link in one is followed, and none may contain
// another.
func (v *view) caches(caches []string, s Session) error {
	if len(caches) == 0 {
		return nil
	}
	if err := os.MkdirAll(s.CacheDir, 0o700); err != nil {
		return fmt.Errorf("make the caches: %w", err)
	}
	root, err := os.OpenRoot(s.CacheDir)
	if err != nil {
		return fmt.Errorf("open the caches: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	for i, c := range caches {
		for _, other := range caches[:i] {
			if within(other, c) || within(c, other) {
				return fmt.Errorf("the cache %s and the cache %s lie in one another; name one of them", other, c)
			}
		}
		if err := root.MkdirAll(c, 0o700); err != nil {
			return fmt.Errorf("make a cache: %w", err)
		}
		for p := filepath.Clean(c); p != "."; p = filepath.Dir(p) {
			if err := isFolder(filepath.Join(s.CacheDir, p)); err != nil {
				return err
			}
		}
		v.put(filepath.Join(s.Home, c), writable, filepath.Join(s.CacheDir, c))
	}
	return nil
}

// anchor mounts every folder between something writable and a mount in it: a folder that merely contains a mount
// can be renamed away with it and replaced.
func (v *view) anchor() {
	for _, p := range v.paths() {
		var between []string
		for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
			if m, ok := v.at[dir]; ok {
				for _, b := range between {
					source := filepath.Join(m.source, strings.TrimPrefix(b, dir))
					if m.kind == writable && isFolder(source) == nil {
						v.put(b, writable, source)
					}
				}
				break
			}
			if dir == "/" {
				break
			}
			between = append(between, dir)
		}
	}
}

// systemFolders are the system's programs and libraries.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// systemFiles are what programs need from /etc to run: the lookup of libraries, trusted certificates, time and
// language, but nothing about this machine's people, services and secrets.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/ca-certificates", "/etc/ca-certificates.conf",
	"/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust/extracted", "/etc/crypto-policies",
	"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/locale.conf",
	"/etc/services", "/etc/protocols", "/etc/mime.types", "/etc/magic", "/etc/terminfo", "/etc/fonts", "/etc/chromium.d",
	"/etc/os-release", "/etc/debian_version", "/etc/lsb-release", "/etc/redhat-release", "/etc/alpine-release",
	"/etc/java*", "/etc/maven", "/etc/gradle", "/etc/python*", "/etc/perl", "/etc/nodejs",
}

// system adds the read-only system.
func (v *view) system(network Network) error {
	for _, p := range systemFolders {
		if err := v.systemFolder(p); err != nil {
			return err
		}
	}
	files := systemFiles
	if network == Open {
		files = append(slices.Clip(files), "/etc/resolv.conf", "/etc/hosts")
	}
	for _, pattern := range files {
		found := []string{pattern}
		if strings.Contains(pattern, "*") {
			var err error
			if found, err = filepath.Glob(pattern); err != nil {
				return err
			}
		}
		for _, p := range found {
			v.systemFile(p)
		}
	}
	v.put("/tmp", temporary, "")
	v.put("/var/tmp", temporary, "")
	return nil
}

// smallFile is the size, in bytes, up to which a session gets a copy: a mount slows down each start more.
const smallFile = 256 << 10

// systemFile adds a file or folder, if it exists. For a link, its target is added.
func (v *view) systemFile(p string) {
	target, err := filepath.EvalSymlinks(p)
	if err != nil {
		return
	}
	v.put(p, readOnly, target)
	if info, err := os.Lstat(target); err == nil && info.Mode().IsRegular() && info.Mode()&0o004 != 0 && info.Size() <= smallFile {
		v.at[p] = mount{readOnly, target, true}
	}
}

func (v *view) systemFolder(p string) error {
	info, err := os.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink == 0:
		v.show(readOnly, p)
		return nil
	}
	target, err := os.Readlink(p)
	if err != nil {
		return err
	}
	v.put(p, link, target)
	return nil
}

// hostname is the machine's name inside.
const hostname = "deckhand"

// identity are files that identify the session's user, without this machine's people.
func identity(uid, gid int, home string, network Network) []stage.File {
	passwd, group := "", ""
	if uid != 0 {
		passwd, group = "root:x:0:0:root:/:/usr/sbin/nologin\n", "root:x:0:\n"
	}
	name := "agent"
	if uid == 0 {
		name = "root"
	}
	passwd += fmt.Sprintf("%s:x:%d:%d:agent:%s:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n", name, uid, gid, home)
	group += fmt.Sprintf("%s:x:%d:\nnogroup:x:65534:\n", name, gid)
	out := []stage.File{
		{Path: "/etc/passwd", Content: passwd},
		{Path: "/etc/group", Content: group},
		{Path: "/etc/nsswitch.conf", Content: "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
	}
	if network != Open {
		out = append(out, stage.File{Path: "/etc/hosts", Content: "127.0.0.1 localhost " + hostname + "\n::1 localhost\n"})
	}
	return out
}

// authorities adds the certificates named by the environment, if they are outside the system.
func (v *view) authorities(env []string) {
	for _, entry := range env {
		name, path, _ := strings.Cut(entry, "=")
		switch name {
		case "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS":
			if filepath.IsAbs(path) && exists(path) && !v.shows(path) {
				v.show(readOnly, path)
			}
		}
	}
}

// program adds the CLI's files and returns it with links resolved. For a Node package it shows the whole folder,
// otherwise the file.
func (v *view) program(command []string) ([]string, error) {
	out := slices.Clone(command)
	for i, word := range out {
		if !filepath.IsAbs(word) {
			continue
		}
		path, err := filepath.EvalSymlinks(word)
		if err != nil {
			if i == 0 {
				return nil, fmt.Errorf("the CLI %s cannot be found: %w", word, err)
			}
			continue // an argument that merely begins with a slash
		}
		if slices.Contains(v.native, filepath.Dir(path)) {
			continue
		}
		out[i] = path
		if v.shows(path) {
			continue
		}
		if dir := filepath.Dir(path); exists(filepath.Join(dir, "package.json")) {
			path = dir
		}
		v.show(readOnly, path)
	}
	return out, nil
}

// room checks that the session's folders exist and do not contain the system.
func (v *view) room(folders ...string) error {
	for _, p := range folders {
		if !filepath.IsAbs(p) || p != filepath.Clean(p) {
			return fmt.Errorf("%q is not an absolute path", p)
		}
		if info, err := os.Stat(p); err != nil || !info.IsDir() {
			return fmt.Errorf("there is no folder %s", p)
		}
		for at := range v.at {
			if within(p, at) {
				return fmt.Errorf("%s holds %s, which is the system's; a session works in a folder of its own", p, at)
			}
		}
	}
	return nil
}

// place adds the session's folders and sockets.
func (v *view) place(s Session) error {
	for _, p := range s.ReadOnly {
		v.show(readOnly, p)
	}
	v.show(writable, s.Workspace)
	v.show(writable, s.Home)
	for _, folder := range append([]string{s.Workspace}, s.Repositories...) {
		if err := v.repository(folder); err != nil {
			return err
		}
	}
	return nil
}

// hide covers the bot's own files where they are visible, except the session's own inside them. A see entry among
// them is refused.
func (v *view) hide(hidden, see []string) error {
	for _, h := range hidden {
		path, err := filepath.Abs(h)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("what is to be hidden cannot be found: %w", err)
		}
		for _, p := range see {
			if target, err := filepath.EvalSymlinks(p); err == nil && within(path, target) {
				return fmt.Errorf("%s, which sandbox.see names, is the bot's own (%s) and never shown", p, h)
			}
		}
		if err := v.cover(path); err != nil {
			return err
		}
	}
	return nil
}

// cover hides a resolved path of the host under something empty.
func (v *view) cover(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	kind := emptyFile
	if info.IsDir() {
		kind = emptyFolder
	}
	for at, m := range v.at {
		if m.kind != readOnly && m.kind != writable {
			continue
		}
		source, err := v.resolved(m.source)
		if err != nil {
			return err
		}
		switch {
		case source == path:
			return fmt.Errorf("%s is to be seen and is the bot's own; name another folder", at)
		case within(source, path):
			v.put(filepath.Join(at, strings.TrimPrefix(path, source)), kind, "")
		}
	}
	return nil
}

// resolved is a path of this machine without links. It is cached, since a view asks for each repeatedly.
func (v *view) resolved(path string) (string, error) {
	if known, ok := v.links[path]; ok {
		return known, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		v.links[path] = target
	}
	return target, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// environ is the session's environment without variables that name missing places. New branches do not track others
// automatically: that would be written to the repository's configuration, which is read-only.
func environ(env []string) []string {
	const count = "GIT_CONFIG_COUNT="
	out := make([]string, 0, len(env)+4)
	settings := 0
	for _, entry := range env {
		switch {
		case strings.HasPrefix(entry, "TMPDIR="):
		case strings.HasPrefix(entry, count):
			settings, _ = strconv.Atoi(strings.TrimPrefix(entry, count)) // git refuses an invalid number
		default:
			out = append(out, entry)
		}
	}
	return append(
		out, "TMPDIR=/tmp", fmt.Sprintf("%s%d", count, settings+1),
		fmt.Sprintf("GIT_CONFIG_KEY_%d=branch.autoSetupMerge", settings), fmt.Sprintf("GIT_CONFIG_VALUE_%d=false", settings),
	)
}
