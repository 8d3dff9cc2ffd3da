package gitway

import (
	"strings"
	"testing"

	"deckhand/internal/gateway/gitway/forgetest"
)

// What people have approved is commits: a branch that has moved since, here or at the forge,
// another branch and another repository are other pushes.
func TestAnApprovedPushIsOfItsCommits(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	v := newVisit(t, f, remoteOf(f, "web"))
	v.clone()
	head := func() string { return strings.TrimSpace(v.must("rev-parse", "HEAD")) }
	refused := func(what string, args ...string) {
		t.Helper()
		before := f.Refs()
		if out, err := v.run(append([]string{"push", "origin"}, args...)...); err == nil || !strings.Contains(out, "it is another push. Run git push again") {
			t.Errorf("%s: %v %s", what, err, out)
		}
		if after := f.Refs(); after != before {
			t.Errorf("%s: the forge has\n%s", what, after)
		}
		if e := v.last(); e.ToolUse != "toolu_1" || len(e.Refs) == 0 || e.Refs[0].Refused == "" {
			t.Errorf("%s: the audit has %+v", what, e)
		}
	}
	v.commit("approved")
	approved, none := head(), strings.Repeat("0", 40)
	allow := func(p Pass) { v.AllowPush("toolu_1", p) }

	allow(Pass{Repository: v.names[0], Refs: []Ref{}})
	refused("nothing was approved", "HEAD:deckhand/x")
	allow(Pass{Repository: v.names[0], Refs: []Ref{{Name: "refs/heads/deckhand/x", Old: none, New: approved}}})
	refused("another branch", "HEAD:deckhand/y")
	refused("another branch beside it", "HEAD:deckhand/x", "HEAD:deckhand/y")
	v.commit("moved")
	refused("the branch has moved", "HEAD:deckhand/x")
	allow(Pass{Repository: "elsewhere/web", Refs: []Ref{{Name: "refs/heads/deckhand/x", Old: none, New: head()}}})
	refused("another repository", "HEAD:deckhand/x")

	allow(Pass{Repository: v.names[0], Refs: []Ref{{Name: "refs/heads/deckhand/x", Old: none, New: approved}}})
	v.must("push", "-q", "origin", approved+":refs/heads/deckhand/x")

	// A forced push loses what was shown, and not what came meanwhile.
	f.Git(f.Work("web"), "fetch", "-q", "origin")
	f.Git(f.Work("web"), "checkout", "-q", "-b", "theirs", "origin/deckhand/x")
	f.Commit("web", "theirs")
	f.Git(f.Work("web"), "push", "-q", "origin", "HEAD:refs/heads/deckhand/x")
	v.must("checkout", "-q", "-B", "mine", "origin/main")
	v.commit("instead")
	allow(Pass{Force: true, Repository: v.names[0], Refs: []Ref{{Name: "refs/heads/deckhand/x", Old: approved, New: head()}}})
	refused("the forge's branch has moved", "--force", "HEAD:deckhand/x")

	// What a rule allows beside it is allowed.
	v.AllowPush("toolu_2", Pass{})
	v.must("push", "-q", "origin", "HEAD:deckhand/y")
	if e := v.last(); e.ToolUse != "toolu_2" {
		t.Errorf("it was pushed by %s", e.ToolUse)
	}
}
