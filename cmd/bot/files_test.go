package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// attach posts a message with files as a person, in the story's thread, and returns its ts.
func (w *world) attach(user, text string, files map[string]string) (prompt string) {
	w.t.Helper()
	var given []map[string]string
	for name, content := range files {
		given = append(given, map[string]string{"name": name, "content_base64": base64.StdEncoding.EncodeToString([]byte(content))})
	}
	in := map[string]any{"user": user, "channel": eng, "text": text, "files": given}
	if w.thread != "" {
		in["thread_ts"] = w.thread
	}
	var out struct {
		TS string `json:"ts"`
	}
	w.must(http.MethodPost, "/_control/messages", in, &out)
	if w.thread == "" {
		w.thread = out.TS
	}
	return out.TS
}

// filesReachTheModel: what a person attaches is seen by the model and lies in the folder
// that it works in, without where a picture was taken; what is not taken is named.
func filesReachTheModel(t *testing.T, w *world) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, 40, 20)), nil); err != nil {
		t.Fatal(err)
	}
	const place = "Exif\x00\x00 52.5200N 13.4050E"
	photo := "\xff\xd8\xff\xe1\x00" + string(rune(len(place)+2)) + place + b.String()[2:]
	prompt := w.attach(linus, "@deckhand what came with this?", map[string]string{
		"beach.jpg": photo, "../../notes.md": "# The plan\nis simple", "IMG_1.HEIC": "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic",
	})
	answer := w.says(eng, w.thread, "a picture of 40 × 20 pixels (image/jpeg)")
	if !strings.Contains(answer.all(), "the text “notes.md” (# The plan is simple)") {
		t.Errorf("the text did not arrive: %s", answer.all())
	}
	w.says(eng, w.thread, "“IMG_1.HEIC” is HEIC, which isn't supported")
	w.done(eng, w.thread, prompt)
	inbox, err := filepath.Glob(filepath.Join(w.Workspace, ".deckhand/inbox/*/*/*"))
	var kept string
	for _, f := range inbox {
		if filepath.Base(f) == "beach.jpg" {
			kept = f
		}
	}
	if err != nil || kept == "" {
		t.Fatalf("in the inbox: %q, %v", inbox, err)
	}
	if content, err := os.ReadFile(kept); err != nil || bytes.Contains(content, []byte("52.5200N")) {
		t.Errorf("the place where it was taken is in the inbox: %v", err)
	}
	git := exec.CommandContext(t.Context(), "git", "-C", w.Workspace, "status", "--porcelain")
	if out, err := git.Output(); err != nil || strings.Contains(string(out), ".deckhand") {
		t.Errorf("git sees the inbox: %s, %v", out, err)
	}

	// A picture that a tool returns is shown in the thread, once; none that came from there.
	var shot bytes.Buffer
	if err := png.Encode(&shot, image.NewRGBA(image.Rect(0, 0, 30, 30))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.Workspace, "shot.png")
	if err := os.WriteFile(path, shot.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	read := `tool: Read {"file_path":"` + path + `"}` + "\n"
	prompt = w.post(linus, eng, w.thread, read+`tool: Read {"file_path":"`+kept+`"}`+"\n"+read+"say: seen")
	w.done(eng, w.thread, prompt)
	shown := w.find(eng, w.thread, "the picture", func(m message) bool { return m.User == w.BotUser && len(m.Files) > 0 })
	if f := shown.Files[0]; f.Alt != "A picture that Read has returned: shot.png" || f.Name != "shot.png" {
		t.Errorf("it is shown as %+v", f)
	}
	shots := 0
	for _, m := range w.messages(eng, w.thread) {
		if m.User == w.BotUser {
			shots += len(m.Files)
		}
	}
	if shots != 1 {
		t.Errorf("%d pictures are shown", shots)
	}

	// A picture alone is work, too; and of files alone that are not taken the answer is why.
	prompt = w.attach(linus, "", map[string]string{"again.jpg": photo})
	w.says(eng, w.thread, "You attached a picture of 40 × 20 pixels (image/jpeg)")
	w.done(eng, w.thread, prompt)
	prompt = w.attach(linus, "", map[string]string{"cut.png": "\x89PNG\r\n\x1a\n"})
	w.says(eng, w.thread, "“cut.png” is damaged or incomplete")
	w.find(eng, w.thread, "the mark of what failed", func(m message) bool { return m.TS == prompt && m.reacted("warning") })
}

// sessionsPostFiles: a session posts a file of its workspace into its own thread, without secrets
// and nothing that a link leads to; a file that looks like a secret is asked about; and it reads
// what is said in its thread.
func sessionsPostFiles(t *testing.T, w *world) {
	var chart bytes.Buffer
	if err := png.Encode(&chart, image.NewRGBA(image.Rect(0, 0, 30, 30))); err != nil {
		t.Fatal(err)
	}
	const token = "xoxb-" + "1111111111-2222222222-AbCdEfGhIjKlMnOpQrStUvWx"
	for name, content := range map[string]string{"chart.png": chart.String(), "table.csv": "day,key\n1," + token + "\n", ".env": "KEY=1"} {
		path := filepath.Join(w.Workspace, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(path) })
	}
	link := filepath.Join(w.Workspace, "hosts.txt")
	if err := os.Symlink("/etc/hosts", link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(link) })

	thread := w.post(grace, eng, "", "@deckhand say: ready")
	w.done(eng, thread, thread)
	prompt := w.callsTool(linus, thread, "post_file", map[string]any{"path": "chart.png", "title": "Sold by day"})
	w.done(eng, thread, prompt)
	posted := func(name string) message {
		return w.find(eng, thread, name, func(m message) bool {
			return m.User == w.BotUser && len(m.Files) > 0 && m.Files[0].Name == name
		})
	}
	posted("chart.png")
	prompt = w.callsTool(linus, thread, "post_file", map[string]any{"path": filepath.Join(w.Workspace, "table.csv")})
	w.done(eng, thread, prompt)
	posted("table.csv")
	if got := w.download(eng, thread); !strings.Contains(got, "day,key") || strings.Contains(got, token) {
		t.Errorf("the table that was posted is %q", got)
	}
	for _, bad := range []string{"hosts.txt", "../../etc/hosts", "/etc/hosts", "nothing.txt", "."} {
		prompt = w.callsTool(linus, thread, "post_file", map[string]any{"path": bad})
		if strings.Contains(bad, "hosts") { // outside the workspace: somebody is asked, and it is not posted either
			w.click(ada, eng, w.find(eng, thread, "the card about "+bad, func(m message) bool { return m.TS > prompt && m.has("approve") }).TS, "approve")
		}
		w.done(eng, thread, prompt)
	}
	prompt = w.callsTool(linus, thread, "post_file", map[string]any{"path": ".env"})
	card := w.find(eng, thread, "the card about .env", func(m message) bool { return m.TS > prompt && m.has("deny") })
	w.click(ada, eng, card.TS, "deny")
	w.done(eng, thread, prompt)
	files := 0
	for _, m := range w.messages(eng, thread) {
		files += len(m.Files)
	}
	if files != 2 {
		t.Errorf("%d files are posted", files)
	}

	w.post(grace, eng, thread, "The meeting is at four.")
	prompt = w.callsTool(linus, thread, "read_thread", map[string]any{})
	w.done(eng, thread, prompt)
	if n := w.count(`SELECT count(*) FROM approvals WHERE tool_name = 'mcp__deckhand__read_thread' AND status = 'allowed' AND decided_via = 'rule'`); n != 1 {
		t.Errorf("%d readings of the thread were allowed", n)
	}
}
