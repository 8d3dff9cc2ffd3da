package place

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/attachment"
)

// pageVariable makes the test binary serve a page: the file colour, or red if the address that the
// variable names can be reached.
const pageVariable = "DECKHAND_TEST_PAGE"

func servePage() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		colour, err := os.ReadFile("node_modules/colour")
		if own, err2 := os.ReadFile("colour"); err2 == nil {
			colour, err = own, nil
		}
		if conn, err := net.DialTimeout("tcp", os.Getenv(pageVariable), time.Second); err == nil { //nolint:noctx // a test
			_ = conn.Close()
			colour = []byte("#ff0000")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<title>x</title><body><script>setTimeout(() => document.body.style.background = %q, 1000)</script>", strings.TrimSpace(string(colour)))
	})
	fmt.Println("serving from", os.Args[0])
	fmt.Println(http.ListenAndServe("127.0.0.1:3000", nil)) //nolint:gosec // a test
	os.Exit(1)
}

func TestMain(m *testing.M) {
	attachment.RunHelper()
	if os.Getenv(pageVariable) != "" {
		servePage()
	}
	// A watcher ends at its next look, when nothing is watched any more.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("deckhand/internal/sandbox.(*Watcher).run"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
