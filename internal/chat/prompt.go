package chat

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

// prompt gives the session of a thread work, or of a new one if thread is zero. The eyes come first: the person sees at
// once that they were heard.
func (a prompter) prompt(ctx context.Context, in *Incoming, thread threads.Thread, to aim) (outcome string, err error) {
	m, key, text := in.Message, in.Row.Key(), to.text
	files := promptFiles(m.Files)
	opens := thread.ID == 0
	if !opens {
		listener(a).scanBefore(ctx, in)
	}
	project, title := thread.Project, ""
	if opens {
		if project = to.project; project == "" {
			a.Answer(in, noProject(key.ChannelID))
			return "no project", nil
		}
		if to.branch != "" {
			if refused := a.agent.CheckBranch(ctx, project, to.branch); refused != "" {
				a.Answer(in, plaintext.OneLine(refused)+" Nothing was begun: send your message again.")
				return "no such branch", nil
			}
		}
	}
	text, chosen, wrong := modelIn(text, a.agent.Models(project))
	switch {
	case wrong != "":
		a.Answer(in, wrong+" Nothing was begun: send your message again.")
		return "a model that is not allowed", nil
	case chosen != nil && text == "" && len(files) == 0:
		return steerer(a).onModelCommand(ctx, in, chosen.Name)
	case text == "":
		text = agent.NoWords
	}
	asked := text
	if name := strings.TrimSpace(cliCommand.FindString(text)); strings.HasPrefix(text, "/") && !passedOn[name] {
		if text, err = steerer(a).brought(ctx, project, name, text); err != nil {
			return "", err
		}
	} else if strings.HasPrefix(text, "/") && len(files) > 0 {
		a.Answer(in, "The files are not read: they came with a command of Claude Code. Attach them to a message in words.")
		files = nil
	}
	if opens {
		if text == agent.NoWords {
			asked = calledBy(m.Files)
		}
		title = view.Title(asked, a.c.Redact)
	}
	if in.Row.WaitsSince.IsZero() {
		a.screen.React(key.ChannelID, in.Row.TS, Heard, nil)
	}
	if text, files, err = a.withContext(ctx, in, thread, text, files); err != nil {
		return "", err
	}
	p := inbox.NewPrompt{
		InboxID: in.Row.ID, Thread: key, Project: project, Title: title, Slug: view.Slug(title), Base: to.branch, UserID: in.Row.UserID, UUID: uuid.NewString(), Text: text, Files: files, Edits: in.Row.Edits,
	}
	if chosen != nil {
		p.Steers = []inbox.Steer{steerer(a).steering(ctx, in, inbox.SteerModel, chosen.Name, choseModel(*chosen))}
	}
	if opens && a.cursor.missed(in) {
		p.LookSince = timeOf(in.Row.TS)
	}
	thread, ok, err := a.c.Store.AcceptPrompt(ctx, p)
	if err != nil {
		return "", err
	}
	if !p.LookSince.IsZero() {
		signal(a.cursor.scanSoon)
	}
	if ok {
		a.agent.Wake(thread.ID)
		if chosen != nil {
			a.Outbox.SweepNow()
		}
	}
	if ok && !opens && thread.LeaseOwner == "" {
		a.refreshQueue(thread) // its turn may be asleep, and nobody else shows it
	}
	if in.Row.Attempts > 0 {
		a.screen.React(key.ChannelID, in.Row.TS, Heard, nil) // until now it had the mark alone
	}
	return "accepted", nil
}

// withContext puts before what somebody writes what the model needs to know beside it, with its files: the message
// that it is about, who writes if others do, too, the messages that it links to, and what was said in the thread. A
// command of the CLI is one at the beginning alone, and stays as it is.
func (a prompter) withContext(ctx context.Context, in *Incoming, thread threads.Thread, text string, files []inbox.PromptFile) (string, []inbox.PromptFile, error) {
	m, opens := in.Message, thread.ID == 0
	if m.About != nil {
		text, files = a.about(ctx, m.About)+text, append(files, promptFiles(m.About.Files)...)
	}
	if strings.HasPrefix(text, "/") {
		return text, files, nil
	}
	if !opens && in.Row.UserID != thread.OwnerID {
		text = fmt.Sprintf("[%s writes:]\n%s", a.nameOf(ctx, in), text)
	}
	text = reader(a).linked(ctx, in, m.Text) + text
	if m.Reply {
		before, earlier, err := reader(a).talkBefore(ctx, in, opens)
		if err != nil {
			return "", nil, err
		}
		text, files = before+text, append(files, earlier...)
	}
	return text, files, nil
}

// cliCommand is what the CLI would take for a command of its own, and not for work.
var cliCommand = regexp.MustCompile(`^/[A-Za-z][A-Za-z0-9_:-]*(?:\s|$)`)

// passedOn are the CLI's commands that people may use. Others run programs that no
// hook sees, write its settings or dump its memory.
var passedOn = map[string]bool{"/clear": true, "/compact": true, "/context": true}
