package slackui

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"unicode"

	"deckhand/internal/access"
	"deckhand/internal/slackui/costs"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// command is something that people can say to the bot besides giving it work, in a
// message to it or after /deckhand. All that is known of one stands in [allCommands]:
// the help text and the slash command's hint are made of it, and the manifest and
// README are held against it.
type command struct {
	name string
	// shape matches a message that is the command as a whole: “stop the server from
	// crashing” is work for the agent. Its group is what follows the name.
	shape *regexp.Regexp
	// isWork tells that a message of that shape is work all the same; nil: it never is.
	// After the slash command nothing is.
	isWork func(a *App, rest string) bool
	// act is what the person must be entitled to.
	act access.Act
	// inThread says that it is about the thread that it is said in, which Slack does
	// not tell of a slash command.
	inThread bool
	// run carries it out for a person who is entitled to it, answers them, and says in
	// a word or two what came of it.
	run func(a *App, ctx context.Context, in *incoming, rest string) (outcome string, err error)
	// help says what it does, after the ways to say it.
	help render.HelpLine
	// hint is what the slash command's hint shows of it, or empty.
	hint string
}

// commands are those of an app, in the order of the help text.
type commands []command

func allCommands() commands {
	return commands{
		{
			name: "stop", shape: shape(`stop[.!?]?()`), act: access.Stop, inThread: true,
			run: func(a *App, ctx context.Context, in *incoming, _ string) (string, error) {
				return a.stop(ctx, in.store.Key(), in.store.UserID)
			},
			help: render.HelpLine{Say: []string{"stop"}, Means: "interrupt what runs"},
		},
		{
			name: "costs", shape: shape(`(?s:costs?(?:[.!?:]*\s+(.+)|[.!?]*))`), act: access.See,
			isWork: func(a *App, rest string) bool { return !a.costs.Meant(rest) },
			run:    (*App).onCostsCommand,
			help: render.HelpLine{
				Say:   []string{"costs", "costs last month by project", "costs this week for me", "costs today with csv"},
				Means: "what was spent",
			},
			hint: "costs last month by project",
		},
		{
			name: "grants", shape: shape(`grants?[.!?]?()`), act: access.See,
			run:  (*App).onGrantsCommand,
			help: render.HelpLine{Say: []string{"grants"}, Means: "what is allowed here without being asked again, and by whom"},
			hint: "grants",
		},
		{
			name: "approvals", act: access.Administer,
			shape: shape(`approvals(?: +(?:(?:of|in|for) +)?(?:the +)?(?:last +)?([1-9][0-9]{0,2}) *d(?:ays?)?)?[.!?]?`),
			run:   (*App).onApprovalsCommand,
			help:  render.HelpLine{Say: []string{"approvals 30 days"}, Means: "how long decisions took, and who made them (for admins)"},
			hint:  "approvals 30 days",
		},
		// What these take is up to the policy, request by request: see decide.
		{
			name: "approve", shape: shape(`approve +([a-z0-9]{4,26}(?: .*)?)`), act: access.See, inThread: true,
			run: func(a *App, ctx context.Context, in *incoming, rest string) (string, error) {
				return a.decideByCode(ctx, in, store.ApprovalAllowed, rest)
			},
			help: render.HelpLine{Say: []string{"approve CODE"}, Means: "decide by the code on a card, where its buttons do not work"},
		},
		{
			name: "deny", shape: shape(`deny\s+([a-z0-9]{4,26}(?s:\s.*)?)`), act: access.See, inThread: true,
			run: func(a *App, ctx context.Context, in *incoming, rest string) (string, error) {
				return a.decideByCode(ctx, in, store.ApprovalDenied, rest)
			},
			help: render.HelpLine{Say: []string{"deny CODE reason"}, Means: "the same; the reason reaches the model"},
		},
		{
			name: "help", shape: shape(`help[.!?]?()`), act: access.See,
			run: func(a *App, _ context.Context, in *incoming, _ string) (string, error) {
				a.reply(in, a.help(""))
				return "help", nil
			},
			help: render.HelpLine{Say: []string{"help"}, Means: "this"},
			hint: "help",
		},
	}
}

// shape is a whole message, in upper or lower case.
func shape(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)^` + pattern + `$`) }

// find reads a text as a command and what follows its name; nil: it is none.
func (list commands) find(text string) (c *command, rest string) {
	for i := range list {
		if m := list[i].shape.FindStringSubmatch(text); m != nil {
			return &list[i], m[1]
		}
	}
	return nil, ""
}

// hint is what Slack shows behind /deckhand while somebody types it.
func (list commands) hint() string {
	var out []string
	for _, c := range list {
		if c.hint != "" {
			out = append(out, c.hint)
		}
	}
	return "[" + strings.Join(out, " | ") + "]"
}

// help says what can be said; complaint is a sentence in front of it, or empty.
func (a *App) help(complaint string) render.Page {
	view := render.HelpView{BotUser: a.self.UserID, Complaint: complaint}
	for _, c := range a.commands {
		view.Lines = append(view.Lines, c.help)
	}
	return render.Help(view)
}

func (a *App) onMessage(ctx context.Context, in *incoming) (outcome string, err error) {
	addressed := in.addressed(a.mention())
	text := said(strings.ReplaceAll(in.message.Text, a.mention(), ""))
	c, rest := a.commands.find(text)
	if c != nil && c.isWork != nil && c.isWork(a, rest) {
		c = nil
	}
	act := access.Prompt
	if c != nil {
		act = c.act
	}
	who := in.person()
	if thread, err := a.c.Store.ThreadByKey(ctx, in.store.Key()); err == nil {
		who.Project = thread.Project // which may not be the channel's any more
	}
	if !addressed && c == nil {
		if r := a.mayDo(ctx, who, act); r != nil {
			return "refused", nil // people who talk to each other in a thread are left alone
		}
	} else if r := a.authorise(ctx, who, act); r != nil {
		a.reply(in, render.Sentence(r.Sentence))
		return "refused", nil
	}
	switch {
	case c != nil:
		return c.run(a, ctx, in, rest)
	case text == "":
		a.reply(in, a.help(""))
		return "help", nil
	}
	return a.prompt(ctx, in, text)
}

func (a *App) onSlash(ctx context.Context, in *incoming) (outcome string, err error) {
	text := said(in.command.Text)
	c, rest := a.commands.find(text)
	act := access.See
	if c != nil {
		act = c.act
	}
	if r := a.authorise(ctx, in.person(), act); r != nil {
		a.reply(in, render.Sentence(r.Sentence))
		return "refused", nil
	}
	switch {
	case c == nil && text == "":
		a.reply(in, a.help(""))
		return "help", nil
	case c == nil:
		a.reply(in, a.help("“"+mrkdwn.Clip(mrkdwn.OneLine(text), 100)+"” is nothing that I know."))
		return "not understood", nil
	case c.inThread:
		a.reply(in, render.Sentence("Slack does not tell a slash command which thread it was typed in. Write “"+text+"” in the thread, or press its button."))
		return "not in a thread", nil
	}
	return c.run(a, ctx, in, rest)
}

// said is what a person typed, as they typed it.
func said(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(unescape(text), "\x00", ""))
}

func (a *App) onCostsCommand(ctx context.Context, in *incoming, words string) (outcome string, err error) {
	at := costs.Place{Channel: in.store.ChannelID, ThreadTS: in.store.ThreadTS, Slash: in.command != nil}
	if at.ThreadTS != "" {
		if at.Thread, err = a.c.Store.ThreadByKey(ctx, in.store.Key()); err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
	}
	who := in.person()
	outcome, refused, err := a.costs.Answer(ctx, who.UserID, at, words)
	if r := a.recordRefusal(ctx, who, access.Costs, refused); r != nil {
		a.reply(in, render.Sentence(r.Sentence))
		return "refused", nil
	}
	return outcome, err
}

func (a *App) onGrantsCommand(ctx context.Context, in *incoming, _ string) (outcome string, err error) {
	page, err := a.grantsPage(ctx, in.person(), in.store.Key())
	if err != nil {
		return "", err
	}
	a.reply(in, page)
	return "grants", nil
}

func (a *App) onApprovalsCommand(ctx context.Context, in *incoming, days string) (outcome string, err error) {
	page, err := a.approvalsReport(ctx, days)
	if err != nil {
		return "", err
	}
	a.reply(in, page)
	return "approvals", nil
}

// stop interrupts the thread's turn for a person who is authorised to.
func (a *App) stop(ctx context.Context, key store.ThreadKey, user string) (outcome string, err error) {
	thread, err := a.c.Store.ThreadByKey(ctx, key)
	running := false
	if err == nil {
		running, err = a.agent.Stop(ctx, thread, user)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	if !running {
		a.whisper(key.ChannelID, key.ThreadTS, user, render.Sentence("Nothing is running in this thread."))
		return "nothing to stop", nil
	}
	return "stopped", nil
}

// decideByCode is the second way to an approval, for when a button fails: the
// code on its card, as a reply in its thread.
func (a *App) decideByCode(ctx context.Context, in *incoming, status store.ApprovalStatus, rest string) (outcome string, err error) {
	code, reason := rest, ""
	if end := strings.IndexFunc(rest, unicode.IsSpace); end >= 0 {
		code, reason = rest[:end], rest[end:]
	}
	pending, err := a.c.Store.PendingApprovals(ctx, in.store.Key())
	if err != nil {
		return "", err
	}
	var match []store.Approval
	for _, p := range pending {
		if strings.HasPrefix(p.ID, strings.ToUpper(code)) {
			match = append(match, p)
		}
	}
	if len(match) != 1 {
		a.reply(in, render.Sentence("No request with the code "+strings.ToUpper(code)+" is open in this thread. The code is on the request's card."))
		return "no such approval", nil
	}
	d := store.Decision{ApprovalID: match[0].ID, Status: status, By: in.message.User, Via: "command", Reason: strings.TrimSpace(reason)}
	if match[0].Kind == store.ApprovalQuestion && d.Status == store.ApprovalAllowed {
		a.reply(in, render.Sentence("A question needs an answer: choose one on its card."))
		return "not a yes or no", nil
	}
	if match[0].Terms.Dangerous && d.Status == store.ApprovalAllowed {
		confirmed, after, _ := strings.Cut(d.Reason, " ")
		if !strings.EqualFold(confirmed, "confirm") {
			a.reply(in, render.Sentence(
				"The policy calls this dangerous. Read all of it on its card; if it may run, reply “approve "+strings.ToUpper(code)+" confirm”."))
			return "not confirmed", nil
		}
		d.Reason = strings.TrimSpace(after)
	}
	return a.decide(ctx, in, match[0], d)
}
