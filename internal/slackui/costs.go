package slackui

import (
	"context"
	"errors"
	"time"

	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// costs reads what a thread (if there is one), a person and the team have spent.
// Months are calendar months in UTC.
func (a *App) costs(ctx context.Context, key store.ThreadKey, user string) (render.CostsView, error) {
	var view render.CostsView
	if key.ThreadTS != "" {
		thread, err := a.c.Store.ThreadByKey(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return view, err
		}
		if err == nil {
			s, err := a.spend(ctx, "This thread", "since it began", store.CostScope{TeamID: key.TeamID, ThreadID: thread.ID})
			if err != nil {
				return view, err
			}
			view.Scopes = append(view.Scopes, s)
		}
	}
	month := monthStart(time.Now())
	for _, scope := range []struct {
		name string
		store.CostScope
	}{
		{"You", store.CostScope{TeamID: key.TeamID, UserID: user, Since: month}},
		{"The team", store.CostScope{TeamID: key.TeamID, Since: month}},
	} {
		s, err := a.spend(ctx, scope.name, "this month", scope.CostScope)
		if err != nil {
			return view, err
		}
		if scope.UserID != "" && key.ThreadTS != "" {
			s.Scope = a.people.name(ctx, user) // the answer stands in the thread, for all to see
		}
		view.Scopes = append(view.Scopes, s)
	}
	return view, nil
}

func (a *App) spend(ctx context.Context, name, period string, scope store.CostScope) (render.Spend, error) {
	models, err := a.c.Store.SpendByModel(ctx, scope)
	return render.Spend{Scope: name, Period: period, Models: models}, err
}

func monthStart(now time.Time) time.Time {
	now = now.UTC()
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func dayStart(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }
