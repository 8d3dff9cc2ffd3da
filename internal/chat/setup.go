package chat

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/threads"
)

// An admin chooses in a channel which project it works on. That stands in the database, so it
// holds at once, on every replica and after a restart, as long as deckhand.yaml does not have the
// channel; where it does, it comes first. Whatever the two differ in is said when the bot starts,
// by bot doctor and on the home tabs of admins, with the lines for deckhand.yaml.

// noProjectAny is how an admin says that a channel works on no project any more.
const noProjectAny = "none"

// Bound are the channels that are set up, by their ids, with their projects, as they were read last.
func (a *Chat) Bound() map[string]string {
	if all := a.bound.Load(); all != nil {
		return *all
	}
	return nil
}

// learnBindings reads which channels are set up, for what happens in a channel that deckhand.yaml
// does not have, or in none.
func (a *Chat) learnBindings(ctx context.Context, channel string) error {
	if a.c.Access.Places.Channels[channel] != "" || access.IsDirect(channel) {
		return nil
	}
	all, err := a.c.Store.Bindings(ctx, a.self.Team)
	if err != nil {
		return err
	}
	bound := map[string]string{}
	for _, b := range all {
		if slices.Contains(a.c.Access.ProjectNames(), b.Project) {
			bound[b.ChannelID] = b.Project
		}
	}
	a.bound.Store(&bound)
	return nil
}

// onSetupCommand shows an admin which project the channel works on and which they can choose, or
// has it work on the one that is named.
func (a binder) onSetupCommand(ctx context.Context, in *Incoming, name string) (outcome string, err error) {
	channel := in.Row.ChannelID
	if access.IsDirect(channel) {
		a.Answer(in, "A channel is set up in that channel: write “/deckhand setup” there. The project of direct messages stands in deckhand.yaml, under direct_messages.")
		return "in no channel", nil
	}
	if joined, err := a.people.Joined(ctx, channel); err == nil && !joined {
		a.screen.Direct(in.Row.UserID, view.Sentence("Deckhand is not in that channel: /invite it there, and write “/deckhand setup” again. Nothing has changed."))
		return "not in the channel", nil
	}
	may := slices.DeleteFunc(a.c.Access.ProjectNames(), func(p string) bool {
		who := in.person()
		who.Project, who.Reach = p, access.ReachProject // its work begins here, so the channel's admins are not enough
		return a.mayDo(ctx, who, access.Administer) != nil
	})
	written, now := a.c.Access.Places.Channels[channel], a.c.Access.Places.Project(channel)
	who := in.person() // the command may come from an older thread, of another project
	if who.Project = now; now != "" && a.refuses(ctx, in, who, access.Administer) {
		return "refused", nil
	}
	project := nameAmong(name, may)
	switch ends := strings.EqualFold(name, noProjectAny); {
	case written != "" && !ends:
		a.Answer(in, "deckhand.yaml says that this channel works on "+strings.Join(a.c.Access.Places.Of(channel), ", ")+". Change it there.")
		return "written in the file", nil
	case name == "":
		a.reply(in, setupChoices(now, may))
		return "setup", nil
	case project == "" && !ends:
		a.reply(in, view.AskBack{Sentence: "The project “" + quoted(name) + "” cannot be chosen here. " + among(may), TS: in.postTS()})
		return "no such project", nil
	}
	b := threads.Binding{ChannelID: channel, Project: project, BoundBy: in.Row.UserID}
	was, err := a.c.Store.Bind(ctx, a.self.Team, b)
	if err != nil {
		return "", err
	}
	if err := a.learnBindings(ctx, channel); err != nil {
		return "", err
	}
	said := "This channel works on the project " + project + " from now on. Add this line to deckhand.yaml, too: " + lineFor(b)
	switch {
	case project == "" && was == "":
		said = "This channel was not set up here."
	case project == "" && written != "":
		said = "Forgotten: this channel works on what deckhand.yaml says, " + written + "."
	case project == "":
		said = "This channel works on no project any more. Threads that have begun go on."
	case was == project:
		said = "This channel works on the project " + project + " already."
	case was != "":
		said += " Before, it was " + was + "."
	}
	a.Answer(in, said)
	if project != "" && was != project {
		a.screen.Say(Where{Channel: channel}, view.Sentence(a.people.Name(ctx, in.Row.UserID)+" has set this channel up: Deckhand works on the project "+project+" here. Mention it to begin."))
	}
	return "set up", nil
}

// setupChoices are the projects that a channel can work on, as buttons.
func setupChoices(now string, may []string) view.Page {
	sentence := "This channel works on no project yet. Which one shall it work on?"
	if now != "" {
		sentence = "This channel works on " + now + ". Which project shall it work on?"
	}
	var choices []view.Choice
	for _, p := range may[:min(len(may), setupMost)] {
		choices = append(choices, view.Choice{Say: "setup project " + p, Label: "Project " + p})
	}
	if now != "" {
		choices = append(choices, view.Choice{Say: "setup project " + noProjectAny, Label: "No project"})
	}
	if more := len(may) - setupMost; more > 0 {
		sentence += " There are " + strconv.Itoa(more) + " more: “/deckhand setup project NAME”."
	}
	return view.AskBack{Sentence: sentence, Choices: choices}
}

// setupMost is how many projects have a button: a row has 25.
const setupMost = 20

func among(projects []string) string {
	if len(projects) == 0 {
		return "You are an admin of no project."
	}
	return "You can choose " + strings.Join(projects, ", ") + "."
}

// lineFor is what deckhand.yaml has of a channel that was set up.
func lineFor(b threads.Binding) string { return "channels: {" + b.ChannelID + ": " + b.Project + "}" }

// Unwritten says of each channel that was set up in Slack how deckhand.yaml differs, with what to
// do. channel says a channel's id for whoever reads it.
func Unwritten(all []threads.Binding, rules access.Rules, channel func(id string) string) (out []string) {
	for _, b := range all {
		is, said := channel(b.ChannelID), "was set up in Slack for the project "+b.Project
		written := rules.Places.Channels[b.ChannelID]
		switch {
		case written == "" && slices.Contains(rules.ProjectNames(), b.Project):
			out = append(out, is+" "+said+", which holds until deckhand.yaml has the channel; add "+lineFor(b))
		case written == "":
			out = append(out, is+" "+said+", which deckhand.yaml does not have any more, so nothing is done there; write “/deckhand setup” in it")
		case written == b.Project:
		default:
			out = append(out, is+" "+said+", but deckhand.yaml says "+strings.Join(rules.Places.Of(b.ChannelID), ", ")+", which counts; write “/deckhand setup project none” in it to forget the other")
		}
	}
	return out
}

// unwritten is [Unwritten] of this team.
func (a *Chat) unwritten(ctx context.Context, channel func(string) string) ([]string, error) {
	all, err := a.c.Store.Bindings(ctx, a.self.Team)
	if err != nil {
		return nil, err
	}
	return Unwritten(all, a.c.Access, channel), nil
}
