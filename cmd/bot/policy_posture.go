package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"deckhand/internal/agent/policy"
	"deckhand/internal/settings"
)

func postureFlag(c *cobra.Command) *string {
	return c.Flags().String("posture", "", "as if this posture held everywhere: contained or careful")
}

// usePosture sets a posture for every project, instead of the configured ones. Projects that cannot be contained
// stay as they are.
func usePosture(c *settings.File, posture string) error {
	switch p := policy.Posture(posture); p {
	case "":
	case policy.Careful:
		c.Policy.Postures = policy.Postures{Team: p}
	case policy.Contained:
		c.Policy.Postures = policy.Postures{Team: p, Projects: map[string]policy.Posture{}}
		for name := range c.Projects {
			if c.Uncontained(name) != "" {
				c.Policy.Postures.Projects[name] = policy.Careful
			}
		}
	default:
		return fmt.Errorf("--posture: %q is no posture; write contained or careful: %w", posture, errUsage)
	}
	return nil
}

// pushRefused is the rule for a push whose commits are unknown, in a contained project with a forge.
const pushRefused = "posture contained: a push is approved for its exact commits"

// decide decides a call as the bot does: by the rules and the posture, and a push also by whether its commits are
// known before it runs.
func decide(c *settings.File, call policy.Call) policy.Decision {
	d := c.Policy.Decide(call)
	if why := policy.UnseenPush(call); why != "" && d.Verdict == policy.Ask && c.Policy.Postures.Of(call.Project, call.Channel) == policy.Contained && c.Projects[call.Project].ReachesForge() {
		d = policy.Decision{Verdict: policy.Deny, Rule: pushRefused, Why: why}
	}
	return d
}

// posturePart explains the posture's part in a verdict.
func posturePart(c *settings.File, call policy.Call, d policy.Decision) string {
	posture := c.Policy.Postures.Of(call.Project, call.Channel)
	part := "no rule decides, so the posture does: " + string(posture)
	switch _, byRule := policy.Told(d.Rule); {
	case d.Rule == pushRefused:
		part = "it is a push, in a longer command or not written plainly, and the posture " + string(posture) + " refuses what people could not be shown"
	case d.Contained:
		part = "no rule decides about all of it, so the posture does: " + string(posture)
	case byRule:
		return "a rule decides, whatever the posture is (" + string(posture) + ")"
	}
	other := map[policy.Posture]policy.Posture{policy.Careful: policy.Contained, policy.Contained: policy.Careful}[posture]
	as := *c
	as.Policy = &policy.Policy{Rules: c.Policy.Rules, Default: c.Policy.Default, Reads: c.Policy.Reads, Postures: policy.Postures{Team: other}}
	return part + "; " + string(other) + " would " + map[policy.Verdict]string{policy.Allow: "let it run", policy.Ask: "ask", policy.Deny: "refuse it"}[decide(&as, call).Verdict]
}

// postureLine is the posture of a project, in a channel with its own or everywhere else.
type postureLine struct {
	Project string         `json:"project"`
	Channel string         `json:"channel,omitempty"`
	Posture policy.Posture `json:"posture"`
	// Because says why a careful project could not be contained, with the cure.
	Because string `json:"cannot_be_contained,omitempty"`
}

func newPostureLines(c settings.File) []postureLine {
	out := []postureLine{}
	for _, name := range slices.Sorted(maps.Keys(c.Projects)) {
		out = append(out, postureLine{Project: name, Posture: c.Policy.Postures.Of(name, ""), Because: c.Uncontained(name)})
	}
	for _, id := range slices.Sorted(maps.Keys(c.Policy.Postures.Channels)) {
		for _, project := range c.Access.Places.Of(id) {
			if c.Policy.Postures.Channels[id] != "" {
				out = append(out, postureLine{Project: project, Channel: id, Posture: c.Policy.Postures.Of(project, id)})
			}
		}
	}
	return out
}

// explainPostures explains what happens to calls that no rule decides.
func explainPostures(out io.Writer, c settings.File) {
	fmt.Fprintln(out, "\nWhat no rule decides, by posture:")
	fmt.Fprintln(out, "     careful: reading inside the workspace (but for files that look like secrets) and the agent's own")
	fmt.Fprintln(out, "     bookkeeping are allowed; everything else is asked.")
	fmt.Fprintln(out, "     contained: what stays inside the sandbox runs and is recorded; a push, a host that is not listed, a web")
	fmt.Fprintln(out, "     page or search, and an MCP tool that is not under reads: are asked.")
	for _, l := range newPostureLines(c) {
		where := l.Project
		if l.Channel != "" {
			where += " in " + l.Channel
		}
		fmt.Fprintf(out, "     %s: %s\n", where, l.Posture)
		if l.Because != "" {
			fmt.Fprintf(out, "       it cannot be contained: %s\n", l.Because)
		}
	}
}
