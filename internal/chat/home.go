package chat

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/agent/spend"
	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

// homeDays is how far back the home tab lists threads.
const homeDays = 14

// openHome publishes the page of a person who looks at it, as they chose it last.
func (a tab) openHome(ctx context.Context, in *Incoming) (outcome string, err error) {
	return "home", a.publishHome(ctx, in.person(), view.ParseHomeChoice(in.State))
}

// onHomeClick shows another choice of threads.
func (a tab) onHomeClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	choice, ok := homeChoice(in).Choose(in.Click.Action, in.Click.Value)
	if !ok {
		return "a menu", nil
	}
	return "home", a.publishHome(ctx, in.person(), choice)
}

// homeChoice is what stands on the page that was clicked.
func homeChoice(in *Incoming) view.HomeChoice { return view.ParseHomeChoice(in.Click.State) }

// publishHome publishes the person's home tab: what waits for their decision, threads,
// what they and the team spent, and the grants.
func (a tab) publishHome(ctx context.Context, who person, choice view.HomeChoice) error {
	shown, err := a.homeView(ctx, who, choice, a.authorise)
	if err != nil {
		return err
	}
	a.Homes.looks(who, choice, time.Now())
	a.screen.ShowHome(who.UserID, shown, false)
	return nil
}

// homeView is what a person's home tab shows now. Whoever may see nothing, by may, is told
// why.
func (a tab) homeView(ctx context.Context, who person, choice view.HomeChoice, may func(context.Context, person, access.Act) *access.Refusal) (view.Home, error) {
	who.ChannelID = "" // a tab is in no channel
	shown := view.Home{BotUser: a.self.User, Choice: choice, Redact: a.c.Redact}
	if r := may(ctx, who, access.See); r != nil {
		shown.Refused = r.Sentence
	} else if err := a.fillHome(ctx, &shown, who); err != nil {
		return shown, err
	}
	return shown, nil
}

func (a tab) fillHome(ctx context.Context, shown *view.Home, who person) error {
	now, user := time.Now(), who.UserID
	if err := a.costs.FillHome(ctx, shown, user, now); err != nil {
		return err
	}
	var err error
	if shown.MyBudgets, err = a.budgetsFor(ctx, threads.Thread{}, user, false, now); err != nil {
		return err
	}
	pending, err := a.c.Store.TeamPending(ctx, a.self.Team, homePending)
	if err != nil {
		return err
	}
	admin := a.mayDo(ctx, who, access.Administer) == nil
	mine := a.mineToDecide(ctx, who, pending)
	if err := a.fillThreads(ctx, shown, who, pending, mine, admin); err != nil {
		return err
	}
	for _, p := range pending {
		if mine[p.ID] {
			waits := view.HomeApproval{Approval: p}
			if !access.IsDirect(p.ChannelID) || who.UserID == p.RequestedBy {
				waits.Permalink = a.screen.Permalink(p.ChannelID, cmp.Or(p.MessageTS, p.ThreadTS))
			}
			if who.UserID == p.RequestedBy || a.mayRead(ctx, who, threads.Place{ChannelID: p.ChannelID, Project: p.Project}) {
				waits.Title = a.c.Redact(p.Title)
			}
			shown.Waiting = append(shown.Waiting, waits)
		}
	}
	if shown.Grants, shown.GrantsMore, err = granter(a).grantLines(ctx, who, 0); err != nil {
		return err
	}
	if shown.Accounts, err = a.accountsOf(ctx, a.self.Team, user); err != nil {
		return err
	}
	shown.Sandboxes = a.sandboxes(ctx, user)
	if admin {
		shown.Admin, err = a.homeAdmin(ctx, pending, now)
	}
	return err
}

// mineToDecide are the ids of the requests that wait for a person: those that they may decide
// about, without questions that somebody else was asked and may answer.
func (a tab) mineToDecide(ctx context.Context, who person, pending []approvals.Approval) map[string]bool {
	mine := map[string]bool{}
	for _, p := range pending {
		mine[p.ID] = a.mayDecide(ctx, who, p) == nil && !a.asksAnother(ctx, who, p)
	}
	return mine
}

// asksAnother reports whether a request is a question to another person than who, as far as is
// known one who may answer it.
func (a tab) asksAnother(ctx context.Context, who person, p approvals.Approval) bool {
	if p.Kind != approvals.Question || p.RequestedBy == "" || p.RequestedBy == who.UserID {
		return false
	}
	refused := a.mayDecide(ctx, person{TeamID: a.self.Team, UserID: p.RequestedBy}, p)
	return refused == nil || refused.Err != nil
}

// fillThreads lists a page of the threads that the person chose. What a thread is about is
// content of its channel: of others' threads they see those whose channel they can read
// and use, and of direct messages their own alone.
func (a tab) fillThreads(ctx context.Context, shown *view.Home, who person, pending []approvals.Approval, mine map[string]bool, admin bool) error {
	since := time.Now().AddDate(0, 0, -homeDays)
	places, err := a.c.Store.ThreadPlaces(ctx, a.self.Team, who.UserID, since)
	if err != nil {
		return err
	}
	filter := threads.Filter{
		TeamID: a.self.Team, Owner: who.UserID, Project: shown.Choice.Project, States: shown.Choice.States(),
		Since: since, Limit: view.HomePage + 1, Offset: shown.Choice.Page * view.HomePage,
	}
	named := map[string]bool{}
	for _, p := range places {
		switch {
		case p.ChannelID == "": // the person's own
			named[p.Project] = true
		case shown.Choice.All && a.mayRead(ctx, who, p):
			named[p.Project] = true
			filter.Places = append(filter.Places, p)
		}
	}
	shown.Named = slices.Sorted(maps.Keys(named))
	threads, err := a.c.Store.RecentThreads(ctx, filter)
	if err != nil {
		return err
	}
	if len(threads) > view.HomePage {
		threads, shown.More = threads[:view.HomePage], true
	}
	for _, t := range threads {
		shown.Threads = append(shown.Threads, a.homeThread(who.UserID, t, pending, mine, admin))
	}
	if len(threads) == 0 && shown.Choice == (view.HomeChoice{}) {
		shown.Newcomer = a.newcomer(ctx, who)
	}
	return nil
}

// newcomerMost is how many channels a newcomer is named.
const newcomerMost = 3

// newcomer is where a person who has no threads can begin one.
func (a tab) newcomer(ctx context.Context, who person) *view.HomeNewcomer {
	places := a.c.Access.Places
	out := &view.HomeNewcomer{Direct: places.DirectMessages != ""}
	all := places.All()
	for _, c := range slices.Sorted(maps.Keys(all)) {
		if len(out.Channels) == newcomerMost {
			break
		}
		if a.mayRead(ctx, who, threads.Place{ChannelID: c, Project: all[c]}) {
			out.Channels = append(out.Channels, c)
		}
	}
	return out
}

// mayRead reports whether a person may use Deckhand in a place and can read what is said
// there.
func (a tab) mayRead(ctx context.Context, who person, p threads.Place) bool {
	if access.IsDirect(p.ChannelID) {
		return false
	}
	return a.mayDo(ctx, who.at(p.ChannelID, p.Project), access.See) == nil && a.people.Reads(ctx, who.UserID, p.ChannelID)
}

func (a tab) homeThread(user string, t threads.Recent, pending []approvals.Approval, mine map[string]bool, admin bool) view.HomeThread {
	out := view.HomeThread{
		Title: a.c.Redact(t.Title), Project: t.Project, Channel: t.ChannelID, Permalink: a.screen.Permalink(t.ChannelID, t.ThreadTS),
		State: t.State, Since: t.CreatedAt, Active: t.ActiveAt, MicroUSD: t.MicroUSD,
	}
	if t.OwnerID != user {
		if out.StartedBy = t.OwnerID; !admin {
			out.MicroUSD = -1 // what other people spend is for admins to see
		}
	}
	for _, p := range pending {
		if p.ThreadID != t.ID {
			continue
		}
		out.Yours = out.Yours || mine[p.ID]
		for _, id := range a.c.Access.Called(*termsOf(p), p.Project, p.ChannelID) {
			if id != user && !slices.Contains(out.Whom, id) && (id != p.RequestedBy || p.Kind == approvals.Question || p.Terms.RequesterMay) {
				out.Whom = append(out.Whom, id)
			}
		}
	}
	return out
}

// homeLoadDays is what the admins' part tells of decisions.
const homeLoadDays = 7

// homeAdmin is the part of the tab that is for the team's admins.
func (a tab) homeAdmin(ctx context.Context, pending []approvals.Approval, now time.Time) (*view.HomeAdmin, error) {
	out := &view.HomeAdmin{Pending: len(pending), Days: homeLoadDays}
	if len(pending) > 0 {
		out.Oldest = pending[0].CreatedAt
	}
	if a.c.Health != nil {
		out.Health = a.c.Health(ctx)
	}
	load, err := a.c.Store.ApprovalsReport(ctx, a.self.Team, now.AddDate(0, 0, -homeLoadDays), now)
	if err != nil {
		return nil, err
	}
	out.Deciders = load.ByPerson
	if out.Unwritten, err = a.unwritten(ctx, func(id string) string { return "<#" + id + ">" }); err != nil {
		return nil, err
	}
	out.Budgets, err = a.homeBudgets(ctx, now)
	return out, err
}

// homeBudgetKeys is how many projects, channels, people or threads are shown of a budget that names none.
const homeBudgetKeys = 3

// homeBudgets are the budgets of the team, those of what they name, and of what else has spent the
// most: the nearest to its limit first.
func (a tab) homeBudgets(ctx context.Context, now time.Time) (out []view.HomeBudget, err error) {
	links := map[string]string{} // of threads
	all, err := a.budgetsNow(ctx, now, func(b spend.Budget, from, to time.Time) ([]string, error) {
		if b.Scope == ledger.BudgetWorkspace {
			return []string{""}, nil
		}
		if len(b.Only) > 0 {
			return b.Only, nil
		}
		by := map[ledger.BudgetScope]ledger.CostGroup{
			ledger.BudgetChannel: ledger.ByChannel, ledger.BudgetProject: ledger.ByProject, ledger.BudgetPerson: ledger.ByUser, ledger.BudgetThread: ledger.ByThread,
		}[b.Scope]
		spent, err := a.c.Store.Costs(ctx, ledger.CostQuery{TeamID: a.self.Team, From: from, To: to, By: by, Limit: homeBudgetKeys})
		var keys []string
		for _, l := range spent.Lines {
			keys, links[l.Key] = append(keys, l.Key), a.screen.Permalink(l.ChannelID, l.ThreadTS)
		}
		return keys, err
	})
	for _, b := range all {
		out = append(out, view.HomeBudget{Status: b, Thread: links[b.Key]})
	}
	slices.SortStableFunc(out, func(a, b view.HomeBudget) int { return cmp.Compare(b.Share(), a.Share()) })
	return out, err
}

// budgetsFor says how the budgets stand that hold for a person in a thread; the team's only with team. Of a thread that
// is none, they are the person's own.
func (a tab) budgetsFor(ctx context.Context, t threads.Thread, user string, team bool, now time.Time) (out []string, err error) {
	mine, err := a.budgetsNow(ctx, now, func(b spend.Budget, _, _ time.Time) ([]string, error) {
		key, holds := b.Key(t, user)
		nowhere := map[ledger.BudgetScope]bool{
			ledger.BudgetWorkspace: !team, ledger.BudgetChannel: t.ChannelID == "", ledger.BudgetProject: t.Project == "", ledger.BudgetThread: t.ID == 0,
		}[b.Scope]
		if !holds || nowhere {
			return nil, nil
		}
		return []string{key}, nil
	})
	for _, b := range mine {
		out = append(out, b.Name()+": "+money.Spent(b.SpentMicroUSD, b.LimitMicroUSD)+" of "+money.USD(b.LimitMicroUSD))
	}
	return out, err
}

// budgetsNow is where the budgets stand in their present period, each for the keys that are wanted of it.
func (a tab) budgetsNow(ctx context.Context, now time.Time, keys func(b spend.Budget, from, to time.Time) ([]string, error)) (out []spend.Status, err error) {
	var windows []ledger.BudgetWindow
	for _, b := range a.c.Budgets {
		from, to := b.Period.Span(now, a.c.Store.TimeZone())
		wanted, err := keys(b, from, to)
		if err != nil {
			return nil, err
		}
		for _, key := range wanted {
			windows = append(windows, ledger.BudgetWindow{TeamID: a.self.Team, Scope: b.Scope, Key: key, Period: b.Period, From: from, To: to})
			out = append(out, spend.Status{Budget: b, Key: key, From: from, To: to})
		}
	}
	states, err := a.c.Store.BudgetStates(ctx, windows)
	if err != nil {
		return nil, err
	}
	for i, s := range states {
		out[i].SpentMicroUSD, out[i].LimitMicroUSD = s.SpentMicroUSD, out[i].Budget.LimitMicroUSD+s.RaisedMicroUSD
	}
	return out, nil
}

// usable are the projects that a person may use as a whole.
func (a tab) usable(ctx context.Context, user string) (projects []string) {
	a.people.Establish(ctx, a.self.Team, user, "", func(f access.Facts) access.Answer {
		var need access.Need
		projects, need = a.c.Access.Usable(access.Asker{User: user}, f)
		return access.Answer{Need: need}
	})
	return projects
}

// sandboxes says of the projects that the person may use what shuts their agents in.
func (a tab) sandboxes(ctx context.Context, user string) []view.HomeSandbox {
	var out []view.HomeSandbox
	for _, p := range a.usable(ctx, user) {
		if s := a.c.Sandboxes[p]; s != "" {
			out = append(out, view.HomeSandbox{Project: p, InForce: s})
		}
	}
	return out
}

// homePending is how many open approvals are looked at for one person's tab.
const homePending = 100
