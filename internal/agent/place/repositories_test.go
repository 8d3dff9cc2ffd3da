package place

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/gateway/gitway"
	"deckhand/internal/gateway/gitway/forgetest"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/work"
	"deckhand/internal/workspace"
)

// kept is a [Works] in memory, of one thread.
type kept struct {
	rows  map[string]work.Work
	packs map[uuid.UUID][]byte
}

func (k *kept) Work(_ context.Context, _ int64, repository string) (work.Work, error) {
	w, ok := k.rows[repository]
	if !ok {
		return w, pg.ErrNotFound
	}
	return w, nil
}

func (k *kept) WorkRepositories(context.Context, int64) (names []string, err error) {
	for name := range k.rows {
		names = append(names, name)
	}
	return names, nil
}

func (k *kept) ReadPack(_ context.Context, _ int64, pack uuid.UUID, to io.Writer) error {
	_, err := io.Copy(to, bytes.NewReader(k.packs[pack]))
	return err
}

func (k *kept) KeepWork(_ context.Context, _ threads.Lease, w work.Work, pack io.Reader) (err error) {
	if pack != nil {
		k.packs[w.Packs[len(w.Packs)-1]], err = io.ReadAll(pack)
	}
	k.rows[w.Repository] = w
	return err
}

// several is a thread in a project with the repositories web, its own, and other, which it calls lib.
type several struct {
	*testing.T
	*forgetest.Forge
	works *kept
	p     Project
	t     threads.Thread
}

func newSeveral(t *testing.T) *several {
	t.Helper()
	s := &several{T: t, Forge: forgetest.New(t), works: &kept{map[string]work.Work{}, map[uuid.UUID][]byte{}}, t: threads.Thread{ID: 1, Branch: "deckhand/1"}}
	s.p = Project{Name: "web", Repo: s.Bare("web"), Workspace: workspace.Worktree, Further: []Repository{{Name: "lib", Repo: s.Bare("other")}}}
	return s
}

func (s *several) machine(name string) *Host {
	return &Host{DataDir: filepath.Join(s.TempDir(), name), Replica: name, Works: s.works, Keeper: &workspace.Keeper{}}
}

// opens has the thread go on on a machine, and returns what people are told.
func (s *several) opens(h *Host) string {
	s.Helper()
	h.Keeper.DataDir = h.DataDir
	dir, told, err := h.Workspace(s.Context(), s.t, s.p)
	if err != nil {
		s.Fatal(err)
	}
	s.t.Workspace, s.t.WorkspaceReplica = dir, h.Replica
	return strings.Join(told, "\n")
}

func (s *several) saves(h *Host) {
	s.Helper()
	left, err := h.Save(s.Context(), s.t, s.p, time.Minute, nil)
	if err = errors.Join(h.Publish(s.Context(), s.t, s.p, time.Minute), err); err != nil || left != "" {
		s.Fatal(left, err)
	}
}

func (s *several) lib(name string) string {
	return filepath.Join(s.t.Workspace, ".deckhand/repos/lib", name)
}

func (s *several) writes(name, text string) {
	s.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *several) reads(name, want string) {
	s.Helper()
	if b, err := os.ReadFile(name); err != nil || string(b) != want {
		s.Errorf("%s has %q, %v; want %q", name, b, err, want)
	}
}

// TestWorkInSeveralRepositories: it goes along to another machine, and what was left behind there and is nowhere else
// stays; folders go only with all that is in them.
func TestWorkInSeveralRepositories(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	a, b := s.machine("a"), s.machine("b")
	if told := s.opens(a); told != "" {
		t.Errorf("a new thread is told %q", told)
	}
	s.writes(filepath.Join(s.t.Workspace, "own"), "1\n")
	s.writes(s.lib("further"), "2\n")
	s.saves(a)
	s.writes(s.lib("further"), "3, and never saved\n")
	told := s.opens(b)
	s.reads(filepath.Join(s.t.Workspace, "own"), "1\n")
	s.reads(s.lib("further"), "2\n")
	if !strings.HasPrefix(told, "This thread goes on on another machine. Its commits are back, and what was not committed") || strings.Contains(told, ".deckhand") || !strings.Contains(told, "\nIn the repository lib: This thread goes on on another machine. Its commits are back") {
		t.Errorf("on another machine it is told %q", told)
	}
	s.writes(s.lib("further"), "4\n")
	s.saves(b)
	if told := s.opens(a); !strings.Contains(told, "In the repository lib: On this machine was work of this thread that had been saved nowhere else") {
		t.Errorf("back on the first one it is told %q", told)
	}
	s.reads(s.lib("further"), "4\n")

	// A stash in one keeps that one.
	s.Git(s.lib(""), "add", ".")
	s.Git(s.lib(""), "stash", "-q")
	if stays, _, err := a.PutAway(t.Context(), s.t, s.p); err != nil || stays != "In the repository lib: refs/stash is nowhere else" {
		t.Errorf("it stays since %q, %v", stays, err)
	}
	s.Git(s.lib(""), "stash", "pop", "-q")
	alone := s.p
	alone.Further = nil
	if stays, _, err := a.PutAway(t.Context(), s.t, alone); err != nil || stays != "the repository .deckhand/repos/lib is in it" {
		t.Errorf("without that repository in the project it stays since %q, %v", stays, err)
	}
	if ok, err := a.Elsewhere(t.Context(), s.t, alone); ok || err == nil || err.Error() != `project web has no repository "lib"; it has web` {
		t.Errorf("without that repository in the project its work is elsewhere: %v, %v", ok, err)
	}
	if stays, told, err := a.PutAway(t.Context(), s.t, s.p); stays != "" || told != nil || err != nil || !a.Missing(s.t.Workspace) {
		t.Fatal(stays, told, err)
	}
	if told := s.opens(a); !strings.Contains(told, "In the repository lib: The folder of this thread was put away while it rested. Its commits are back") {
		t.Errorf("put away and back it is told %q", told)
	}
	s.reads(s.lib("further"), "4\n")
}

// ends ends a turn: the states of its repositories are kept.
func (s *several) ends(h *Host, turn int64) {
	s.Helper()
	err := h.Publish(s.Context(), s.t, s.p, time.Minute)
	left, err2 := h.Save(s.Context(), s.t, s.p, time.Minute, &workspace.End{Turn: turn})
	if err = errors.Join(err, err2); err != nil || left != "" {
		s.Fatal(left, err)
	}
}

// was are the states of then.
func (s *several) was(turn int64) map[string]work.State {
	then := map[string]work.State{}
	for name, w := range s.works.rows {
		for _, state := range w.States {
			if state.Turn == turn {
				then[name] = state
			}
		}
	}
	return then
}

// commits commits a file in a repository of the thread.
func (s *several) commits(dir, name, text string) {
	s.Helper()
	s.writes(filepath.Join(dir, name), text)
	s.Git(dir, "add", name)
	s.Git(dir, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", name)
}

// TestRewindInSeveralRepositories: what a rewind takes away is told of each, with what each one's forge has. One that has
// come later stays, as one that has not changed, and one that is not the project's any more.
func TestRewindInSeveralRepositories(t *testing.T) {
	t.Setenv(forgetest.TokenEnv, forgetest.Password)
	s := newSeveral(t)
	s.p.Access, s.p.Forge = gitway.Access{TokenEnv: forgetest.TokenEnv}, []string{s.URL("web")}
	s.p.Repo, s.p.Further[0].Repo = s.URL("web"), s.URL("other")
	for _, name := range []string{"gone", "new", "same"} {
		s.Git("", "clone", "-q", "--bare", s.Bare("other"), s.Bare(name))
	}
	s.p.Further = append(s.p.Further, Repository{Name: "gone", Repo: s.Bare("gone")}, Repository{Name: "same", Repo: s.Bare("same")})
	h := s.machine("a")
	s.opens(h)
	own, within := s.t.Workspace, func(name string) string { return workspace.Within(s.t.Workspace, name) }
	s.commits(own, "one", "own\n")
	s.commits(within("lib"), "one", "lib\n")
	s.ends(h, 1)

	s.p.Further[1] = Repository{Name: "new", Repo: s.Bare("new")}
	s.opens(h)
	s.commits(within("lib"), "two", "lib\n")
	s.Git(within("lib"), "push", "-q", s.Bare("other"), "HEAD:refs/heads/"+s.t.Branch)
	s.commits(within("lib"), "three", "lib\n")
	for _, name := range []string{"", "lib", "new", "gone"} {
		s.writes(filepath.Join(within(name), "loose"), "two\n")
	}
	s.ends(h, 2)
	now, then := s.was(2), s.was(1)
	delete(then, "gone")
	all, err := h.Differs(t.Context(), s.t, s.p, now, then)
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	if d := all[0]; d.Of != "" || len(d.Files) != 1 || d.Lost.Count != 0 || d.Alone != "" || d.Stays || d.Unasked {
		t.Errorf("of its own: %+v", d)
	}
	if d := all[1]; d.Of != "lib" || len(d.Files) != 3 || d.Lost.Count != 2 || d.Pushed != 1 || d.Stays || d.Unasked {
		t.Errorf("of lib: %+v", d)
	}
	if d := all[2]; d.Of != "new" || !d.Stays || len(d.Files) != 0 {
		t.Errorf("of one that has come later: %+v", d)
	}
	if d := all[3]; d.Of != "same" || d.Stays || len(d.Files) != 0 || d.Lost.Count != 0 {
		t.Errorf("of one that has not changed: %+v", d)
	}
	if _, err := h.Differs(t.Context(), s.t, s.p, map[string]work.State{"": now[""]}, then); err == nil || err.Error() != "what is there now in the repository lib could not be saved" {
		t.Errorf("of what was not saved: %v", err)
	}
	unknown := map[string]work.State{"": then[""], "lib": {Turn: 1, Branch: strings.Repeat("ab", 20)}}
	if all, err := h.Differs(t.Context(), s.t, s.p, now, unknown); err != nil || !all[1].Stays {
		t.Errorf("of what is not there any more: %+v, %v", all, err)
	}

	for range 2 {
		if told, err := h.Rewind(t.Context(), s.t, s.p, now, then, "k"); told != "" || err != nil {
			t.Fatal(told, err)
		}
	}
	for name, want := range map[string]string{"": "", "lib": "", "new": "two\n", "gone": "two\n"} {
		if b, _ := os.ReadFile(filepath.Join(within(name), "loose")); string(b) != want {
			t.Errorf("in %q loose is %q", name, b)
		}
	}
	s.reads(filepath.Join(own, "one"), "own\n")
	s.reads(s.lib("one"), "lib\n")
	if got := s.Git(within("lib"), "rev-parse", "HEAD"); strings.TrimSpace(got) != then["lib"].Branch {
		t.Errorf("lib is at %s", got)
	}
	s.ends(h, 1)
	if told, err := h.Rewind(t.Context(), s.t, s.p, s.was(1), now, "back"); told != "" || err != nil {
		t.Fatal(told, err)
	}
	s.reads(s.lib("three"), "lib\n")
	s.reads(filepath.Join(own, "loose"), "two\n")

	// Of a turn whose work in one of them is not kept, there is no state.
	if err := os.Remove(filepath.Join(within("lib"), ".git/HEAD")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Save(t.Context(), s.t, s.p, time.Minute, &workspace.End{Turn: 3}); err == nil || len(s.was(3)) != 2 || s.was(3)[""].Branch != "" {
		t.Errorf("%v, and the states are %+v", err, s.was(3))
	}
}

// TestAFurtherRepositoryOfASessionsMaking: what a session has put where a repository is to be is no place for it, and
// git there obeys it only by a decision.
func TestAFurtherRepositoryOfASessionsMaking(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(s *several, theirs string){
		"a link": func(s *several, theirs string) {
			if err := errors.Join(os.MkdirAll(filepath.Dir(s.lib("")), 0o700), os.Symlink(theirs, strings.TrimSuffix(s.lib(""), "/"))); err != nil {
				s.Fatal(err)
			}
		},
		"a link above": func(s *several, theirs string) {
			if err := os.Symlink(filepath.Dir(filepath.Dir(theirs)), filepath.Join(s.t.Workspace, ".deckhand")); err != nil {
				s.Fatal(err)
			}
		},
		"a repository": func(s *several, _ string) { s.Git("", "clone", "-q", s.Bare("other"), s.lib("")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSeveral(t)
			h, further := s.machine("a"), s.p.Further
			h.Keeper.DataDir = h.DataDir
			theirs, _, err := h.Workspace(t.Context(), threads.Thread{ID: 2, Branch: "deckhand/2"}, s.p)
			if err != nil {
				t.Fatal(err)
			}
			theirs = filepath.Join(theirs, ".deckhand/repos/lib")
			s.p.Further = nil
			s.opens(h)
			make(s, theirs)
			s.p.Further = further
			_, _, err = h.Workspace(t.Context(), s.t, s.p)
			if (err == nil) != (name == "a repository") || len(h.Repositories(s.t, s.p)) > 0 {
				t.Errorf("it is made: %v, and obeyed in %q", err, h.Repositories(s.t, s.p))
			}
			if name == "a repository" {
				return
			}
			s.writes(filepath.Join(theirs, "new"), "not for others\n")
			_, saved := h.Save(t.Context(), s.t, s.p, time.Minute, nil)
			_, _, away := h.PutAway(t.Context(), s.t, s.p)
			published := h.Publish(t.Context(), s.t, s.p, time.Minute)
			s.reads(filepath.Join(theirs, "new"), "not for others\n")
			if saved == nil || away == nil || published == nil || s.works.rows["lib"].Saved != "" {
				t.Errorf("where a link leads is saved: %v, put away: %v, published: %v", saved, away, published)
			}
		})
	}
	s := newSeveral(t)
	h := s.machine("a")
	s.opens(h)
	if got := h.Repositories(s.t, s.p); !slices.Equal(got, []string{".deckhand/repos/lib"}) {
		t.Errorf("what the bot has made is %q", got)
	}
	s.Git(s.lib(""), "config", "core.pager", "evil")
	if got := h.Repositories(s.t, s.p); got != nil {
		t.Errorf("with other settings it is %q", got)
	}
}

// TestABranchThatAFurtherRepositoryHas: all of a new thread's repositories begin under the same free name.
func TestABranchThatAFurtherRepositoryHas(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	h := s.machine("a")
	h.Keeper.DataDir = h.DataDir
	s.p.Further = append([]Repository{{Name: "api", Repo: s.Bare("third")}}, s.p.Further...) // made before it is found out
	s.Git("", "clone", "-q", "--bare", s.Bare("other"), s.Bare("third"))
	s.Git(s.Bare("other"), "branch", "deckhand/1", "main")
	_, _, err := h.Workspace(t.Context(), s.t, s.p)
	taken, ok := errors.AsType[*workspace.TakenError](err)
	if !ok {
		t.Fatal(err)
	}
	s.t.Branch = taken.Free
	s.opens(h)
	for _, dir := range []string{s.t.Workspace, s.lib("")} {
		if got := s.Git(dir, "branch", "--show-current"); got != "deckhand/1-2\n" {
			t.Errorf("%s is on %q", dir, got)
		}
	}
}

// TestACredentialIsForOneHost: a repository elsewhere does not see the token, neither where threads work in it nor where
// sessions only reach it.
func TestACredentialIsForOneHost(t *testing.T) {
	t.Parallel()
	token := gitway.Access{TokenEnv: "T", User: "u"}
	p := Project{
		Repo: "https://here/t/web", Access: token, Forge: []string{"https://here/t/web", "https://here/t/lib", "https://there/t/lib"},
		Further: []Repository{{Name: "lib", Repo: "https://here/t/lib"}, {Name: "theirs", Repo: "https://there/t/lib"}},
	}
	for _, q := range p.All() {
		for _, r := range q.remotes() {
			if want := gitway.Host(r.URL) == "here"; (r.Access == token) != want || !want && r.Access != (gitway.Access{}) {
				t.Errorf("%q: %s sees %+v", q.Of, r.URL, r.Access)
			}
		}
		if r := q.space(threads.Thread{}).Remote(); (r.Access == token) != (gitway.Host(r.URL) == "here") {
			t.Errorf("%q is cloned with %+v", q.Of, r.Access)
		}
	}
}
