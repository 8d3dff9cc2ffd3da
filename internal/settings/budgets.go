package settings

import (
	"fmt"
	"slices"

	"deckhand/internal/agent/spend"
	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
)

// budgetYAML is a budget with exactly one scope.
type budgetYAML struct {
	Scope string `yaml:"scope"`
	// Only names channels, projects or people; without it, each has its own budget.
	Only names  `yaml:"only"`
	Per  string `yaml:"per"`
	// Limit is in US dollars, as it is written.
	Limit string `yaml:"limit"`
	// WarnAt are percentages of the limit.
	WarnAt []int `yaml:"warn_at"`
	// Then is stop or ask.
	Then         string `yaml:"then"`
	CheaperModel string `yaml:"cheaper_model"`
	Tell         names  `yaml:"tell"`
}

// same reports whether two budgets count the same spending, whatever their limits are.
func (b budgetYAML) same(other budgetYAML) bool {
	keys := func(n names) names {
		n = slices.Clone(n)
		slices.Sort(n)
		return slices.Compact(n)
	}
	return b.Scope == other.Scope && b.Per == other.Per && slices.Equal(keys(b.Only), keys(other.Only))
}

func (v *validation) budgets(c document) {
	for i, b := range c.Budgets {
		at := fmt.Sprintf("$.budgets[%d]", i)
		scopes := []string{"workspace", "channel", "project", "person", "thread"}
		if !slices.Contains(scopes, b.Scope) {
			v.add(at+".scope", "%q is not what a budget is for; write workspace, channel, project, person or thread", b.Scope)
		}
		if !slices.Contains([]string{"day", "week", "month"}, b.Per) {
			v.add(at+".per", "%q is not a period; write day, week or month", b.Per)
		}
		if limit, err := money.Parse(b.Limit); err != nil || limit <= 0 {
			v.add(at+".limit", "%q is not a limit; write US dollars above zero, such as 200 or 12.50", b.Limit)
		}
		for _, w := range b.WarnAt {
			if w < 1 || w > 99 {
				v.add(at+".warn_at", "%d is not a share; write percents from 1 to 99", w)
			}
		}
		if !slices.Contains([]string{"", "stop", "ask"}, b.Then) {
			v.add(at+".then", "%q is not what can happen at the limit; write stop or ask", b.Then)
		}
		if b.CheaperModel != "" && b.Then != "ask" {
			v.add(at+".cheaper_model", "a cheaper model is offered to the admins who are asked; write then: ask")
		}
		for _, ch := range b.Tell {
			if !channelID.MatchString(ch) {
				v.add(at+".tell", "%q is not a channel id; write the C… at the end of the channel's link", ch)
			}
		}
		v.budgetKeys(at+".only", c, b)
		if slices.ContainsFunc(c.Budgets[:i], b.same) {
			v.add(at, "this budget is there twice; leave one of them out")
		}
	}
}

// budgetKeys checks the keys of a budget.
func (v *validation) budgetKeys(at string, c document, b budgetYAML) {
	if len(b.Only) > 0 && (b.Scope == "workspace" || b.Scope == "thread") {
		v.add(at, "there is nothing to choose from; leave it out")
		return
	}
	for _, key := range b.Only {
		switch b.Scope {
		case "channel":
			if !channelID.MatchString(key) {
				v.add(at, "%q is not a channel id; write the C… at the end of the channel's link", key)
			} else if _, ok := c.Channels[key]; !ok {
				v.add(at, "the bot does not work in %s, which is not under channels; correct the id, or leave it out", key)
			}
		case "project":
			if _, ok := c.Projects[key]; !ok {
				v.add(at, "there is no project %q under projects", key)
			}
		case "person":
			if !memberID.MatchString(key) || key[0] == 'S' {
				v.add(at, "%q is not a user id (U…)", key)
			}
		}
	}
}

// budgets converts the budgets for the agent.
func (d document) budgets() []spend.Budget {
	var out []spend.Budget
	for _, b := range d.Budgets {
		limit, err := money.Parse(b.Limit)
		if err != nil {
			panic(fmt.Sprintf("a budget's limit %q", b.Limit)) // already validated
		}
		out = append(out, spend.Budget{
			Scope: ledger.BudgetScope(b.Scope), Only: b.Only, Period: ledger.BudgetPeriod(b.Per), LimitMicroUSD: limit,
			WarnAt: b.WarnAt, Ask: b.Then == "ask", CheaperModel: b.CheaperModel, Tell: b.Tell,
		})
	}
	return out
}
