package model

import (
	"cmp"
	"fmt"
	"strings"
)

// choose finds what to answer: a helper call's answer, or the next step of
// what the person asked for.
//
// Messages that came while the turn ran are answered in the same turn, after
// what was asked first: the last words on one message and the first on the
// next share a call.
func (s *Server) choose(req *request, c *conversation) (st step, name string, err error) {
	if st, ok := sideCall(req, c); ok {
		return st, "side call", nil
	}
	if c.Notice != "" {
		return step{Say: c.Notice}, "notice", nil
	}
	rounds := c.Rounds
	said := ""
	for i, prompt := range append([]string{c.Last}, c.Added...) {
		at := conversation{Last: prompt, CWD: c.CWD, index: c.index + i}
		if i == 0 {
			at.Attached = c.Attached
		}
		k := 0
		for {
			at.Rounds, at.PlanFile = rounds[:k], c.PlanFile
			if k < len(rounds) {
				at.PlanFile = rounds[k].planFile
			}
			if st, name, err = s.stepFor(&at); err != nil {
				return step{}, name, err
			}
			if len(st.Tools) == 0 || k == len(rounds) {
				break
			}
			k++
		}
		if said != "" && st.Say != "" {
			st.Say = said + "\n\n" + st.Say
		} else if said != "" {
			st.Say = said
		}
		*c = at
		if len(st.Tools) > 0 {
			break
		}
		// What was said before the calls that follow has been said already.
		rounds = rounds[k:]
		if len(rounds) == 0 {
			said = st.Say
		} else {
			said = ""
		}
	}
	return st, name, nil
}

// stepFor is the step that answers a message after the rounds of calls in c:
// of the directives in it, of the first script that fits, or an echo.
func (s *Server) stepFor(c *conversation) (step, string, error) {
	steps, ok := parseDirectives(c.Last)
	switch {
	case !ok:
		return s.scriptStep(c)
	case len(steps) == 0:
		pace, rest := paceOnly(c.Last)
		at := *c
		if at.Last = rest; rest == "" {
			return step{Say: closing(c), Pace: pace}, "directives", nil
		}
		st, name, err := s.scriptStep(&at)
		st.Pace = pace
		return st, name, err
	case len(c.Rounds) >= len(steps):
		return step{Say: closing(c), Pace: steps[len(steps)-1].Pace}, "directives", nil
	}
	st := steps[len(c.Rounds)].place(c)
	if st.Say == "" && len(st.Tools) == 0 {
		st.Say = closing(c)
	}
	return st, "directives", nil
}

// scriptStep is the step of the first script that fits the message, or an
// echo.
func (s *Server) scriptStep(c *conversation) (step, string, error) {
	for i := range s.scripts {
		sc := &s.scripts[i]
		groups := sc.matches(spoken(c.Last))
		if groups == nil {
			continue
		}
		found, ok := sc.at(c)
		if !ok {
			return step{Say: closing(c)}, sc.file, nil
		}
		pace := 0
		if s.pace > 0 {
			pace = cmp.Or(found.pace, sc.pace)
		}
		st, err := found.render(c, groups, pace)
		return st, sc.file, err
	}
	return step{Say: echo(c)}, "echo", nil
}

// closing is the last word when a script or a list of directives is done.
func closing(c *conversation) string {
	var ran, refused []string
	for _, r := range c.Rounds {
		for _, res := range r.Results {
			if res.denied() {
				refused = append(refused, fmt.Sprintf("%s did not go through (%s)", res.Tool, res.reason()))
			} else {
				ran = append(ran, res.Tool)
			}
		}
	}
	out := "Done"
	if len(ran) > 0 {
		out += ": " + strings.Join(ran, ", ")
	}
	out += "."
	if len(refused) > 0 {
		out += " " + strings.Join(refused, "; ") + "."
	}
	return out
}

// echo answers what nothing else fits.
func echo(c *conversation) string {
	if c.Last == "" {
		return "I have nothing to answer: the message is empty."
	}
	text := strings.Join(strings.Fields(spoken(c.Last)), " ")
	if head, tail := cutRunes(text, 200); tail != "" {
		text = head + "…"
	}
	if len(c.Attached) > 0 {
		with := strings.Join(c.Attached, "; ")
		if text == "" {
			return "You attached " + with + ". I am the playground's scripted model, and only say what arrived."
		}
		return fmt.Sprintf("You said: “%s”, and attached %s. I am the playground's scripted model, and only say what arrived.", text, with)
	}
	return fmt.Sprintf("You said: “%s”. I am the playground's scripted model, so I know only a few stories: try “fix the failing test”, or “help”.", text)
}
