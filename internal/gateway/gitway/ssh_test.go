package gitway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/gateway/gitway/forgetest"
)

// By ssh the bot shows the project's key to hosts that it knows, whatever its user has
// configured; the session knows of neither. The ssh here writes down how it is called and
// is the other side itself.
func TestByADeployKey(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	dir := forgetest.Folder(t)
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >> " + dir + "/said\necho -- >> " + dir + "/said\nfor last; do :; done\ncd " + filepath.Dir(filepath.Dir(f.Bare("web"))) + "\nexec sh -c \"git ${last#git-}\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	env := forgetest.Environ()
	env[0] = "PATH=" + dir + ":" + os.Getenv("PATH")
	r := Remote{
		Upstream: Upstream{URL: "git@forge.example:team/web.git", Access: Access{KeyFile: "/keys/it's a key", KnownHosts: "/keys/known"}},
		Environ:  env,
	}
	v := newVisit(t, f, r)
	for _, url := range []string{"git@forge.example:team/web.git", "https://forge.example/team/web.git", "ssh://git@forge.example/team/web.git"} {
		if out, err := forgetest.Git(t, "", v.env, "ls-remote", url); err != nil {
			t.Error(url, err, out)
		}
	}
	if out, err := forgetest.Git(t, "", v.env, "clone", "-q", r.URL, v.work); err != nil {
		t.Fatal(err, out)
	}
	v.AllowPush("toolu_1", Pass{})
	v.must("push", "-q", "origin", "HEAD:deckhand/x")
	if out := v.must("remote", "-v"); !strings.Contains(out, "git://git.invalid/forge.example/team/web.git (push)") {
		t.Error(out)
	}
	if got := f.Refs(); !strings.Contains(got, "refs/heads/deckhand/x") {
		t.Error(got)
	}
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"-F", "/dev/null", "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-oIdentityAgent=none", "-oStrictHostKeyChecking=yes", "-oForwardAgent=no",
		"-oGlobalKnownHostsFile=/dev/null", "-oUserKnownHostsFile=/keys/known", "-i", "/keys/it's a key",
	}, "\n")
	for call := range strings.SplitSeq(strings.TrimSuffix(string(said), "--\n"), "--\n") {
		if !strings.HasPrefix(call, want+"\n") || !strings.Contains(call, "git@forge.example\ngit-") {
			t.Errorf("ssh was called with\n%s", call)
		}
	}
}
