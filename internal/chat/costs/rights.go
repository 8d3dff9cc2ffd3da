package costs

import (
	"context"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/store/ledger"
)

// askerOf is a person who asks for costs in a place.
func askerOf(user string, at view.Place) access.Asker {
	return access.Asker{User: user, Channel: at.Channel, Thread: at.Thread.ID, Project: at.Thread.Project}
}

// mayAsk cuts a question down to what the person may see. They have passed authorise
// where they ask.
func (a *Accountant) mayAsk(ctx context.Context, asker access.Asker, q report.Question) (report.Question, access.CostAnswer) {
	scope := access.CostScope{
		Users: q.Users, Projects: q.Projects, Channels: q.Channels, Thread: q.ThreadID, Everyone: q.Everyone,
		ByUser: q.By == ledger.ByUser, ByPlace: q.By == ledger.ByChannel || q.By == ledger.ByThread,
	}
	var answer access.CostAnswer
	answer.Answer = a.c.People.Establish(ctx, a.c.Team, asker.User, "", func(f access.Facts) access.Answer {
		answer = a.c.Access.Costs(asker, scope, f)
		return answer.Answer
	})
	if answer.Allowed {
		q.Projects, q.Channels = answer.Scope.Projects, answer.Scope.Channels
	}
	return q, answer
}

// shows reports whether a channel may have a line of its own for the asker.
func (a *Accountant) shows(ctx context.Context, asker access.Asker) func(channel string) bool {
	return func(channel string) bool {
		return a.c.People.Establish(ctx, a.c.Team, asker.User, "", func(f access.Facts) access.Answer { return a.c.Access.Shows(asker, channel, f) }).Allowed
	}
}

// usable are the projects that the asker may use.
func (a *Accountant) usable(ctx context.Context, asker access.Asker) []string {
	var projects []string
	a.c.People.Establish(ctx, a.c.Team, asker.User, "", func(f access.Facts) access.Answer {
		var need access.Need
		projects, need = a.c.Access.Usable(asker, f)
		return access.Answer{Need: need}
	})
	return projects
}
