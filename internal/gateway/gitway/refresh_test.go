package gitway

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/gateway/gitway/forgetest"
)

// A fetch brings what the forge has into a folder of ours, tells its default branch, and
// leaves the credential nowhere.
func TestFetch(t *testing.T) {
	t.Setenv(forgetest.TokenEnv, forgetest.Password)
	f := forgetest.New(t)
	f.Git(f.Work("web"), "tag", "v1")
	f.Git(f.Work("web"), "push", "-q", "origin", "v1", "HEAD:refs/heads/side", "HEAD:refs/hidden/x")
	f.Git(f.Bare("web"), "symbolic-ref", "HEAD", "refs/heads/side")
	dir := filepath.Join(forgetest.Folder(t), "into")
	if err := makeRepository(dir, 0); err != nil {
		t.Fatal(err)
	}
	head, err := remoteOf(f, "web").Fetch(t.Context(), dir, "refs/fetched/heads", "refs/fetched/tags")
	if err != nil || head != "side" {
		t.Fatalf("%q, %v", head, err)
	}
	if got := f.Git(dir, "for-each-ref", "--format=%(refname)"); strings.TrimSpace(got) != "refs/fetched/heads/main\nrefs/fetched/heads/side\nrefs/fetched/tags/v1" {
		t.Errorf("it has\n%s", got)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if text, _ := os.ReadFile(path); strings.Contains(string(text), forgetest.Password) {
				t.Errorf("%s has the password", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A forge that takes the call and says nothing, and one that sends too much, are left.
func TestAForgeThatTakesItsTime(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	dir := filepath.Join(forgetest.Folder(t), "into")
	if err := makeRepository(dir, 0); err != nil {
		t.Fatal(err)
	}
	silent := Remote{Upstream: Upstream{URL: "http://" + l.Addr().String() + "/team/web.git"}, Environ: forgetest.Environ()}
	bounds := fetchLimits{all: time.Minute, quiet: 50 * time.Millisecond, pace: 10 * time.Millisecond, bytes: 1 << 30}
	if _, err := silent.fetch(t.Context(), dir, "refs/a", "refs/b", bounds); err == nil || err.Error() != "it said nothing for 50ms" {
		t.Errorf("silence: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "objects/pack/tmp_pack_x"), make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	bounds.quiet, bounds.bytes = time.Minute, 2<<20
	if _, err := silent.fetch(ctx, dir, "refs/a", "refs/b", bounds); err == nil || err.Error() != "it sent more than 2 MiB" {
		t.Errorf("too much: %v", err)
	}
}
