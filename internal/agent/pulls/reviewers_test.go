package pulls

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"deckhand/internal/forge"
	"deckhand/internal/store"
)

// owned is a repository of which only CODEOWNERS is asked for.
type owned struct {
	forge.Repository
	text string
	err  error
}

func (o owned) CodeOwners(context.Context, string) (string, error) { return o.text, o.err }

// TestOwnersAreAsked: the last rule that matches a file names its owners; addresses name no
// account; a file that cannot be had or read names nobody, and stops nothing.
func TestOwnersAreAsked(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range 20 {
		many += fmt.Sprintf("/src/%d @person%d\n", i, i)
	}
	files := []store.PushFile{{Path: "src/quote.js"}, {Path: "docs/a.md"}, {Path: "Makefile"}}
	for i := range 20 {
		files = append(files, store.PushFile{Path: fmt.Sprintf("src/%d", i)})
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
		if diff := cmp.Diff(c.want, s.owners(t.Context(), c.repo, "main", files, []string{"asked"}, "deckhand")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}
