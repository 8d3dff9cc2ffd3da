package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/spelling"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// People steer a thread's session by commands in it. What they choose (model, effort, mode)
// is in the database and holds from the next turn on, whichever process runs that; what they
// want done (new, retry, compact, context) becomes a prompt, in the order of their messages.

// noSession is the answer to a command about a session where there is none.
const noSession = "There is no session in this thread yet. Mention me and say what you want done first."

// byDefault goes back to what the project has.
const byDefault = "default"

// session is a command about the session of the thread that it is said in; the person is told if there
// is none.
func (a steerer) session(do func(ctx context.Context, in *Incoming, t threads.Thread, rest string) (string, error)) func(ctx context.Context, in *Incoming, rest string) (string, error) {
	return func(ctx context.Context, in *Incoming, rest string) (string, error) {
		t, err := a.here(ctx, in)
		switch {
		case err != nil:
			return "", err
		case t.ID == 0:
			a.Answer(in, noSession)
			return "no session", nil
		}
		return do(ctx, in, t, rest)
	}
}

// steer notes what somebody chose for a thread. said tells of it, after their name.
func (a steerer) steer(ctx context.Context, in *Incoming, t threads.Thread, what, value, said string) (outcome string, err error) {
	if value == byDefault && what != inbox.SteerMode {
		value = ""
	}
	rows, err := a.c.Store.Steer(ctx, t.ID, a.steering(ctx, in, what, value, said))
	if err != nil {
		return "", err
	}
	a.Outbox.Tell(rows...)
	return what, nil
}

func (a steerer) steering(ctx context.Context, in *Incoming, what, value, said string) inbox.Steer {
	return inbox.Steer{What: what, Value: value, By: in.Row.UserID, Sentence: a.nameOf(ctx, in) + " " + said}
}

func (a steerer) onModelCommand(ctx context.Context, in *Incoming, name string) (outcome string, err error) {
	t, err := a.here(ctx, in)
	if err != nil {
		return "", err
	}
	project, opens := t.Project, t.ID == 0
	if opens {
		project = a.c.Access.Places.Project(in.Row.ChannelID)
	}
	models := a.agent.Models(project)
	at := slices.IndexFunc(models, func(m agent.ModelChoice) bool { return strings.EqualFold(m.Name, name) })
	switch {
	case name == "" && opens:
		a.Answer(in, view.Models(models, "none")+" To choose one, write model=NAME in the message that begins the work.")
		return "models", nil
	case name == "":
		now, err := a.c.Store.Steering(ctx, t.ID)
		if err != nil {
			return "", err
		}
		a.reply(in, view.AskBack{Sentence: view.Models(models, now.Model), Choices: modelButtons(models)})
		return "models", nil
	case at < 0 && name != byDefault:
		a.reply(in, view.AskBack{Sentence: notAllowed(name, models), Choices: modelButtons(models), TS: in.postTS()})
		return "a model that is not allowed", nil
	case opens:
		a.Answer(in, noSession)
		return "no session", nil
	case at < 0:
		return a.steer(ctx, in, t, inbox.SteerModel, "", "chose the project's own model. It answers from the next message on.")
	}
	return a.steer(ctx, in, t, inbox.SteerModel, models[at].Name, choseModel(models[at]))
}

func choseModel(m agent.ModelChoice) string {
	return "chose the model " + view.Model(m) + ". It answers from the next message on."
}

func notAllowed(name string, models []agent.ModelChoice) string {
	return "The model “" + quoted(name) + "” cannot be chosen here. " + view.Models(models, "none")
}

// modelButtons choose one of several models.
func modelButtons(models []agent.ModelChoice) (out []view.Choice) {
	if len(models) < 2 {
		return nil
	}
	for _, m := range models {
		out = append(out, view.Choice{Say: "model " + m.Name, Label: view.Model(m)})
	}
	return out
}

// modelWord is how a message chooses the model, in words of their own.
var modelWord = regexp.MustCompile(`(?i)(?:^|\s)model=([^\s` + "`" + `]+)`)

// modelIn takes the choice of a model out of a message for a project. What stands in code, or
// later in a message and means no model, is left: people write about programs. wrong is what to
// tell of a choice that cannot be made.
func modelIn(text string, models []agent.ModelChoice) (rest string, chosen *agent.ModelChoice, wrong string) {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.Name
	}
	for _, at := range modelWord.FindAllStringSubmatchIndex(text, -1) {
		if strings.Count(text[:at[0]], "`")%2 != 0 {
			continue
		}
		name := strings.TrimRight(text[at[2]:at[3]], ".,:;!?")
		if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
			return strings.TrimSpace(text[:at[0]] + text[at[2]+len(name):]), &models[i], ""
		}
		if strings.TrimSpace(text[:at[0]]) == "" || agent.KnowsModel(name) || spelling.Slip(name, names) != "" {
			return text, nil, notAllowed(name, models)
		}
	}
	return text, nil, ""
}

func (a steerer) onEffortCommand(ctx context.Context, in *Incoming, t threads.Thread, level string) (outcome string, err error) {
	level = strings.ToLower(level)
	levels := append(slices.Clone(agent.Efforts), byDefault)
	if !slices.Contains(levels, level) {
		now, err := a.c.Store.Steering(ctx, t.ID)
		if err != nil {
			return "", err
		}
		return a.offer(in, inbox.SteerEffort, level, now.Effort, levels)
	}
	if level == byDefault {
		return a.steer(ctx, in, t, inbox.SteerEffort, level, "chose the model's own effort. It holds from the next message on.")
	}
	return a.steer(ctx, in, t, inbox.SteerEffort, level, "chose "+level+" effort. It holds from the next message on."+costsMore(level))
}

// costsMore is said of each effort but the least.
func costsMore(level string) string {
	if level == agent.Efforts[0] {
		return ""
	}
	return " More effort costs more."
}

func (a steerer) onModeCommand(ctx context.Context, in *Incoming, t threads.Thread, mode string) (outcome string, err error) {
	switch strings.ToLower(mode) {
	case agent.ModePlan:
		return a.steer(ctx, in, t, inbox.SteerMode, agent.ModePlan, "wants a plan first: from the next message on nothing is changed before somebody approves it. “mode default” ends that.")
	case agent.ModeDefault:
		return a.steer(ctx, in, t, inbox.SteerMode, agent.ModeDefault, "switched planning off. That holds from the next message on.")
	}
	now, err := a.c.Store.Steering(ctx, t.ID)
	if err != nil {
		return "", err
	}
	return a.offer(in, inbox.SteerMode, mode, now.Mode, []string{agent.ModePlan, agent.ModeDefault})
}

// offer says what is chosen now, and what else can be; wrong was said and is none of it.
func (a steerer) offer(in *Incoming, what, wrong, now string, values []string) (outcome string, err error) {
	said, ts := "", ""
	if wrong != "" {
		said, ts = "There is no "+what+" “"+quoted(wrong)+"”. ", in.postTS()
	}
	now = cmp.Or(now, byDefault)
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == now })
	var buttons []view.Choice
	for _, v := range values {
		buttons = append(buttons, view.Choice{Say: what + " " + v, Label: v})
	}
	a.reply(in, view.AskBack{Sentence: said + "The " + what + " of this thread is " + now + ". Choose another one, or write “" + what + " " + values[0] + "”.", Choices: buttons, TS: ts})
	return what, nil
}

// orders is a command that gives the thread's session a prompt.
func (a steerer) orders(text string) func(ctx context.Context, in *Incoming, rest string) (string, error) {
	return a.session(func(ctx context.Context, in *Incoming, t threads.Thread, _ string) (string, error) {
		return a.order(ctx, in, t, text, nil)
	})
}

// order gives the thread's session a prompt that a command stands for, of the person who said
// it, in its turn.
func (a steerer) order(ctx context.Context, in *Incoming, t threads.Thread, text string, files []inbox.PromptFile) (outcome string, err error) {
	if in.Message != nil && in.Row.WaitsSince.IsZero() {
		a.screen.React(in.Row.ChannelID, in.Row.TS, Heard, nil)
	}
	return prompter(a).give(ctx, in, t, inbox.NewPrompt{Text: text, Files: files, Edits: in.Row.Edits})
}

// give gives a thread's session a prompt of whoever acts.
func (a prompter) give(ctx context.Context, in *Incoming, t threads.Thread, p inbox.NewPrompt) (outcome string, err error) {
	p.InboxID, p.Thread, p.Project, p.UserID, p.UUID = in.Row.ID, t.Key(), t.Project, in.Row.UserID, uuid.NewString()
	_, ok, err := a.c.Store.AcceptPrompt(ctx, p)
	if err != nil {
		return "", err
	}
	if ok {
		a.agent.Wake(t.ID)
	}
	return "accepted", nil
}

// nameOf is the name of whoever acts, on one line.
func (a *gate) nameOf(ctx context.Context, in *Incoming) string {
	return plaintext.OneLine(a.people.Name(ctx, in.Row.UserID))
}

func (a steerer) onRetryCommand(ctx context.Context, in *Incoming, t threads.Thread, _ string) (outcome string, err error) {
	last, err := a.c.Store.LastPrompt(ctx, t.ID)
	switch {
	case errors.Is(err, pg.ErrNotFound):
		a.Answer(in, "Nothing was asked in this thread yet that could be done again.")
		return "nothing to retry", nil
	case err != nil:
		return "", err
	case last.Running:
		a.Answer(in, "The last message is still being worked on, or waits. Write “stop” first, then “retry”.")
		return "still running", nil
	}
	return a.order(ctx, in, t, fmt.Sprintf("[%s wants this done again:]\n%s", a.nameOf(ctx, in), last.Text), last.Files)
}

// sessionsShown is how many sessions of a thread are listed.
const sessionsShown = 20

func (a steerer) onSessionsCommand(ctx context.Context, in *Incoming, t threads.Thread, _ string) (outcome string, err error) {
	list, err := a.c.Store.ThreadSessions(ctx, t.ID, sessionsShown)
	if err != nil {
		return "", err
	}
	a.reply(in, view.ThreadSessions(list))
	return "sessions", nil
}
