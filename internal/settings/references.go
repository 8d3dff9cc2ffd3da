package settings

import (
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/access"
	"deckhand/internal/gateway"
)

// Reference is a channel, a person, a user group or a model that deckhand.yaml names.
type Reference struct {
	ID    string
	Where string // file:line:column
}

// References lists the channels, people and user groups in the file, each once, in its order.
func (f File) References() []Reference {
	var out []Reference
	add := func(id, path string) {
		known := func(r Reference) bool { return r.ID == id }
		if strings.ContainsRune("CGUWS", rune(id[0])) && !slices.ContainsFunc(out, known) {
			out = append(out, Reference{ID: id, Where: f.Where(path)})
		}
	}
	roles := func(at string, r access.Roles) {
		for _, list := range []struct {
			name string
			ids  []string
		}{{"admins", r.Admins}, {"approvers", r.Approvers}, {"users", r.Users}} {
			for i, id := range list.ids {
				add(id, fmt.Sprintf("%s.%s[%d]", at, list.name, i))
			}
		}
	}
	d := f.document
	for _, id := range sorted(d.Channels) {
		add(id, "$.channels."+id)
		roles("$.channels."+id+".roles", d.Channels[id].Roles)
	}
	roles("$.roles", d.Roles)
	for _, name := range sorted(d.Projects) {
		roles("$.projects."+name+".roles", d.Projects[name].Roles)
	}
	for i, r := range d.Policy.Rules {
		for _, id := range slices.Concat(r.Channels, r.Approvers) {
			add(id, fmt.Sprintf("$.policy.rules[%d]", i))
		}
	}
	for i, r := range d.Policy.Reminders {
		for _, id := range r.To {
			if id != "thread" && id != "approvers" {
				add(id, fmt.Sprintf("$.policy.reminders[%d].to", i))
			}
		}
	}
	for i, g := range d.Reports.Digests {
		add(g.To, fmt.Sprintf("$.reports.digests[%d].to", i))
	}
	for i, b := range d.Budgets {
		for _, id := range b.Tell {
			add(id, fmt.Sprintf("$.budgets[%d].tell", i))
		}
		if b.Scope == "channel" || b.Scope == "person" {
			for _, id := range b.Only {
				add(id, fmt.Sprintf("$.budgets[%d].only", i))
			}
		}
	}
	return out
}

// ModelNames lists the models that the file names by Claude Code's own names: those of projects and budgets without
// a provider's name for them, and those that providers map.
func (f File) ModelNames() (out []Reference) {
	add := func(name, path string) { out = append(out, Reference{ID: name, Where: f.Where(path)}) }
	mapped := func(at string, p *gateway.Provider) {
		if p != nil {
			for _, name := range sorted(p.Models) {
				add(name, at+".provider.models.'"+name+"'")
			}
		}
	}
	d := f.document
	mapped("$", d.Provider)
	elsewhere := map[string]bool{} // mapped by some provider
	for _, name := range sorted(d.Projects) {
		mapped("$.projects."+name, d.Projects[name].Provider)
		p := f.Projects[name]
		for i, m := range p.Models {
			at := ".model"
			if d.Projects[name].Models != nil {
				at = fmt.Sprintf(".models[%d]", i)
			}
			if p.Provider.Model(m) == m {
				add(m, "$.projects."+name+at)
			}
		}
		for m := range p.Provider.Models {
			elsewhere[m] = true
		}
	}
	for i, b := range d.Budgets {
		if m := b.CheaperModel; m != "" && !elsewhere[m] {
			add(m, fmt.Sprintf("$.budgets[%d].cheaper_model", i))
		}
	}
	return out
}
