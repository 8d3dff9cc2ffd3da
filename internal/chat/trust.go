package chat

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/access"
	"deckhand/internal/agent/trust"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// A repository's own commands, agents and skills are used once an admin has agreed to their texts.
// “trust” shows what differs from what is trusted, as a file in the thread, and has a button for
// each answer. A button names what was shown by its hash.

// brought is what a message means that begins with a slash: a trusted command of the repository,
// with the words after its name, or text. Claude Code gets it as no command of its own: such would
// run programs without asking anybody.
func (a steerer) brought(ctx context.Context, project, name, text string) (string, error) {
	list, err := a.agent.TrustedCommands(ctx, project)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		if "/"+e.Name == name {
			return e.Expand(strings.TrimSpace(strings.TrimPrefix(text, name))), nil
		}
	}
	return "[A message that begins with a slash, and is no command:]\n" + text, nil
}

// isBrought reports whether a message is a trusted command of the repository, whose name may also be a
// word of ours: /costs is theirs, and costs is ours.
func (a router) isBrought(ctx context.Context, project, text string) (bool, error) {
	name := strings.TrimSpace(cliCommand.FindString(strings.TrimSpace(text)))
	if name == "" || hasOwnName(name) {
		return false, nil
	}
	list, err := a.agent.TrustedCommands(ctx, project)
	return slices.ContainsFunc(list, func(e trust.Entry) bool { return "/"+e.Name == name }), err
}

// hasOwnName reports whether a slash and a name are something else than a repository's command, whatever it has.
func hasOwnName(name string) bool { return passedOn[name] || saysStop(name) }

func (a steerer) onTrustCommand(ctx context.Context, in *Incoming, t threads.Thread, words string) (outcome string, err error) {
	who := in.person() // what is trusted is so in all of the project's channels
	who.Project, who.Reach = t.Project, access.ReachOfBudget(string(ledger.BudgetProject))
	if a.refuses(ctx, in, who, access.Administer) {
		return "refused", nil
	}
	if of := strings.Fields(strings.ToLower(words)); len(of) == 3 {
		return a.decideTrust(ctx, in, t, of[0] == "yes", of[1], of[2])
	}
	kinds, list, left, err := a.agent.Brought(ctx, t.Project)
	switch {
	case len(kinds) == 0:
		a.Answer(in, "Nothing of the repository of project "+t.Project+" may be trusted. Write trust: [commands, agents, skills] for it in deckhand.yaml, or some of these.")
		return "nothing may be trusted", nil
	case err != nil:
		return "", err
	}
	said, own, pending := []string{}, []string{}, 0
	for _, kind := range kinds {
		var now, next approvals.Trust
		for _, of := range list {
			if of.Kind == kind && of.Status == approvals.TrustGiven {
				now = of
			} else if of.Kind == kind {
				next = of
			}
		}
		said = append(said, kind+": "+a.trustedNow(ctx, kind, now))
		for _, of := range []approvals.Trust{now, next} {
			if entries, _ := trust.Read(kind, of.Files); kind == trust.Commands {
				own = append(own, namesOfEntries(slices.DeleteFunc(entries, func(e trust.Entry) bool { return !hasOwnName("/" + e.Name) }))...)
			}
		}
		if next.ID != 0 {
			pending++
			a.showTrust(in, t, now, next)
		}
	}
	if len(left) > 0 {
		said = append(said, "Not taken, since they are links, too long or too many, no texts, or have no name that can be used: "+listed(left)+".")
	}
	if slices.Sort(own); len(own) > 0 {
		said = append(said, "Nobody can use these commands, since their names mean something else here: "+listed(slices.Compact(own))+". Rename them.")
	}
	if pending == 0 {
		said = append(said, "Nothing is new in the repository.")
	}
	a.Answer(in, "Trusted of this repository are: "+strings.Join(said, "\n"))
	return "trust", nil
}

// showTrust puts what is new into the thread, and asks the admin about it.
func (a steerer) showTrust(in *Incoming, t threads.Thread, now, next approvals.Trust) {
	id := hex.EncodeToString(next.SHA256)
	diff := plaintext.Visible(trust.Diff(now.Files, next.Files))
	frontend(a).Attach(t.Key(), fmt.Sprintf("%s-%s.diff", next.Kind, id[:8]), cmp.Or(diff, "There is no difference."))
	if hidden := a.hidden(now.Files, next.Files); len(hidden) > 0 || a.c.Redact(diff) != diff {
		a.Answer(in, fmt.Sprintf("The %s that the repository brings now differ from what is trusted, and cannot be agreed to: what looks like a secret is not shown, and it may hide what follows. It is in: %s. Take it out of the repository, and write “trust” again.", next.Kind, listed(hidden)))
		return
	}
	entries, _ := trust.Read(next.Kind, next.Files)
	a.reply(in, view.AskBack{Sentence: fmt.Sprintf("The %s that the repository brings now differ from what is trusted: %s. The file %s-%s.diff in this thread has all of it. Sessions of this project will obey these texts; what they run is still decided call by call.",
		next.Kind, listed(namesOfEntries(entries)), next.Kind, id[:8]), Choices: []view.Choice{
		{Say: "trust yes " + next.Kind + " " + id, Label: "trust these " + next.Kind},
		{Say: "trust no " + next.Kind + " " + id, Label: "do not trust them"},
	}})
}

// hidden are the files of which something that has changed is not shown, as it looks like a secret.
func (a steerer) hidden(from, to map[string]string) (names []string) {
	all := map[string]string{}
	maps.Copy(all, from)
	maps.Copy(all, to)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		diff := plaintext.Visible(trust.Diff(map[string]string{name: from[name]}, map[string]string{name: to[name]}))
		if a.c.Redact(diff) != diff {
			names = append(names, name)
		}
	}
	return names
}

func (a steerer) decideTrust(ctx context.Context, in *Incoming, t threads.Thread, yes bool, kind, id string) (outcome string, err error) {
	sum, err := hex.DecodeString(id)
	if err != nil {
		return "", err
	}
	status, does := approvals.TrustRefused, "does not trust the "+kind+" that the repository brings now. What was trusted before stays so."
	if yes {
		status, does = approvals.TrustGiven, "trusts the "+kind+" that the repository brings now. Commands are there at once, agents and skills when a session starts."
	}
	rows, err := a.c.Store.DecideTrust(ctx, t.ID, t.Project, kind, sum, status, in.Row.UserID, a.nameOf(ctx, in)+" "+does)
	if errors.Is(err, pg.ErrNotFound) {
		a.Answer(in, "This was decided already, or the repository has changed since. Write “trust” to see how it is now.")
		return "too late", nil
	}
	if err != nil {
		return "", err
	}
	a.Outbox.Tell(rows...)
	return "decided", nil
}

// trustedNow says what of a kind is trusted, and since when.
func (a steerer) trustedNow(ctx context.Context, kind string, t approvals.Trust) string {
	entries, _ := trust.Read(kind, t.Files)
	if t.ID == 0 || len(entries) == 0 {
		return "none"
	}
	return listed(namesOfEntries(entries)) + " (by " + plaintext.OneLine(a.people.Name(ctx, t.DecidedBy)) + ", " + t.DecidedAt.In(a.c.Store.TimeZone()).Format("2 January 2006") + ")"
}

func namesOfEntries(list []trust.Entry) (names []string) {
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names
}

// listed are some names, and how many more there are.
func listed(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "none"
	}
	names = slices.Clone(names)
	for i, n := range names {
		names[i] = plaintext.Clip(plaintext.OneLine(n), 100)
	}
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
