package pulls

import (
	"context"
	"slices"
	"strings"

	"github.com/hmarr/codeowners"
	"go.uber.org/zap"

	"deckhand/internal/forge"
)

// reviewersMost is how many people and teams a pull request asks for a review by itself.
const reviewersMost = 10

// reviewers are asked, and those whom the base branch's CODEOWNERS names for changed files, without the
// account that opens the pull request. A forge that does not give the file names nobody, and a line
// that cannot be read is no rule.
func (s *Service) reviewers(ctx context.Context, r forge.Repository, base string, files, asked []string) []string {
	out := slices.Clone(asked)
	text, err := r.CodeOwners(ctx, base)
	if err != nil || text == "" {
		if err != nil {
			s.Log.Warn("read who owns the code", zap.Error(err))
		}
		return out
	}
	me, err := r.Me(ctx) // who opens it cannot review it
	if err != nil {
		s.Log.Warn("ask the forge whose credential it is", zap.Error(err))
	}
	var rules codeowners.Ruleset
	for line := range strings.Lines(text) {
		rule, err := codeowners.ParseFile(strings.NewReader(line))
		if err != nil {
			s.Log.Info("a line of CODEOWNERS cannot be read", zap.Error(err))
		}
		rules = append(rules, rule...)
	}
	for _, f := range files {
		rule, err := rules.Match(f)
		if err != nil || rule == nil {
			continue
		}
		for _, o := range rule.Owners {
			if o.Type != codeowners.EmailOwner && len(out) < reviewersMost && o.Value != me.Login && !slices.Contains(out, o.Value) {
				out = append(out, o.Value)
			}
		}
	}
	return out
}
