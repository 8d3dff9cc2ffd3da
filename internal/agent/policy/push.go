package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Pushes reports whether a call visibly runs `git push`, and so was decided as one, and whether the push may move a
// branch other than forward. It does not look into programs that the call runs.
func Pushes(c Call) (push, force bool) {
	if families[c.Tool] != kindBash {
		return false, false
	}
	return readCall(&c).pushes()
}

// PushAlone tells the model how to write a push so that people can decide about its commits.
const PushAlone = "Commit first, then run git push alone, as in git push origin HEAD:deckhand/name: a push is approved for the exact commits."

// UnseenPush says why a push is refused where people approve exact commits: it does not stand alone, or is not
// plain, so its commits are unknown before it runs. It is empty for every other call.
func UnseenPush(c Call) string {
	if push, _ := Pushes(c); !push {
		return ""
	}
	if _, plain := PlainPush(c); plain {
		return ""
	}
	return PushAlone
}

// pushes is [Pushes] for a command that was read.
func (req *request) pushes() (push, force bool) {
	if req.bad != "" || req.script.hard != "" {
		return false, false
	}
	for i := range req.script.units {
		u := &req.script.units[i]
		if u.target != nil || len(u.words) == 0 {
			continue
		}
		if args, ok := pushArgs(u.args()); ok {
			push, force = true, force || pushDangers(args)[dangerForce]
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

// Push is what a `git push` asks for that stands alone on its line.
type Push struct {
	// Specs are its refspecs; none pushes the current branch.
	Specs []Refspec
	Force bool
}

// Refspec moves the forge's branch Dst to what Src means in the thread's repository: HEAD, a branch, or a commit's
// id. Dst is empty if it is the branch named by Src.
type Refspec struct{ Src, Dst string }

// pushFlags are options of git push that do not change what is pushed.
var pushFlags = words("-u --set-upstream -q --quiet -v --verbose --progress --no-progress --porcelain --no-verify --atomic --no-tags --no-follow-tags -4 -6")

var (
	forceFlags = regexp.MustCompile(`^(-f|-uf|-fu|--force|--force-with-lease(=.*)?|--force-if-includes)$`)
	plainSrc   = regexp.MustCompile(`^(HEAD|@|[\pL\pN_][\pL\pN_./#%+,=-]*)$`)
	plainDst   = regexp.MustCompile(`^[\pL\pN_][\pL\pN_./@#%+,=-]*$`)
)

// PlainPush reads a call that is only a git push whose commits can be told before it runs. ok is false for other
// calls.
func PlainPush(c Call) (p Push, ok bool) {
	defer func() {
		if faultOf(recover()) != "" {
			p, ok = Push{}, false
		}
	}()
	if families[c.Tool] != kindBash {
		return p, false
	}
	req := readCall(&c)
	units := slices.DeleteFunc(slices.Clone(req.script.units), func(u unit) bool { return u.nested }) // ignore what is only possible
	if push, _ := req.pushes(); !push || req.script.soft != "" || len(units) != 1 || units[0].soft != "" || units[0].wrap != "" || len(units[0].inner) != 1 {
		return p, false
	}
	args, alone := pushArgs(units[0].args())
	if !alone {
		return p, false
	}
	remote := false
	for _, w := range args {
		switch text := w.text; {
		case !w.known() || w.odd != "":
			return Push{}, false
		case forceFlags.MatchString(text):
			p.Force = true
		case pushFlags[text]:
		case !remote:
			if text != "origin" {
				return Push{}, false
			}
			remote = true
		default:
			spec, plus := strings.CutPrefix(text, "+")
			p.Force = p.Force || plus
			src, dst, two := strings.Cut(spec, ":")
			if !plainSrc.MatchString(src) || two && !plainDst.MatchString(dst) {
				return Push{}, false
			}
			p.Specs = append(p.Specs, Refspec{src, dst})
		}
	}
	return p, true
}
