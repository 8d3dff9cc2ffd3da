package policy

import (
	"path"
	"regexp"
	"strings"
)

// Pushes reports whether a call runs `git push` in a way that can be read from it, and so
// was decided as one, and whether it asks for a branch to be moved other than forward. What
// a program does that the call runs is not looked at: nobody has decided about that.
func Pushes(c Call) (push, force bool) {
	if families[c.Tool] != kindBash {
		return false, false
	}
	req := readCall(&c)
	if req.bad != "" || req.script.hard != "" {
		return false, false
	}
	for i := range req.script.units {
		u := &req.script.units[i]
		if u.target != nil || len(u.words) == 0 {
			continue
		}
		if args, ok := pushArgs(u.args()); ok {
			push, force = true, force || forces(args)
		}
	}
	return push, force
}

// pushArgs are the arguments of a git push; false for any other command.
func pushArgs(words []word) ([]word, bool) {
	if len(words) == 0 || words[0].dynamic != "" || path.Base(words[0].text) != "git" {
		return nil, false
	}
	for i, w := range words[1:] {
		switch {
		case w.dynamic != "":
			return nil, false
		case w.text == "push":
			return words[i+2:], true
		case w.text != "--no-pager" && w.text != "--no-optional-locks" && w.text != "--literal-pathspecs":
			return nil, false // another command, or an option whose value could be anything
		}
	}
	return nil, false
}

// shortForce is -f, alone or among other letters without a value.
var shortForce = regexp.MustCompile(`^-[vqnu46]*f[vqnuf46]*$`)

// forces reports whether a push asks for more than a move forward, in so many words.
func forces(args []word) bool {
	for _, w := range args {
		switch text := w.text; {
		case w.dynamic != "":
		case text == "--force", text == "--force-with-lease", strings.HasPrefix(text, "--force-with-lease="), strings.HasPrefix(text, "+"):
			return true
		case shortForce.MatchString(text):
			return true
		}
	}
	return false
}
