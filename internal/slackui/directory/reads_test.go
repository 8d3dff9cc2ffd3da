package directory

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"
)

// TestReads: of a private channel its members read, in the archive, too, and nobody else.
func TestReads(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		channels := map[string]string{
			"COPEN": `{"id":"COPEN"}`, "CSHUT": `{"id":"CSHUT","is_private":true}`, "COLD": `{"id":"COLD","is_private":true,"is_archived":true}`,
			"DIM": `{"id":"DIM","is_im":true}`,
		}
		switch c := r.FormValue("channel"); {
		case r.URL.Path == "/conversations.info" && channels[c] != "":
			fmt.Fprintf(w, `{"ok":true,"channel":%s}`, channels[c])
		case r.URL.Path == "/users.conversations" && r.FormValue("user") == "UIN":
			old := "," + channels["COLD"]
			if r.FormValue("exclude_archived") == "true" {
				old = ""
			}
			fmt.Fprintf(w, `{"ok":true,"channels":[%s%s]}`, channels["CSHUT"], old)
		case r.URL.Path == "/users.conversations" && r.FormValue("user") == "ULEFT":
			fmt.Fprint(w, `{"ok":true,"channels":[]}`)
		default:
			fmt.Fprint(w, `{"ok":false,"error":"channel_not_found"}`)
		}
	}))
	t.Cleanup(server.Close)
	d := New(slackgo.New("xoxb-1", slackgo.OptionAPIURL(server.URL+"/")), zap.NewNop())
	for channel, want := range map[string][3]bool{
		"COPEN": {true, true, true}, "CSHUT": {true, false, false}, "COLD": {true, false, false}, "DIM": {}, "CGONE": {},
	} {
		for i, user := range []string{"UIN", "ULEFT", "UUNKNOWN"} {
			if got := d.Reads(t.Context(), user, channel); got != want[i] {
				t.Errorf("%s reads %s: %v", user, channel, got)
			}
		}
	}
}
