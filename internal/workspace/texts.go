package workspace

import (
	"context"

	"deckhand/internal/workspace/gitdata"
)

// Texts are the Markdown files of some folders of the project's base: of the repository on this machine, and if fresh of
// the forge. No session writes there. left are the paths of those that are left out; see [gitdata.Clone.Texts].
func (k *Keeper) Texts(ctx context.Context, p Project, fresh bool, folders ...string) (texts map[string]string, left []string, err error) {
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return nil, nil, err
	}
	if fresh && p.Repo != "" {
		if err := k.refresh(ctx, source, p); err != nil {
			return nil, nil, err
		}
	}
	return gitdata.Clone{Source: source, Base: p.Base, OfOrigin: p.Repo != "", Scratch: k.scratch()}.Texts(ctx, folders...)
}
