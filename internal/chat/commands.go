package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/agent/trust"
	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// command is something that people can say to the bot besides giving it work, in a
// message to it or after /deckhand. All that is known of one stands in [allCommands]:
// the help text is made of it, and the manifest and README are held against it. [spoken]
// says which texts are commands.
type command struct {
	name string
	// noun is true of a name that asks for something, false of a verb.
	noun bool
	// form matches what follows the name in a text that is the command. Its group is what
	// the command takes. Stop has none: many words mean it, see stopwords.go.
	form *regexp.Regexp
	// byCode says that a card's code has to follow the name.
	byCode bool
	// act is what the person must be entitled to.
	act access.Act
	// inThread says that it is about the thread that it is said in, which Slack does
	// not tell of a slash command.
	inThread bool
	// steers says that it steers the thread's session. Its exact form alone is the command, as
	// people begin work with such words, too, and where a channel wants mentions it takes one.
	steers bool
	// asksBack says that a few words that begin with its name and are not its form are asked back: no work begins so.
	asksBack bool
	// run carries it out for a person who is entitled to it, answers them, and says in
	// a word or two what came of it.
	run func(ctx context.Context, in *Incoming, rest string) (outcome string, err error)
	// help says what it does, after the ways to say it.
	help view.HelpLine
}

// commands are those of an app, in the order of the help text.
type commands []command

func allCommands(a *Chat) commands {
	s, d, c := steerer{a}, decider{a}, connector{a}
	return commands{
		{
			name: "stop", act: access.Stop, inThread: true,
			run: func(ctx context.Context, in *Incoming, _ string) (string, error) {
				return a.stop(ctx, in.Row.Key(), in.Row.UserID, in.postTS())
			},
			help: view.HelpLine{Say: []string{"stop"}, Means: "interrupt what runs"},
		},
		{
			name: "costs", noun: true, form: form(`(?s:(.*))`), act: access.See,
			run: router{a}.onCostsCommand,
			help: view.HelpLine{
				Say:   []string{"costs", "costs last month by project", "costs this week for me", "costs today with csv"},
				Means: "what was spent; or ask in your own words, as in “how much did we spend this month?”",
			},
		},
		{
			name: "grants", noun: true, form: form(`()`), act: access.See,
			run:  granter{a}.onGrantsCommand,
			help: view.HelpLine{Say: []string{"grants"}, Means: "what runs here without asking, and who allowed it"},
		},
		{
			name: "approvals", noun: true, act: access.Administer,
			form: form(lastDays),
			run:  router{a}.onApprovalsCommand,
			help: view.HelpLine{Say: []string{"approvals 30 days"}, Means: "how long decisions took, and who made them (for admins)"},
		},
		{
			name: "feedback", act: access.Administer, // no noun: sentences begin with it
			form: form(lastDays),
			run:  rater{a}.onFeedbackCommand,
			help: view.HelpLine{Say: []string{"feedback 30 days"}, Means: "what people think of the answers, and why (for admins)"},
		},
		{
			name: "model", act: access.Prompt, inThread: true, steers: true, form: form(`(?:(?:to|is|=) *)?([A-Za-z0-9._:@/\[\]-]*)[.!?…]*`),
			run:  s.onModelCommand,
			help: view.HelpLine{Say: []string{"model opus", "model", "model default"}, Means: "choose the model that answers, with its price, or write model=opus in a message"},
		},
		{
			name: "effort", act: access.Prompt, inThread: true, steers: true, asksBack: true, form: form(`([A-Za-z]*)[.!?…]*`),
			run:  s.session(s.onEffortCommand),
			help: view.HelpLine{Say: []string{"effort high", "effort low", "effort default"}, Means: "how much the model thinks"},
		},
		{
			name: "plan", act: access.Prompt, inThread: true, steers: true, form: form(`()`),
			run: s.session(func(ctx context.Context, in *Incoming, t threads.Thread, _ string) (string, error) {
				return s.onModeCommand(ctx, in, t, agent.ModePlan)
			}),
			help: view.HelpLine{Say: []string{"plan"}, Means: "have the next work planned first, for approval"},
		},
		{
			name: "mode", act: access.Prompt, inThread: true, steers: true, asksBack: true, form: form(`([A-Za-z]*)[.!?…]*`),
			run:  s.session(s.onModeCommand),
			help: view.HelpLine{Say: []string{"mode default", "mode plan"}, Means: "switch planning off again, or on"},
		},
		{
			name: "retry", act: access.Prompt, inThread: true, steers: true, form: form(`()`),
			run:  s.session(s.onRetryCommand),
			help: view.HelpLine{Say: []string{"retry"}, Means: "do the last message again, as yours"},
		},
		{
			name: "rewind", act: access.Prompt, inThread: true, steers: true, asksBack: true, form: form(`((?:(?:back|[1-9][0-9]*)(?: +yes +[0-9]+ +[0-9a-f-]+)?)?)[.!?…]*`),
			run:  s.session(s.onRewindCommand),
			help: view.HelpLine{Say: []string{"rewind", "rewind back"}, Means: "take the thread back to before a message: files, branch and conversation, after a look at what would change; or undo that"},
		},
		{
			name: "fork", act: access.Prompt, inThread: true, steers: true, form: form(`((?:from|[1-9][0-9]*)?)[.!?…]*`),
			run:  s.session(s.onForkCommand),
			help: view.HelpLine{Say: []string{"fork", "fork from"}, Means: "begin another thread with this one's conversation and files, as they are now or were after a message"},
		},
		{
			name: "new", act: access.Prompt, inThread: true, steers: true, form: form(`()`),
			run:  s.orders("/clear"),
			help: view.HelpLine{Say: []string{"new"}, Means: "begin a new session in this thread; the files stay"},
		},
		{
			name: "sessions", act: access.See, inThread: true, steers: true, form: form(`()`),
			run:  s.session(s.onSessionsCommand),
			help: view.HelpLine{Say: []string{"sessions"}, Means: "the sessions that this thread had, and what they cost"},
		},
		{
			name: "context", act: access.Prompt, inThread: true, steers: true, form: form(`()`),
			run:  s.orders("/context"),
			help: view.HelpLine{Say: []string{"context"}, Means: "how full the model's context is, and by what"},
		},
		{
			name: "compact", act: access.Prompt, inThread: true, steers: true, form: form(`()`),
			run:  s.orders("/compact"),
			help: view.HelpLine{Say: []string{"compact"}, Means: "sum the conversation up, so that there is room again"},
		},
		{
			name: "mcp", act: access.Prompt, inThread: true, steers: true, asksBack: true, form: form(`((?:(?:off|on|reconnect) +[a-z0-9-]+)?)[.!?…]*`),
			run:  s.session(s.onMCPCommand),
			help: view.HelpLine{Say: []string{"mcp", "mcp off linear", "mcp on linear", "mcp reconnect linear"}, Means: "the MCP servers of this thread: how they are, switch one off or on, connect it again"},
		},
		{
			name: "trust", act: access.Administer, inThread: true, steers: true, form: form(`((?:(?:yes|no) +[a-z]+ +[0-9a-f]{64})?)[.!?…]*`),
			run:  s.session(s.onTrustCommand),
			help: view.HelpLine{Say: []string{"trust"}, Means: "see which commands, agents and skills the repository brings, and agree to them (for admins)"},
		},
		{
			name: "setup", act: access.Administer, steers: true, form: form(`(?:project +([A-Za-z0-9][A-Za-z0-9._-]*))?`),
			run:  binder{a}.onSetupCommand,
			help: view.HelpLine{Say: []string{"setup", "setup project web", "setup project none"}, Means: "choose the project that this channel works on (for admins)"},
		},
		{
			name: "connect", act: access.See, steers: true, form: form(`()`),
			run:  c.onConnectCommand,
			help: view.HelpLine{Say: []string{"connect"}, Means: "have pull requests opened, and MCP servers called, by your own account"},
		},
		{
			name: "disconnect", act: access.See, steers: true, form: form(`()`),
			run:  c.onConnectCommand,
			help: view.HelpLine{Say: []string{"disconnect"}, Means: "stop using your own accounts"},
		},
		// What these take is up to the policy, request by request: see decide.
		{
			name: "approve", byCode: true, form: form(`(.*)`), act: access.See, inThread: true,
			run: func(ctx context.Context, in *Incoming, rest string) (string, error) {
				return d.decideByCode(ctx, in, approvals.Allowed, rest)
			},
			help: view.HelpLine{Say: []string{"approve CODE"}, Means: "approve by the code on a card, if its buttons do not work"},
		},
		{
			name: "deny", byCode: true, form: form(`(?s:(.*))`), act: access.See, inThread: true,
			run: func(ctx context.Context, in *Incoming, rest string) (string, error) {
				return d.decideByCode(ctx, in, approvals.Denied, rest)
			},
			help: view.HelpLine{Say: []string{"deny CODE reason"}, Means: "deny by that code; the model reads the reason"},
		},
		{
			name: "help", form: form(`()`), act: access.See,
			run: func(ctx context.Context, in *Incoming, _ string) (string, error) {
				return "help", router{a}.help(ctx, in, "")
			},
			help: view.HelpLine{Say: []string{"help"}, Means: "this"},
		},
	}
}

// lastDays is how a period is said, up to 999 days; its group is the number.
const lastDays = `(?:(?:(?:of|in|for) +)?(?:the +)?(?:last +)?([1-9][0-9]{0,2}) *d(?:ays?)?)?[.!?…]*`

// form is all that follows a name, in upper or lower case.
func form(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)^` + pattern + `$`) }

// help tells a person what can be said where they are; complaint is a sentence in front of it, or
// empty.
func (a router) help(ctx context.Context, in *Incoming, complaint string) error {
	help := view.Help{BotUser: a.self.User, Complaint: complaint, Attach: a.c.Attachments.Sentence()}
	for _, c := range a.table.commands {
		help.Lines = append(help.Lines, c.help)
	}
	help.Lines = append(help.Lines, reactionHelp(a.c.Reactions)...)
	t, err := a.here(ctx, in)
	if err != nil {
		return err
	}
	project := cmp.Or(t.Project, a.c.Access.Places.Project(in.Row.ChannelID))
	if help.Commands, err = a.agent.TrustedCommands(ctx, project); err != nil {
		return err
	}
	help.Commands = slices.DeleteFunc(help.Commands, func(e trust.Entry) bool { return hasOwnName("/" + e.Name) })
	a.reply(in, help)
	return nil
}

func (a router) onMessage(ctx context.Context, in *Incoming) (outcome string, err error) {
	addressed, text := in.Message.ToUs, in.Message.Said
	c := a.table.commands.find(text)
	who := in.person()
	thread, err := a.c.Store.ThreadByKey(ctx, in.Row.Key())
	switch {
	case err == nil:
		who.Project = thread.Project // which may not be the channel's any more
	case !addressed && errors.Is(err, pg.ErrNotFound):
		// Its thread was about to begin when it was taken in.
		if served, begins, err := a.c.Store.Concerns(ctx, in.Row.Key(), in.Row.TS); err != nil || served || begins {
			return "", cmp.Or(err, pg.ErrNotYet)
		}
		return "in no thread of ours", nil
	}
	theirs, err := a.isBrought(ctx, cmp.Or(thread.Project, a.c.Access.Places.Project(in.Row.ChannelID)), text)
	if err != nil {
		return "", err
	}
	if in.Message.ForModel || theirs {
		c = nil
	} else if c == nil && len(in.Message.Files) == 0 && report.MayAsk(text) {
		if c, err = a.asksCosts(ctx, in, thread, text); err != nil {
			return "", err
		}
	}
	var to aim
	if c == nil {
		to = prompter(a).aimOf(ctx, in, thread, a.screen.Typed(ctx, in.Message.Body))
		who.Project = cmp.Or(who.Project, to.project)
	}
	act := access.Prompt
	switch {
	case c != nil && !c.nearly:
		act = c.act
	case c != nil && addressed:
		act = access.See
	}
	if !addressed && (c == nil || c.nearly || c.guessed) {
		if r := a.mayDo(ctx, who, act); r != nil {
			a.cursor.noteTalk(in.Row.Key(), in.Row.TS)
			return "refused", a.unknown(r) // people who talk to each other in a thread are left alone
		}
	} else if r := a.mayDo(ctx, who, act); r != nil {
		if err := a.unknown(r); err != nil {
			return "", err
		}
		a.Answer(in, a.recordRefusal(ctx, who, act, r).Sentence)
		return "refused", nil
	}
	switch {
	case in.Message.Late:
		return listener(a).tooLate(in), nil
	case text == "" && len(in.Message.Files) == 0:
		return "help", a.help(ctx, in, "")
	case to.wrong != "":
		a.Answer(in, to.wrong+" Nothing was begun: send your message again.")
		return "a place that cannot be chosen", nil
	case len(to.choices) > 0:
		return prompter(a).pickProject(ctx, in, to.choices)
	case c == nil:
		return prompter(a).prompt(ctx, in, thread, to)
	case c.nearly:
		a.askBack(in, c, text)
		outcome, err = askedBack, nil
	default:
		outcome, err = a.carryOut(ctx, in, c)
	}
	if files := in.Message.Files; err == nil && len(files) > 0 {
		a.Answer(in, notGiven(files, c.name))
	}
	return outcome, err
}

// notGiven says that files came with what is no work.
func notGiven(files []SharedFile, command string) string {
	them, were := "The file "+namesOf(files[:1]), " was"
	if len(files) > 1 {
		them, were = "The "+strconv.Itoa(len(files))+" files", " were"
	}
	return them + were + " not given to the model: “" + command + "” is for Deckhand itself. Send files with words for the model, or with none."
}

func (a router) onSlash(ctx context.Context, in *Incoming) (outcome string, err error) {
	text := a.screen.Said(in.Command.Text)
	c := a.table.commands.find(text)
	if c == nil && report.MayAsk(text) {
		if c, err = a.asksCosts(ctx, in, threads.Thread{}, text); err != nil {
			return "", err
		}
	}
	act := access.See
	if c != nil && !c.nearly {
		act = c.act
	}
	if a.refuses(ctx, in, in.person(), act) {
		return "refused", nil
	}
	switch {
	case text == "":
		return "help", a.help(ctx, in, "")
	case c != nil && c.nearly && c.meant != "":
		a.askBack(in, c, text)
		return askedBack, nil
	case c == nil || c.nearly:
		return "not understood", a.help(ctx, in, "I do not understand “"+quoted(text)+"”.")
	case c.inThread:
		a.Answer(in, "Slack does not tell a slash command which thread it was typed in. Write “"+text+"” in the thread, or press its button.")
		return "not in a thread", nil
	}
	return c.run(ctx, in, c.rest)
}

// askedBack is the outcome of what is asked back.
const askedBack = "asked back"

// askBack asks what a person meant who said nearly a command.
func (a router) askBack(in *Incoming, c *spoken, text string) {
	var meant []view.Choice
	if c.meant != "" {
		meant = []view.Choice{{Say: c.meant, Label: c.meant}}
	}
	a.reply(in, view.AskBack{Sentence: c.complaint(text), Choices: meant, TS: in.postTS()})
}

// onSayClick does what a button stands for that was offered instead of what a person had
// said: as if they said it now, where the button is.
func (a router) onSayClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	text := in.Click.Value
	c := a.table.commands.find(text)
	if c == nil || c.nearly {
		return "", fmt.Errorf("the button's value is no command: %q", text)
	}
	who, err := a.personHere(ctx, in)
	if err != nil {
		return "", err
	}
	if a.refuses(ctx, in, who, c.act) {
		return "refused", nil
	}
	return a.carryOut(ctx, in, c)
}

// carryOut carries a command out. Whoever said it is answered, even if the answer is the last sentence of the thread.
func (a router) carryOut(ctx context.Context, in *Incoming, c *spoken) (outcome string, err error) {
	a.said.forget(in.Row.Key())
	return c.run(ctx, in, c.rest)
}

// onInsteadClick gives the model a message that was asked back, once: it is acted on again,
// as work, by whoever looks into the inbox.
func (a prompter) onInsteadClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	who, err := a.personHere(ctx, in)
	if err != nil {
		return "", err
	}
	if a.refuses(ctx, in, who, access.Prompt) {
		return "refused", nil
	}
	return a.giveToModel(ctx, in, in.Click.Value, "")
}

// giveToModel has a message of the person's be acted on again as work, in a project if one is
// named.
func (a prompter) giveToModel(ctx context.Context, in *Incoming, ts, project string) (outcome string, err error) {
	post := inbox.Post{TeamID: in.Row.TeamID, ChannelID: in.Row.ChannelID, TS: ts, UserID: in.Row.UserID}
	ok, err := a.c.Store.GiveToModel(ctx, post, project)
	for errors.Is(err, pg.ErrNotYet) && ctx.Err() == nil { // who asked back is about to be done
		time.Sleep(50 * time.Millisecond)
		ok, err = a.c.Store.GiveToModel(ctx, post, project)
	}
	if err != nil {
		return "", err
	}
	if !ok {
		a.Answer(in, "Claude has this message already, or it is gone.")
		return "too late", nil
	}
	a.inbox.lookAgain(0)
	return "given to the model", nil
}

// asksCosts is the command that a question about costs stands for; nil for no such question.
func (a router) asksCosts(ctx context.Context, in *Incoming, thread threads.Thread, text string) (_ *spoken, err error) {
	asks := asksBudget.MatchString(text)
	if !asks {
		if asks, err = a.costs.Asks(ctx, in.Row.UserID, placeOf(in, thread), text); err != nil || !asks {
			return nil, err
		}
	}
	return &spoken{command: a.table.commands.named("costs"), rest: text, guessed: true}, nil
}

// placeOf is where a question about costs is asked. Outside of threads only the person sees
// the answer.
func placeOf(in *Incoming, thread threads.Thread) view.Place {
	return view.Place{
		Channel: in.Row.ChannelID, ThreadTS: in.Row.ThreadTS, Thread: thread, TS: in.postTS(),
		Slash: in.Command != nil || in.Click != nil && in.Row.ThreadTS == "",
	}
}

// asksBudget matches a question about what somebody may spend, not about what was spent.
var asksBudget = regexp.MustCompile(`(?i)^(?:(?:what(?:['’]s| is| are)|how much(?: is| do i have)?(?: left)?(?: of| in)?) )?(?:(?:my|our|the) )?budgets?(?: is left| do i have left)?(?: today| this (?:day|week|month))?[ ?!.]*$`)

func (a router) onCostsCommand(ctx context.Context, in *Incoming, words string) (outcome string, err error) {
	thread, err := a.here(ctx, in)
	if err != nil {
		return "", err
	}
	who := in.person()
	if asksBudget.MatchString(words) {
		team := who
		team.ChannelID = ""
		admin := a.mayDo(ctx, team, access.Administer) == nil
		place := thread
		place.ChannelID, place.Project = in.Row.ChannelID, cmp.Or(thread.Project, a.c.Access.Places.Project(in.Row.ChannelID))
		if !slices.Contains(tab(a).usable(ctx, who.UserID), place.Project) {
			place.Project = "" // as in reports, its sum is for those who may use all of it
		}
		said, err := tab(a).budgetsFor(ctx, place, who.UserID, admin, time.Now())
		if err != nil {
			return "", err
		}
		a.Answer(in, cmp.Or(strings.Join(said, "\n"), "No budget is set for you, this channel or its project."))
		return "budgets", nil
	}
	outcome, refused, err := a.costs.Answer(ctx, who.UserID, placeOf(in, thread), words)
	if refused != nil && in.Message != nil && a.unknown(refused) != nil {
		return "", a.unknown(refused)
	}
	if r := a.recordRefusal(ctx, who, access.Costs, refused); r != nil {
		a.Answer(in, r.Sentence)
		return "refused", nil
	}
	return outcome, err
}

func (a prompter) onStopClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	turnID, err := strconv.ParseInt(in.Click.Value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the Stop button's value is not a turn: %w", err)
	}
	thread, err := a.c.Store.ThreadOfRunningTurn(ctx, turnID)
	gone := errors.Is(err, pg.ErrNotFound) || (err == nil && thread.ChannelID != in.Row.ChannelID)
	var here agent.TurnView
	if err != nil && !gone {
		// The database is away. What runs here can be stopped all the same.
		if here = a.screen.Running(turnID); here.ID == 0 || here.Thread.ChannelID != in.Row.ChannelID {
			return "", err
		}
		thread = threads.Thread{ID: here.ThreadID, Project: here.Project}
	}
	if a.refuses(ctx, in, in.at(thread), access.Stop) {
		return "refused", nil
	}
	if gone {
		a.Answer(in, "This turn has ended already.")
		return "nothing to stop", nil
	}
	if here.ID == 0 {
		return a.stop(ctx, thread.Key(), in.Row.UserID, "")
	}
	if running, err := a.agent.Stop(ctx, thread, in.Row.UserID); err != nil || !running {
		return "", err
	}
	return "stopped", nil
}

// onNativeStop stops a thread's turn for whoever pressed Slack's own Stop button, if they
// may press ours.
func (a router) onNativeStop(ctx context.Context, in *Incoming) (outcome string, err error) {
	key := in.Row.Key()
	who, err := a.personHere(ctx, in)
	if err != nil {
		return "", err
	}
	if a.refuses(ctx, in, who, access.Stop) {
		return "refused", nil
	}
	outcome, err = a.stop(ctx, key, in.Row.UserID, "")
	if outcome == "nothing to stop" {
		a.screen.Left(key) // the button was a dead process's
	}
	return outcome, err
}

// stop interrupts the thread's turn for a person who is authorised to. Where none runs, the
// message with that ts, if there is one, may be given to the model all the same.
func (a *Chat) stop(ctx context.Context, key threads.ThreadKey, user, ts string) (outcome string, err error) {
	thread, err := a.c.Store.ThreadByKey(ctx, key)
	running := false
	if err == nil {
		running, err = a.agent.Stop(ctx, thread, user)
	}
	if err != nil && !errors.Is(err, pg.ErrNotFound) {
		return "", err
	}
	if !running {
		a.screen.Whisper(Where{key.ChannelID, key.ThreadTS}, user, view.AskBack{Sentence: "Nothing is running in this thread.", TS: ts}, nil)
		return "nothing to stop", nil
	}
	return "stopped", nil
}

// decideByCode is the second way to an approval, for when a button fails: the
// code on its card, as a reply in its thread.
func (a decider) decideByCode(ctx context.Context, in *Incoming, status approvals.Status, rest string) (outcome string, err error) {
	code, reason := headOf(rest)
	prefix, seen := view.ParseCode(code)
	pending, err := a.c.Store.PendingApprovals(ctx, in.Row.Key())
	if err != nil {
		return "", err
	}
	var match []approvals.Approval
	for _, p := range pending {
		if strings.HasPrefix(p.ID, prefix) {
			match = append(match, p)
		}
	}
	if len(match) != 1 {
		a.Answer(in, "No request with the code "+strings.ToUpper(code)+" is open in this thread. The code is on the request's card.")
		return "no such approval", nil
	}
	d := approvals.Decision{ApprovalID: match[0].ID, Status: status, By: in.Row.UserID, Via: "command", Seen: seen, Reason: strings.TrimSpace(reason)}
	if match[0].Kind == approvals.Question && d.Status == approvals.Allowed {
		a.Answer(in, "A question needs an answer: choose one on its card.")
		return "not a yes or no", nil
	}
	if match[0].Terms.Dangerous && d.Status == approvals.Allowed {
		confirmed, after, _ := strings.Cut(d.Reason, " ")
		loses, word := view.Dangers(match[0], a.c.Redact)
		if !strings.EqualFold(confirmed, word) {
			facts, err := a.mergeObstacles(ctx, match[0])
			if err != nil {
				return "", err
			}
			loses = strings.Join(append(facts, loses), " ")
			a.reply(in, view.Sentence(loses+" Read all of it on its card. If it may run, reply “approve "+strings.ToUpper(code)+" "+word+"”."))
			return "not confirmed", nil
		}
		d.Confirmed, d.Reason = true, strings.TrimSpace(after)
	}
	return a.decide(ctx, in, match[0], d)
}
