package gitway

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"deckhand/internal/gateway/gitway/forgetest"
)

func TestFetchAndPush(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	if out := v.must("log", "--format=%s", "origin/HEAD"); out != "file 1 of web\nfile 0 of web\n" {
		t.Error(out)
	}
	if e := v.last(); e.Push || e.Repository != v.names[0] || len(e.Wanted) != 1 || e.Bytes == 0 {
		t.Errorf("the audit of a fetch: %+v", e)
	}
	v.commit("mine")
	if out, err := v.run("push", "origin", "HEAD:deckhand/x"); err == nil || !strings.Contains(out, "Pushing needs a decision of its own") {
		t.Error("a push that nobody has decided about:", err, out)
	}
	if e := v.last(); !e.Push || e.Refused == "" {
		t.Errorf("its audit: %+v", e)
	}
	v.AllowPush("toolu_1", Pass{})
	v.must("push", "origin", "HEAD:deckhand/x")
	old := strings.TrimSpace(v.must("rev-parse", "HEAD"))
	v.commit("more")
	v.must("push", "origin", "HEAD:deckhand/x")
	want := Event{
		Push: true, Repository: v.names[0], ToolUse: "toolu_1", Bytes: v.last().Bytes,
		Refs: []Ref{{Name: "refs/heads/deckhand/x", Old: old, New: strings.TrimSpace(v.must("rev-parse", "HEAD"))}},
	}
	if diff := gocmp.Diff(want, v.last()); diff != "" || want.Bytes == 0 {
		t.Error("the audit of a push:", diff)
	}
	v.EndPush("toolu_1")
	if out, err := v.run("push", "origin", "HEAD:deckhand/y"); err == nil {
		t.Error("a push after its tool use:", out)
	}
	// What others do is seen, and a branch of theirs is left alone.
	f.Git(f.Work("web"), "push", "-q", "origin", "HEAD~1:refs/heads/theirs")
	f.Commit("web", "theirs")
	f.Git(f.Work("web"), "push", "-q", "origin", "HEAD:main")
	v.must("fetch", "--prune", "-q")
	if out := v.must("for-each-ref", "--format=%(refname:short) %(subject)", "refs/remotes/origin"); out != "origin theirs\norigin/deckhand/x more\norigin/main theirs\norigin/theirs file 0 of web\n" && !strings.Contains(out, "origin/main theirs\norigin/theirs file 0 of web\n") {
		t.Error(out)
	}
	// A branch that takes in what the forge has already sends an empty pack.
	v.AllowPush("toolu_2", Pass{})
	v.must("merge", "-q", "--no-ff", "-m", "merged", "origin/main")
	v.must("push", "-q", "origin", "HEAD:deckhand/x", "origin/main:refs/heads/deckhand/same")
	if out := f.Refs(); out != "refs/heads/deckhand/same theirs\nrefs/heads/deckhand/x merged\nrefs/heads/main theirs\nrefs/heads/theirs file 0 of web\n" {
		t.Error(out)
	}
}

// What is refused leaves the forge as it was, and says why.
func TestPushesThatAreRefused(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	v.AllowPush("toolu_1", Pass{})
	v.must("push", "-q", "origin", "HEAD:deckhand/x")
	v.commit("mine")
	v.must("push", "-q", "origin", "HEAD:deckhand/x")
	v.must("tag", "v1")
	v.must("update-ref", "refs/odd", "HEAD")
	before := f.Refs()
	blob := strings.TrimSpace(v.must("hash-object", "-w", "/dev/null"))
	for _, c := range []struct{ name, args, want string }{
		{"main", "HEAD:main", "branches below deckhand/ alone"},
		{"another branch", "HEAD:feature", "branches below deckhand/ alone"},
		{"a tag", "v1", "branches below deckhand/ alone"},
		{"all tags", "--tags", "branches below deckhand/ alone"},
		{"a good one and a bad one", "HEAD:refs/heads/deckhand/good HEAD:refs/heads/main", "nothing of this push was done"},
		{"all at once", "--atomic HEAD:refs/heads/deckhand/good HEAD:refs/heads/main", "branches below deckhand/ alone"},
		{"capitals", "HEAD:refs/heads/Deckhand/x", "branches below deckhand/ alone"},
		{"the folder itself", "HEAD:refs/heads/deckhand", "branches below deckhand/ alone"},
		{"a name like it", "HEAD:refs/heads/deckhandx", "branches below deckhand/ alone"},
		{"another space of names", "HEAD:refs/deckhand/x", "branches below deckhand/ alone"},
		{"GitHub's", "HEAD:refs/pull/1/head", "branches below deckhand/ alone"},
		{"HEAD", "HEAD:HEAD", "branches below deckhand/ alone"},
		{"a name that could be an option", "HEAD:refs/heads/deckhand/a;b", "plain names alone"},
		{"a deletion", "--delete deckhand/x", "remote does not support deleting refs"},
		{"a forced push", "--force origin/main:refs/heads/deckhand/x", "a forced push has to be allowed as one"},
		{"one by a plus", "+origin/main:refs/heads/deckhand/x", "a forced push has to be allowed as one"},
		{"one that looks first", "--force-with-lease origin/main:refs/heads/deckhand/x", "a forced push has to be allowed as one"},
		{"everything", "--mirror", "branches below deckhand/ alone"},
		{"options of a push", "-o ci.skip HEAD:refs/heads/deckhand/y", "does not support push options"},
		{"a signature", "--signed HEAD:refs/heads/deckhand/y", "does not support --signed push"},
		{"a file", blob + ":refs/heads/deckhand/y", "invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"-c", "push.default=nothing", "push"}
			words := strings.Fields(c.args)
			options := slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") && w != "ci.skip" })
			if options < 0 {
				options = len(words)
			}
			args = append(append(append(args, words[:options]...), "origin"), words[options:]...)
			out, err := v.run(args...)
			if err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), c.want) {
				t.Errorf("%v: %s", err, out)
			}
			if now := f.Refs(); now != before {
				t.Errorf("the forge has\n%s", now)
			}
		})
	}
	f.Asked()
	if _, err := v.run("push", "origin", "HEAD:main"); err == nil {
		t.Error("pushed")
	}
	if asked := f.Asked(); slices.ContainsFunc(asked, func(s string) bool { return strings.Contains(s, "receive-pack") }) {
		t.Errorf("the forge heard of it: %q", asked)
	}
}

func TestAForcedPushIsAllowedAsOne(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	v.AllowPush("toolu_1", Pass{Force: true})
	v.commit("mine")
	v.must("push", "-q", "origin", "HEAD:deckhand/x")
	v.must("commit", "-q", "--amend", "--allow-empty", "-m", "better")
	v.must("push", "-q", "--force-with-lease", "origin", "HEAD:deckhand/x")
	v.must("push", "-q", "--force", "origin", "origin/main:refs/heads/deckhand/x")
	if out := f.Refs(); out != "refs/heads/deckhand/x file 1 of web\nrefs/heads/main file 1 of web\n" {
		t.Error(out)
	}
	for _, ref := range []string{"main", "feature"} {
		if out, err := v.run("push", "--force", "origin", "HEAD:refs/heads/"+ref); err == nil {
			t.Error(ref, out)
		}
	}
}

// A session reaches the repositories of its project, by the services of fetch and push.
func TestOtherRepositoriesAreNotReached(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	at := strings.TrimSuffix(v.names[0], "web")
	for _, args := range [][]string{
		{"ls-remote", f.URL("other")},
		{"ls-remote", "git://git.invalid/" + at + "other"},
		{"ls-remote", "git://git.invalid/" + at + "web/../other.git"},
		{"ls-remote", "git://git.invalid/" + f.Bare("web")},
		{"ls-remote", "git://git.invalid/"},
		{"archive", "--remote=git://git.invalid/" + at + "web", "HEAD"},
	} {
		if out, err := v.run(args...); err == nil || !strings.Contains(out, "There is no way to this repository") && !strings.Contains(out, "carries fetches and pushes") && !strings.Contains(out, "unable to access") && !strings.Contains(out, "could not read") {
			t.Errorf("git %v: %v %s", args, err, out)
		}
	}
	// Further ones are reached if the project names them.
	two := newVisit(t, f, remoteOf(f, "web"), remoteOf(f, "other"))
	two.clone()
	if out, err := two.run("ls-remote", f.URL("other"), "HEAD"); err != nil {
		t.Error(err, out)
	}
}

// A session's token is worth nothing with another one's socket, nor after its end.
func TestASessionsSocketIsItsOwn(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	one, two := newVisit(t, f, remoteOf(f, "web")), newVisit(t, f, remoteOf(f, "web"))
	one.clone()
	mixed := append(slices.Clone(one.env), two.Env()...)
	if out, err := forgetest.Git(t, one.work, mixed, "ls-remote", "origin"); err == nil {
		t.Error("another session's token:", out)
	}
	one.must("ls-remote", "origin")
	one.Close()
	one.Close()
	if out, err := one.run("ls-remote", "origin"); err == nil {
		t.Error("after its end:", out)
	}
	if _, err := os.Stat(filepath.Join(one.dir, socketName)); err == nil {
		t.Error("the socket is still there")
	}
	two.work = one.work
	two.must("ls-remote", "origin")
}

// A forge that does not let the bot in, or is not there, is told of, and nothing else.
func TestAForgeThatIsNotReached(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	f.Take()
	v.AllowPush("toolu_1", Pass{})
	for _, args := range [][]string{{"fetch", "origin"}, {"push", "origin", "HEAD:deckhand/x"}} {
		out, err := v.run(args...)
		if err == nil || !strings.Contains(out, "The bot could not reach the forge (git fetch: ") || strings.Contains(out, forgetest.Password) {
			t.Errorf("%v: %v %s", args, err, out)
		}
	}
	r := remoteOf(f, "web")
	if _, err := r.Refs(t.Context(), "HEAD"); err == nil || strings.Contains(err.Error(), forgetest.Password) {
		t.Error(err)
	}
	r.TokenEnv = "DECKHAND_TEST_UNSET"
	if _, err := r.Refs(t.Context(), "HEAD"); err == nil || !strings.Contains(err.Error(), "DECKHAND_TEST_UNSET, which git.token_env names, is not set") {
		t.Error(err)
	}
}

// A repository that has another name by now is fetched from and pushed to where the forge says.
func TestARepositoryWithAnotherName(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	f.Rename("web", "shop")
	v.must("fetch", "origin")
	v.AllowPush("toolu_1", Pass{})
	v.commit("mine")
	v.must("push", "origin", "HEAD:deckhand/x")
	tip := strings.TrimSpace(v.must("rev-parse", "HEAD"))
	if err := remoteOf(f, "web").PushCommit(t.Context(), forgetest.Folder(t), []string{filepath.Join(f.Bare("shop"), "objects")}, "deckhand/y", "", tip); err != nil {
		t.Error(err)
	}
	if out := f.Git(f.Bare("shop"), "for-each-ref", "--format=%(refname) %(subject)"); out != "refs/heads/deckhand/x mine\nrefs/heads/deckhand/y mine\nrefs/heads/main file 1 of web\n" {
		t.Error(out)
	}
}

// What a forge refuses is said in its words; a hook of its own, for one.
func TestTheForgeRefuses(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	hook := filepath.Join(f.Bare("web"), "hooks/pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'no pushes on Sundays'\nexit 1\n"), 0o755); err != nil { //nolint:gosec // a hook
		t.Fatal(err)
	}
	v.AllowPush("toolu_1", Pass{})
	v.commit("mine")
	out, err := v.run("push", "origin", "HEAD:deckhand/x")
	if err == nil || !strings.Contains(out, "remote: no pushes on Sundays") || !strings.Contains(out, "the forge refused it: [remote rejected] (pre-receive hook declined)") {
		t.Error(err, out)
	}
	if e := v.last(); len(e.Refs) != 1 || e.Refs[0].Refused == "" {
		t.Errorf("%+v", e)
	}
	if err := remoteOf(f, "web").CheckPush(t.Context(), forgetest.Folder(t)); err != nil {
		t.Error("it can be pushed to:", err)
	}
	f.Git(f.Bare("web"), "config", "http.receivepack", "false")
	if err := remoteOf(f, "web").CheckPush(t.Context(), forgetest.Folder(t)); err == nil {
		t.Error("it cannot be pushed to")
	}
}

// Nothing that opens the forge is in what a session has, or can be made to say.
func TestNothingSecretInside(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	v.AllowPush("toolu_1", Pass{})
	said := v.must("remote", "-v") + v.must("config", "--list", "--show-origin") + strings.Join(v.env, "\n")
	trace := append(slices.Clone(v.env), "GIT_TRACE=1", "GIT_TRACE_PACKET=1", "GIT_TRACE_CURL=1", "GIT_TRACE_SETUP=1", "GIT_CURL_VERBOSE=1")
	for _, args := range [][]string{{"fetch", "origin"}, {"push", "origin", "HEAD:deckhand/x"}, {"push", "origin", "HEAD:main"}} {
		out, _ := forgetest.Git(t, v.work, trace, args...)
		said += out
	}
	if strings.Contains(said, forgetest.Password) || !strings.Contains(said, "packet:") {
		t.Error(said)
	}
	for _, dir := range []string{v.work, v.dir, v.gate.dir} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if strings.Contains(string(b), forgetest.Password) && d.Name() != helperName { // the test's own program has it
				t.Errorf("%s holds it", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A shallow clone fetches and pushes; what is not whole is refused.
func TestAShallowClone(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	if out, err := forgetest.Git(t, "", v.env, "clone", "-q", "--depth=1", f.URL("web"), v.work); err != nil {
		t.Fatal(err, out)
	}
	v.AllowPush("toolu_1", Pass{})
	v.commit("mine")
	v.must("push", "-q", "origin", "HEAD:deckhand/x")
	if out := f.Git(f.Bare("web"), "log", "--format=%s", "deckhand/x"); out != "mine\nfile 1 of web\nfile 0 of web\n" {
		t.Error(out)
	}
	v.must("fetch", "-q", "--unshallow")
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url    string
		access Access
		name   string // inside; empty for none
		wrong  string
	}{
		{url: "https://github.com/team/web.git", name: "github.com/team/web"},
		{url: "https://GitHub.com/team/web", name: "github.com/team/web"},
		{url: "git@github.com:team/web.git", name: "github.com/team/web"},
		{url: "ssh://git@host:2222/~me/web", name: "host:2222/~me/web"},
		{url: "http://127.0.0.1:3000/team/web", access: Access{TokenEnv: "T"}, name: "127.0.0.1:3000/team/web"},
		{url: "/srv/git/web"},
		{url: "./web"},
		{url: "https://u:p@host/web", wrong: "an address holds no credentials"},
		{url: "https://u@host/web", wrong: "an address holds no credentials"},
		{url: "ssh://git:p@host/web", wrong: "an address holds no credentials"},
		{url: "ext::sh -c evil", wrong: "there is no way to a forge by a helper"},
		{url: "ftp://host/web", wrong: "there is no way to a forge by ftp"},
		{url: "file:///srv/web", wrong: "there is no way to a forge by file"},
		{url: "https://host/", wrong: "this is no address"},
		{url: "https://host/a/../b", wrong: "this is no address"},
		{url: "https://host/web?x=y", wrong: "this is no address"},
		{url: "http://host/web", access: Access{TokenEnv: "T"}, wrong: "a token is not sent over http"},
		{url: "git@host:web", access: Access{TokenEnv: "T"}, wrong: "a token is for https"},
		{url: "https://host/web", access: Access{KeyFile: "/k"}, wrong: "a key file is for ssh"},
		{url: "https://host/a/b/c", access: Access{App: App{ID: "1"}}, wrong: "a GitHub App reaches"},
	} {
		err := Upstream{c.url, c.access}.Check()
		if (err == nil) != (c.wrong == "") || err != nil && !strings.HasPrefix(err.Error(), c.wrong) {
			t.Errorf("%s: %v", c.url, err)
		}
		if p, err := parse(c.url); c.wrong == "" && (err == nil) != (c.name != "") || c.name != "" && p.name() != c.name {
			t.Errorf("%s is %q, %v", c.url, cmp.Or(p.name(), "nothing"), err)
		}
	}
}
