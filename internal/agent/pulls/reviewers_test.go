package pulls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"deckhand/internal/forge"
)

// owned is a repository of which only CODEOWNERS is asked for.
type owned struct {
	forge.Repository
	text string
	err  error
}

func (o owned) CodeOwners(context.Context, string) (string, error) { return o.text, o.err }

func (o owned) Me(context.Context) (forge.Account, error) {
	return forge.Account{Login: "deckhand"}, nil
}

// TestOwnersAreAsked: the last rule that matches a file names its owners; addresses name no
// account; a file that cannot be had or read names nobody, and stops nothing.
func TestOwnersAreAsked(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range 20 {
		many += fmt.Sprintf("/src/%d @person%d\n", i, i)
	}
	files := []string{"src/quote.js", "docs/a.md", "Makefile"}
	for i := range 20 {
		files = append(files, fmt.Sprintf("src/%d", i))
	}
	s := &Service{Config: Config{Log: zap.NewNop()}}
	for _, c := range []struct {
		name string
		repo owned
		want []string
	}{
		{"by file", owned{text: "* @ada\n/src/quote.js @linus @team/web\n*.md docs@example.com\n"}, []string{"asked", "linus", "team/web", "ada"}},
		{"without the bot", owned{text: "* @deckhand @ada\n"}, []string{"asked", "ada"}},
		{"a line that cannot be read", owned{text: "* @ada\n[Docs] @@\n/src/quote.js @linus\n"}, []string{"asked", "linus", "ada"}},
		{"none", owned{}, []string{"asked"}},
		{"refused", owned{err: errors.New("502")}, []string{"asked"}},
		{"nonsense", owned{text: "\x00[[[ @@@"}, []string{"asked"}},
		{"many", owned{text: many}, strings.Fields("asked person0 person1 person2 person3 person4 person5 person6 person7 person8")},
	} {
		if diff := cmp.Diff(c.want, s.reviewers(t.Context(), c.repo, "main", files, []string{"asked"})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

// TestARuleAsksTheOwners: a pull request that no card shows asks the base's owners of what it changes, too.
func TestARuleAsksTheOwners(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("CODEOWNERS", "*.md @ada\n*.js @grace\n")
	b.git("push", "-q", "origin", "HEAD:main")
	pull := b.opens(b.thread("a.js", "Changed."))
	var said struct {
		Reviewers []struct{ Login string } `json:"requested_reviewers"`
	}
	if err := json.Unmarshal(b.call("GET", fmt.Sprintf("/api/v1/repos/forge/web/pulls/%d", pull.Number), "ada", nil), &said); err != nil || len(said.Reviewers) != 1 || said.Reviewers[0].Login != "grace" {
		t.Errorf("the reviewers are %v, %v", said.Reviewers, err)
	}
}
