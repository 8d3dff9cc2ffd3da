package slackui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/attachment"
	"deckhand/internal/chat"
	"deckhand/internal/store/inbox"
)

// TestAFileIsFetchedFromSlackAlone has a Slack that says all kinds of things of files, and
// another machine, which must never see the token.
func TestAFileIsFetchedFromSlackAlone(t *testing.T) {
	t.Parallel()
	var strangers, limited atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		strangers.Add(1)
		if r.Header.Get("Authorization") != "" {
			t.Error("another machine was shown the token")
		}
		_, _ = fmt.Fprint(w, "not Slack's")
	}))
	t.Cleanup(stranger.Close)
	info := map[string]string{
		"FGOOD": `"name":"a.txt","mode":"hosted","size":5,"url_private_download":"SLACK/files/good"`,
		"FBUSY": `"name":"b.txt","mode":"snippet","size":5,"url_private":"SLACK/files/good"`,
		"FHUGE": `"name":"c.iso","mode":"hosted","size":2147483648,"url_private":"SLACK/files/good"`,
		"FLIES": `"name":"d.iso","mode":"hosted","size":5,"url_private":"SLACK/files/endless"`,
		"FDRIV": `"name":"e","mode":"external","is_external":true,"url_private":"STRANGER/e"`,
		"FHOST": `"name":"f","mode":"hosted","size":5,"url_private":"STRANGER/f"`,
		"FAWAY": `"name":"g","mode":"hosted","size":5,"url_private":"SLACK/files/away"`,
		"FTEAM": `"name":"h","mode":"hosted","size":5,"user_team":"TOTHER","url_private":"SLACK/files/good"`,
		"FOURS": `"name":"i.txt","mode":"hosted","size":5,"user_team":"T1","file_access":"visible","url_private":"SLACK/files/good"`,
		"FGONE": `"mode":"tombstone"`,
		"FHIDE": `"mode":"hidden_by_limit"`,
		"FLOCK": `"name":"j","mode":"hosted","file_access":"access_denied"`,
		"FLIST": `"name":"k","mode":"quip","url_private":"SLACK/files/good"`,
		"FSIGN": `"name":"l","mode":"hosted","size":5,"url_private":"SLACK/files/signin"`,
	}
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/files.info":
			id := r.FormValue("file")
			if id == "FBUSY" && limited.Add(1) == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			says, ok := info[id]
			if !ok {
				_, _ = fmt.Fprintf(w, `{"ok":false,"error":%q}`, map[string]string{"FSCOPE": "missing_scope", "FODD": "fatal_error"}[id]+strings.Repeat("file_deleted", len(id)/8))
				return
			}
			says = strings.NewReplacer("SLACK", srv.URL, "STRANGER", stranger.URL).Replace(says)
			_, _ = fmt.Fprintf(w, `{"ok":true,"file":{"id":%q,%s}}`, id, says)
		case "/files/good":
			if r.Header.Get("Authorization") != "Bearer xoxb-1" {
				t.Error("without the token")
			}
			_, _ = fmt.Fprint(w, "hello")
		case "/files/endless":
			for range 100 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/files/away":
			http.Redirect(w, r, stranger.URL+"/away", http.StatusFound)
		case "/files/signin":
			http.Redirect(w, r, "/?redir=/files/signin", http.StatusFound)
		}
	}))
	t.Cleanup(srv.Close)
	client := slack.New("xoxb-1", slack.OptionAPIURL(srv.URL+"/api/"), slack.OptionHTTPClient(&http.Client{CheckRedirect: onlyToSlack}))
	a := newApp(Config{Config: chat.Config{Log: zap.NewNop()}}, client, identity{TeamID: "T1"})
	got := map[string]string{}
	for id := range info {
		got[id] = fetched(t.Context(), a, id)
	}
	for _, id := range []string{"FDELETED", "FSCOPE"} {
		got[id] = fetched(t.Context(), a, id)
	}
	if diff := cmp.Diff(map[string]string{
		"FGOOD": "a.txt: hello", "FBUSY": "b.txt: hello", "FOURS": "i.txt: hello",
		"FHUGE": "is too large: the limit is 8 KiB", "FLIES": "is too large: the limit is 8 KiB",
		"FDRIV": "does not lie in Slack but somewhere else, such as Google Drive. Attach the file itself",
		"FHOST": "an error", "FAWAY": "an error", "FSIGN": "an error",
		"FTEAM": "belongs to another team, and only this one's files are taken",
		"FGONE": "was deleted", "FHIDE": "is hidden by the limit of this Slack plan", "FLOCK": "may not be seen by Deckhand, as Slack says",
		"FLIST":    "is a document of Slack's own, such as a canvas. Attach it as a file, or paste its text",
		"FDELETED": "was deleted, or may not be seen by Deckhand",
		"FSCOPE":   "cannot be read: the Slack app lacks the scope files:read. Ask an admin to add it, as bot doctor says",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := strangers.Load(); n != 0 {
		t.Errorf("%d calls to another machine", n)
	}
}

func fetched(ctx context.Context, a *App, id string) string {
	name, content, err := a.Fetch(ctx, inbox.PromptFile{ID: id}, 8<<10)
	if refused, ok := errors.AsType[*attachment.Refusal](err); ok {
		return refused.Why
	}
	if err != nil {
		return "an error"
	}
	return name + ": " + string(content)
}

// TestFilesStayWithTheirMessage: when it is found in Slack's record, when its author edits
// it, and when it was said before Deckhand was asked into the thread.
func TestFilesStayWithTheirMessage(t *testing.T) {
	t.Parallel()
	a := newApp(Config{Config: chat.Config{Log: zap.NewNop()}}, slack.New("xoxb-1"), identity{TeamID: "T1", UserID: "UBOT"})
	var m slack.Message
	m.User, m.Text, m.Timestamp, m.SubType, m.Files = "U1", "<@UBOT> look", "1.0", "file_share", []slack.File{{ID: "F1", Name: "a.png", Mimetype: "text/html"}}
	in, err := a.screen.FromRecord("C1", a.screen.post(m), false)
	if err != nil || in == nil {
		t.Fatal(in, err)
	}
	if diff := cmp.Diff([]inbox.PromptFile{{ID: "F1", Name: "a.png"}}, in.Message.PromptFiles()); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		files []chat.SharedFile
		want  []inbox.PromptFile
	}{
		"its words": {nil, []inbox.PromptFile{{ID: "F1", Name: "a.png"}}},
		"a file":    {[]chat.SharedFile{{ID: "F2", Name: "..\\b\u202e.png"}}, []inbox.PromptFile{{ID: "F2", Name: "b.png"}}},
	} {
		change := edit{text: "<@UBOT> look again", edit: messageEdit{User: "U1", TS: "2.0"}, files: c.files}
		changed, ok, err := change.apply(in.Row.Payload)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		again, err := a.screen.decode(envelope{Type: "events_api", Payload: changed})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, again.Message.PromptFiles()); diff != "" || again.Message.Text != change.text {
			t.Errorf("%s was changed (-want +got):\n%s", name, diff)
		}
	}
	// A mention may come as two events, of which the first has no files.
	without := m
	without.Files = nil
	first, err := a.screen.FromRecord("C1", a.screen.post(without), false)
	if err != nil {
		t.Fatal(err)
	}
	changed, ok, err := in.Message.AddFiles(first.Row.Payload)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if again, err := a.screen.decode(envelope{Type: "events_api", Payload: changed}); err != nil || len(again.Message.Files) != 1 || again.Message.Text != m.Text {
		t.Errorf("completed: %+v, %v", again, err)
	}
	if _, ok, err := in.Message.AddFiles(changed); ok || err != nil {
		t.Error("files were added again", err)
	}
}
