package slack

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	maxUpload  = 64 << 20
	uploadLife = 10 * time.Minute
)

// file is one uploaded file; its contents lie beside the state file, or in
// memory when there is none.
type file struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Type     string   `json:"mimetype"`
	Size     int      `json:"size"`
	User     string   `json:"user"`
	Created  int64    `json:"created"`
	Channels []string `json:"channels,omitempty"`
	Deleted  bool     `json:"deleted,omitempty"`
	Alt      string   `json:"alt,omitempty"`

	content []byte // nil once it is on disk
}

// upload is an upload that was announced and may not be complete.
type upload struct {
	file   *file
	size   int
	done   bool
	expiry time.Time
}

// fileKnown says whether blocks may refer to a file.
func (s *Server) fileKnown(id string) bool {
	f := s.ws.Files[id]
	return f != nil && !f.Deleted
}

// wireFiles renders the files of a message.
func (s *Server) wireFiles(ids []string) []any {
	out := []any{}
	for _, id := range ids {
		if f := s.ws.Files[id]; f != nil && !f.Deleted {
			out = append(out, s.wireFile(f))
		} else {
			out = append(out, object{"id": id, "mode": "tombstone"})
		}
	}
	return out
}

// wireFile renders a file as files.info does.
func (s *Server) wireFile(f *file) object {
	u := s.base() + "/files/" + TeamID + "/" + f.ID + "/" + pathEscape(f.Name)
	kind := strings.TrimPrefix(strings.ToLower(filepath.Ext(f.Name)), ".")
	mode := "hosted"
	if strings.HasPrefix(f.Type, "text/") {
		mode = "snippet"
		if kind == "" || kind == "txt" {
			kind = "text"
		}
	}
	if kind == "" {
		kind = "binary"
	}
	o := object{
		"id": f.ID, "created": f.Created, "timestamp": f.Created, "name": f.Name, "title": f.Title,
		"mimetype": f.Type, "filetype": kind, "pretty_type": strings.ToUpper(kind), "user": f.User,
		"user_team": s.teamOf(f.User), "editable": mode == "snippet", "size": f.Size, "mode": mode,
		"is_external": false, "external_type": "", "is_public": true, "public_url_shared": false,
		"display_as_bot": false, "username": "", "url_private": u, "url_private_download": u + "?download=1",
		"permalink": u, "file_access": "visible", "has_rich_preview": false, "media_display_type": "unknown",
		"channels": []any{}, "groups": []any{}, "ims": []any{}, "comments_count": 0,
	}
	for _, id := range f.Channels {
		list := "channels"
		if c := s.ws.channel(id); c != nil && c.Kind == kindPrivate {
			list = "groups"
		} else if c != nil && c.Kind == kindIM {
			list = "ims"
		}
		o[list] = append(o[list].([]any), id)
	}
	if strings.HasPrefix(f.Type, "image/") {
		for _, size := range []string{"thumb_64", "thumb_80", "thumb_360"} {
			o[size] = u
		}
	}
	if f.Alt != "" {
		o["alt_txt"] = f.Alt
	}
	return o
}

// pathEscape keeps a file's name one segment of a path.
func pathEscape(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r < 0x80 && strings.ContainsRune(lowerAlnum+strings.ToUpper(lowerAlnum)+"._-", r) {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	if strings.Trim(b.String(), ".") == "" {
		return "file"
	}
	return b.String()
}

// guessType finds a file's media type by its name and contents.
func guessType(name string, content []byte) string {
	t := mime.TypeByExtension(filepath.Ext(name))
	if t == "" {
		t = http.DetectContentType(content)
	}
	media, _, err := mime.ParseMediaType(t)
	if err != nil {
		return "application/octet-stream"
	}
	return media
}

func (s *Server) filesGetUploadURL(c *call) (object, error) {
	name := c.str("filename")
	size, err := strconv.Atoi(c.str("length"))
	switch {
	case name == "":
		return nil, failBecause("invalid_arguments", "missing required field: filename [json-pointer:/filename]")
	case err != nil || size <= 0:
		return nil, failBecause("invalid_arguments", "must be a positive number [json-pointer:/length]")
	case size > maxUpload:
		return nil, fail("file_upload_size_restricted")
	}
	alt := c.str("alt_txt")
	if alt == "" {
		alt = c.str("alt_text")
	}
	if len([]rune(alt)) > 1000 {
		return nil, fail("alt_txt_too_large")
	}
	for k, u := range s.uploads {
		if now().After(u.expiry) {
			delete(s.uploads, k)
		}
	}
	f := &file{ID: newID("F"), Name: name, Title: name, User: BotUser, Alt: alt}
	ticket := randomString(32, lowerAlnum)
	s.uploads[ticket] = &upload{file: f, size: size, expiry: now().Add(uploadLife)}
	return object{"upload_url": "http://" + c.host + "/files/upload/" + ticket, "file_id": f.ID}, nil
}

// serveUpload takes the bytes of an announced upload, as a form or as they are.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	s.seen(r)
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload+1<<20)
	raw, err := uploadBody(r)
	if err != nil {
		http.Error(w, "unreadable upload", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uploads[r.PathValue("ticket")]
	switch {
	case u == nil || now().After(u.expiry):
		http.Error(w, "upload url expired or unknown", http.StatusNotFound)
		return
	case len(raw) != u.size:
		http.Error(w, "length does not match", http.StatusBadRequest)
		return
	}
	u.file.content, u.file.Size, u.file.Type = raw, len(raw), guessType(u.file.Name, raw)
	u.done = true
	_, _ = fmt.Fprintf(w, "OK - %d", len(raw))
}

func uploadBody(r *http.Request) ([]byte, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "multipart/form-data" {
		return io.ReadAll(r.Body)
	}
	form, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	for {
		part, err := form.NextPart()
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			return io.ReadAll(part)
		}
	}
}

func (s *Server) filesCompleteUpload(c *call) (object, error) {
	list, err := c.list("files")
	if err != nil || len(list) == 0 {
		return nil, failBecause("invalid_arguments", "must provide an array of files [json-pointer:/files]")
	}
	var targets []*channel
	for _, id := range append(c.strs("channels"), c.strs("channel_id")...) {
		ch, err := s.postable(id)
		if err != nil {
			return nil, err
		}
		targets = append(targets, ch)
	}
	var thread string
	if len(targets) > 0 {
		if thread, err = s.threadOf(targets[0], c.str("thread_ts")); err != nil {
			return nil, err
		}
	}
	blocks, err := s.blocksArg(c, surfaceMessage)
	if err != nil {
		return nil, err
	}
	var tickets []string
	for _, raw := range list {
		o, _ := raw.(object)
		id := text(o["id"])
		ticket := ""
		for k, u := range s.uploads {
			if u.file.ID == id && u.done {
				ticket = k
				if t := text(o["title"]); t != "" {
					u.file.Title = t
				}
			}
		}
		if ticket == "" || slices.Contains(tickets, ticket) {
			return nil, fail("file_not_found")
		}
		tickets = append(tickets, ticket)
	}
	var ids []string
	out := []any{}
	for _, ticket := range tickets {
		f := s.uploads[ticket].file
		delete(s.uploads, ticket)
		if err := s.keepFile(f); err != nil {
			return nil, fail("fatal_error")
		}
		for _, ch := range targets {
			f.Channels = append(f.Channels, ch.ID)
		}
		ids = append(ids, f.ID)
		out = append(out, s.wireFile(f))
	}
	for _, ch := range targets {
		for _, id := range ids {
			s.emitFileShared(s.ws.Files[id], ch)
		}
		s.post(&message{
			TS: s.ws.nextTS(now()), Channel: ch.ID, User: BotUser, Bot: true, Text: c.str("initial_comment"),
			Blocks: blocks, ThreadTS: thread, Files: ids,
		})
	}
	return object{"files": out}, nil
}

// keepFile makes a file part of the workspace.
func (s *Server) keepFile(f *file) error {
	f.Created = now().Unix()
	if s.opts.StateFile != "" {
		if err := writeFile(filepath.Join(filesFolder(s.opts.StateFile), f.ID), f.content); err != nil {
			s.log.Error("an upload could not be saved", zap.Error(err))
			return err
		}
		f.content = nil
	}
	s.ws.Files[f.ID] = f
	return nil
}

func (s *Server) findFile(c *call) (*file, error) {
	f := s.ws.Files[c.str("file")]
	switch {
	case f == nil:
		return nil, fail("file_not_found")
	case f.Deleted:
		return nil, fail("file_deleted")
	}
	return f, nil
}

func (s *Server) filesInfo(c *call) (object, error) {
	f, err := s.findFile(c)
	if err != nil {
		return nil, err
	}
	return object{"file": s.wireFile(f), "comments": []any{}, "response_metadata": object{"next_cursor": ""}}, nil
}

func (s *Server) filesList(c *call) (object, error) {
	var list []*file
	for _, f := range s.ws.Files {
		if !f.Deleted && (c.str("channel") == "" || slices.Contains(f.Channels, c.str("channel"))) && (c.str("user") == "" || c.str("user") == f.User) {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *file) int {
		if a.Created != b.Created {
			return int(b.Created - a.Created)
		}
		return strings.Compare(a.ID, b.ID)
	})
	out := []any{}
	for _, f := range list[:min(len(list), 100)] {
		out = append(out, s.wireFile(f))
	}
	return object{"files": out, "paging": object{"count": 100, "total": len(list), "page": 1, "pages": 1}}, nil
}

func (s *Server) filesDelete(c *call) (object, error) {
	f, err := s.findFile(c)
	if err != nil {
		return nil, err
	}
	if f.User != BotUser {
		return nil, fail("cant_delete_file")
	}
	f.Deleted, f.content = true, nil
	if s.opts.StateFile != "" {
		if err := os.Remove(filepath.Join(filesFolder(s.opts.StateFile), f.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Warn("a deleted file stays on disk", zap.Error(err))
		}
	}
	for _, list := range s.ws.Messages {
		for _, m := range list {
			if slices.Contains(m.Files, f.ID) {
				s.liveMessage(m)
			}
		}
	}
	return nil, nil
}

// serveFile gives a file's contents to the app, by its token, and to the page,
// which asks from this very address.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.seen(r)
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if (token != s.ws.BotToken || s.scoped("files:read") != nil) && !fromPage(r) {
		http.Redirect(w, r, s.base()+"/?redir="+pathEscape(r.URL.Path), http.StatusFound) // Slack sends strangers to its sign-in page
		return
	}
	s.mu.Lock()
	f := s.ws.Files[r.PathValue("id")]
	var content []byte
	var err error
	if f != nil && !f.Deleted {
		if content = f.content; content == nil && s.opts.StateFile != "" {
			content, err = os.ReadFile(filepath.Join(filesFolder(s.opts.StateFile), f.ID))
		}
	}
	s.mu.Unlock()
	if f == nil || f.Deleted || err != nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.Type)
	h.Set("X-Content-Type-Options", "nosniff")
	// A page that somebody uploaded must not run as ours.
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	disposition := "inline"
	if r.URL.Query().Get("download") != "" {
		disposition = "attachment"
	}
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": f.Name}))
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content)
}
