package chat

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/spelling"
	"deckhand/internal/store/threads"
)

// aim is where the work of a message is done, and what is left of the message.
type aim struct {
	text            string
	project, branch string
	choices         []string // the person has to choose one of them first
	wrong           string   // why it can be done nowhere, a sentence
}

// inProject and aimWord are how a message says where its work is done: at its beginning “in web:”,
// and repo=web and branch=main as its first words or its last. Elsewhere they are what people
// write about.
var (
	inProject = regexp.MustCompile(`(?i)^\s*in\s+([A-Za-z0-9][A-Za-z0-9._-]*)\s*:\s+`)
	aimWord   = regexp.MustCompile(`(?i)^(repo|branch|model)=([^\s` + "`" + `]+)$`)
	topicLine = regexp.MustCompile(`(?im)^\s*deckhand:\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*$`)
)

// readAim takes the place of its work out of a message. A name after “in” that is no project's, nor
// nearly, is a word like any other.
func readAim(text string, projects []string) (to aim) {
	to.text = text
	if m := inProject.FindStringSubmatchIndex(text); m != nil {
		name := text[m[2]:m[3]]
		if is := nameAmong(name, projects); is != "" || spelling.Slip(name, projects) != "" {
			to.project, to.text = cmp.Or(is, name), text[m[1]:]
		}
	}
	take := func(word string) (ours, drop bool) {
		m := aimWord.FindStringSubmatch(word)
		if m == nil {
			return false, false
		}
		value := strings.TrimRight(m[2], ".,;:!?")
		switch strings.ToLower(m[1]) {
		case "repo":
			to.project = cmp.Or(nameAmong(value, projects), value)
		case "branch":
			to.branch = value
		default:
			return true, false // see modelIn
		}
		return true, true
	}
	rest, kept := strings.TrimSpace(to.text), ""
	for rest != "" {
		end := strings.IndexAny(rest+" ", " \n\t")
		ours, drop := take(rest[:end])
		if !ours {
			break
		}
		if !drop {
			kept += rest[:end] + " "
		}
		rest = strings.TrimSpace(rest[end:])
	}
	after := ""
	for rest != "" {
		at := strings.LastIndexAny(rest, " \n\t") + 1
		ours, drop := take(rest[at:])
		if !ours {
			break
		}
		if !drop {
			after = " " + rest[at:] + after
		}
		rest = strings.TrimSpace(rest[:at])
	}
	if to.project != "" || to.branch != "" {
		to.text = strings.TrimSpace(kept + rest + after)
	}
	return to
}

// nameAmong is a name as a list has it, in whatever case it was written; empty if it has none.
func nameAmong(name string, list []string) string {
	if i := slices.IndexFunc(list, func(p string) bool { return strings.EqualFold(p, name) }); i >= 0 {
		return list[i]
	}
	return ""
}

// projectInTopic is the first of the projects that a line of a channel's topic or description names.
// Anybody can write one, so it chooses among the channel's own projects alone.
func projectInTopic(text string, projects []string) string {
	for _, m := range topicLine.FindAllStringSubmatch(text, -1) {
		if is := nameAmong(m[1], projects); is != "" {
			return is
		}
	}
	return ""
}

// aimOf is where a message's work is done: in its thread's project, or else in the one of the
// channel's that it names, that was chosen for it, that is the channel's usual one, that the
// channel's topic names, or that is the only one which the person may use.
func (a prompter) aimOf(ctx context.Context, in *Incoming, thread threads.Thread, text string) aim {
	places, channel := a.c.Access.Places, in.Row.ChannelID
	all := places.Of(channel)
	to := readAim(text, a.c.Access.ProjectNames())
	if to.text == "" && to.branch == "" && to.project == "" {
		to.text = agent.NoWords
	}
	if thread.ID != 0 {
		switch {
		case to.project != "" && to.project != thread.Project:
			to.wrong = "This thread works on the project " + thread.Project + ". Begin another one for “" + quoted(to.project) + "”."
		case to.branch != "" && to.branch != thread.Base:
			to.wrong = "This thread has begun already. The branch that work starts from is chosen in a thread's first message."
		}
		return to
	}
	if to.project != "" && !slices.Contains(all, to.project) {
		to.wrong = "The project “" + quoted(to.project) + "” cannot be chosen here."
		if len(all) > 0 {
			to.wrong += " There is " + strings.Join(all, ", ") + "."
		}
		to.project = "" // whoever may use none of them is told that
		return to
	}
	if to.project = cmp.Or(to.project, nameAmong(in.Message.Project, all)); to.project != "" {
		return to
	}
	if !places.Unsettled[channel] {
		to.project = places.Project(channel)
		return to
	}
	if topic, err := a.people.Topic(ctx, channel); err == nil {
		if to.project = projectInTopic(topic, all); to.project != "" {
			return to
		}
	}
	who := in.person()
	may := slices.DeleteFunc(slices.Clone(all), func(p string) bool {
		who.Project = p
		return a.mayDo(ctx, who, access.Prompt) != nil
	})
	if len(may) > 1 {
		to.choices = may
	}
	to.project = append(may, all[0])[0]
	return to
}

// pickProject asks a message's author for its project. The message stays in the inbox, handled,
// until they choose: then it is acted on again.
func (a prompter) pickProject(ctx context.Context, in *Incoming, projects []string) (outcome string, err error) {
	if _, err := a.screen.PostOnce(ctx, in, view.PickProject{User: in.Row.UserID, TS: in.Row.TS, Projects: projects}); err != nil {
		return "", err
	}
	return askedBack, nil
}

// onPickClick is the answer. What was asked shows it from then on.
func (a prompter) onPickClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	ts, rest, _ := strings.Cut(in.Click.Value, " ")
	author, project, _ := strings.Cut(rest, " ")
	if author != in.Row.UserID {
		a.Answer(in, "Whoever wrote the message chooses its project.")
		return "not the author's", nil
	}
	said := "Nothing was begun."
	if outcome = "chose none"; project != "" {
		who := in.person()
		if who.Project = nameAmong(project, a.c.Access.Places.Of(in.Row.ChannelID)); who.Project == "" {
			a.Answer(in, "The project “"+quoted(project)+"” cannot be chosen here any more.")
			return "a place that cannot be chosen", nil
		}
		if a.refuses(ctx, in, who, access.Prompt) {
			return "refused", nil
		}
		if outcome, err = a.giveToModel(ctx, in, ts, project); err != nil || outcome == "too late" {
			return outcome, err
		}
		said = "This is for the project " + project + "."
	}
	a.screen.Replace(in, view.Sentence(said))
	return outcome, nil
}
