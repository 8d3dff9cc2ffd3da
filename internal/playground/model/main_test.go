package model

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(disconnecting{m})
}

// disconnecting closes the connections that the tests' client keeps for the
// next request, so that none is taken for a leak.
type disconnecting struct{ *testing.M }

func (d disconnecting) Run() int {
	code := d.M.Run()
	http.DefaultClient.CloseIdleConnections()
	return code
}

// golden compares got with testdata/name, or rewrites that file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
