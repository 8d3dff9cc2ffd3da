package gitway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/beginning"
)

const (
	// branches is the prefix of refs that a session may push to.
	branches = "refs/heads/deckhand/"
	// maxPack bounds one push, in bytes.
	maxPack = 1 << 30
)

// receive takes a push: it reads and judges the commands first.
func (s *Session) receive(ctx context.Context, c *idling, m *mirror, e *Event) {
	passes := s.passes()
	if len(passes) == 0 {
		e.Refused = "Pushing needs a decision of its own. Run git push as a command that the policy can see (git push origin HEAD:deckhand/name), and not from within another program."
		return
	}
	if e.Refused = s.fresh(ctx, m); e.Refused != "" {
		return
	}
	refs, lines, err := m.refs(ctx)
	if err != nil {
		s.log.Error("read the refs of a mirror", zap.Error(err))
		e.Refused = "The bot cannot read its copy of the repository. An admin finds more in its log."
		return
	}
	if _, err := c.Write(advertisement(lines)); err != nil {
		return
	}
	o, err := readOffer(c)
	if err != nil || len(o.commands) == 0 {
		if err != nil {
			_, _ = c.Write(packet("ERR " + err.Error()))
			hangUp(c)
		}
		return
	}
	p := &push{session: s, mirror: m, offer: o, known: refs}
	e.ToolUse = p.choose(passes, e.Repository)
	p.judge()
	if !p.refused() {
		p.take(ctx, c)
	}
	for _, cmd := range o.commands {
		e.Refs = append(e.Refs, Ref{printable(cmd.ref), cmd.old, cmd.new, cmd.refused})
	}
	e.Bytes = p.bytes
	if ctx.Err() != nil {
		return // the session has ended, and with it its conversations
	}
	_, _ = c.Write(p.answer())
	hangUp(c)
}

// advertisement lists the refs and what a push may ask for. Git does not try what is missing: deletions, push
// options, certificates.
func advertisement(lines []string) []byte {
	hash := "sha1"
	zero := strings.Repeat("0", 40)
	if len(lines) > 0 && strings.IndexByte(lines[0], ' ') == sha256Length {
		hash = "sha256"
	}
	capabilities := "report-status side-band-64k quiet atomic ofs-delta object-format=" + hash + " agent=deckhand"
	if len(lines) == 0 {
		lines = []string{zero + " capabilities^{}"}
	}
	var out bytes.Buffer
	for i, line := range lines {
		if i == 0 {
			line += "\x00" + capabilities
		}
		out.Write(packet(line + "\n"))
	}
	out.WriteString(flush)
	return out.Bytes()
}

// push is a push that is being received.
type push struct {
	session *Session
	mirror  *mirror
	offer   offer
	known   map[string]string // the current refs
	pass    *Pass             // what it may do; nil: it is not what was approved

	bytes  int64  // of its pack
	failed string // why the pack was not taken; empty if it was, or was not read
	notes  string // messages of the forge
}

// refused reports whether any command is refused: then nothing passes.
func (p *push) refused() bool {
	return p.failed != "" || slices.ContainsFunc(p.offer.commands, func(c *command) bool { return c.refused != "" })
}

// choose picks a pass that allows the push, and returns its tool use. It prefers one without force if the push
// needs none.
func (p *push) choose(passes map[string]Pass, repository string) (toolUse string) {
	for _, name := range slices.Sorted(maps.Keys(passes)) {
		pass := passes[name]
		if !pass.covers(repository, p.offer.commands) {
			toolUse = cmp.Or(toolUse, name) // whose push it would be
			continue
		}
		if p.pass == nil || pass.Force && !p.pass.Force {
			p.pass, toolUse = &pass, name
		}
	}
	return toolUse
}

// covers reports whether a push moves only what was approved.
func (p Pass) covers(repository string, commands []*command) bool {
	if p.Refs == nil {
		return true
	}
	return repository == p.Repository && !slices.ContainsFunc(commands, func(c *command) bool {
		return !slices.ContainsFunc(p.Refs, func(r Ref) bool {
			return r.Name == c.ref && r.New == c.new && (r.Old == "" || r.Old == c.old)
		})
	})
}

// plainBranch is stricter than git's rule for names: it admits only what is known to be harmless.
var plainBranch = regexp.MustCompile(`^refs/heads/deckhand(/[\pL\pN_@#%+,=-][\pL\pN_.@#%+,=-]*)+$`)

func isPlain(ref string) bool {
	return len(ref) <= 250 && plainBranch.MatchString(ref) && !strings.Contains(ref, "..") && !strings.Contains(ref, "@{") &&
		!strings.HasSuffix(ref, ".lock") && !strings.Contains(ref, ".lock/") && !strings.HasSuffix(ref, ".") && !strings.Contains(ref, "./")
}

// judge decides about the commands themselves.
func (p *push) judge() {
	seen := map[string]bool{}
	for _, c := range p.offer.commands {
		switch {
		case !strings.HasPrefix(c.ref, branches):
			c.refused = "Deckhand pushes to branches below deckhand/ alone, such as deckhand/fix-login"
		case !isPlain(c.ref):
			c.refused = "Deckhand pushes to branches with plain names alone: letters, digits and . _ - / below deckhand/"
		case c.deletes():
			c.refused = "Deckhand deletes no branches; ask a person to"
		case p.pass == nil:
			c.refused = "the branch has moved since this push was approved, or it is none of those that were: it is another push. Run git push again"
		case seen[c.ref]:
			c.refused = "the same branch is named twice"
		case !c.creates() && p.known[c.ref] != c.old, c.creates() && p.known[c.ref] != "":
			c.refused = "the branch has moved meanwhile; fetch first"
		}
		seen[c.ref] = true
	}
	unknown := slices.IndexFunc(p.offer.capabilities, func(c string) bool { return !knownCapability(c) })
	if unknown >= 0 {
		p.failed = "Deckhand does not know " + printable(p.offer.capabilities[unknown])
	}
	p.refuseAll()
}

// refuseAll refuses all commands if one is refused.
func (p *push) refuseAll() {
	if !p.refused() {
		return
	}
	for _, c := range p.offer.commands {
		c.refused = cmp.Or(c.refused, "nothing of this push was done, because of what was refused in it")
	}
}

// take receives the pack, checks its contents, and pushes it on.
func (p *push) take(ctx context.Context, c *idling) {
	s := p.session
	const over = "the session has ended"
	if s.pushing.Acquire(ctx, 1) != nil {
		p.fail(over)
		return
	}
	defer s.pushing.Release(1)
	if s.gate.receiving.Acquire(ctx, 1) != nil {
		p.fail(over)
		return
	}
	defer s.gate.receiving.Release(1)
	dir, err := os.MkdirTemp(s.gate.scratch(), "push-")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // New clears what is left
		err = makeRepository(dir, len(p.offer.commands[0].new), filepath.Join(p.mirror.dir, "objects"))
	}
	if err != nil {
		s.log.Error("make a folder for a push", zap.Error(err))
		p.fail("the bot has no room for it; an admin finds more in its log")
		return
	}
	if err := p.unpack(ctx, c, dir); err != nil {
		p.fail(err.Error())
		return
	}
	for _, cmd := range p.offer.commands {
		cmd.refused = p.inspect(ctx, dir, cmd)
	}
	p.refuseAll()
	if !p.refused() {
		p.passOn(ctx, dir)
	}
}

func (p *push) fail(why string) {
	p.failed = why
	p.refuseAll()
}

// unpack has git read the pack as untrusted input.
func (p *push) unpack(ctx context.Context, c *idling, dir string) error {
	said := beginning.Buffer{Most: maxNote}
	cmd := localCommand(ctx, dir, "index-pack", "--stdin", "--fix-thin", "--strict", "--max-input-size="+strconv.Itoa(maxPack))
	cmd.Stderr = &said
	pack := &counter{to: io.Discard}
	err := feed(c, cmd, io.TeeReader(c, pack))
	p.bytes = pack.n
	return exitErrorOf(ctx, err, said.String())
}

// inspect returns why a command is refused because of its commit; empty if it is not.
func (p *push) inspect(ctx context.Context, dir string, c *command) string {
	out, err := localGit(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", c.new+"^{commit}")
	if err != nil || strings.TrimSpace(out) != c.new {
		return "a branch names a commit, and this is none"
	}
	if _, err := localGit(ctx, dir, "rev-list", "--objects", "--quiet", c.new, "--not", "--alternate-refs"); err != nil {
		return "it is not whole: something that it is made of is missing here"
	}
	if c.creates() || p.pass.Force {
		return ""
	}
	_, err = localGit(ctx, dir, "merge-base", "--is-ancestor", c.old, c.new)
	switch {
	case err == nil:
		return ""
	case exitCode(err) == 1:
		return "Deckhand moves branches forward alone; a forced push has to be allowed as one (git push --force-with-lease)"
	}
	return "what stands there now cannot be compared with it"
}

// passOn pushes to the forge with the bot's credential.
func (p *push) passOn(ctx context.Context, dir string) {
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"}
	if p.offer.atomic {
		args = append(args, "--atomic")
	}
	specs := []string{}
	for _, c := range p.offer.commands {
		was := c.old
		if c.creates() {
			was = ""
		}
		args = append(args, "--force-with-lease="+c.ref+":"+was) // move only the ref that was judged
		specs = append(specs, c.new+":"+c.ref)
	}
	args = append(append(args, "--", p.mirror.remote.address()), specs...)
	out, said, err := p.mirror.remote.execute(ctx, dir, args...)
	p.notes = notes(said)
	results := pushResults(out)
	for _, c := range p.offer.commands {
		why, told := results[c.ref]
		switch {
		case told:
			c.refused = why
		case err != nil:
			c.refused = printable(p.pushFailure(err, said))
		default:
			c.refused = "the forge said nothing of it"
		}
	}
	if err != nil {
		p.session.log.Warn("push to the forge", zap.String("repository", p.mirror.remote.URL), zap.Error(err), zap.String("git", lastLine(said)))
	}
}

// pushFailure explains to the session why the forge took nothing.
func (p *push) pushFailure(err error, said string) string {
	if line := lastLine(said); line != "" && !errors.Is(err, errNotRun) {
		return "the forge did not take it: " + line
	}
	return "the forge could not be asked: " + err.Error()
}

// pushResults parses the output of git push --porcelain: for each ref the reason of its refusal, empty if none.
func pushResults(out string) map[string]string {
	by := map[string]string{}
	for line := range strings.Lines(out) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(parts) != 3 {
			continue
		}
		_, ref, ok := strings.Cut(parts[1], ":")
		if !ok {
			continue
		}
		by[ref] = ""
		if parts[0] == "!" {
			by[ref] = "the forge refused it: " + printable(parts[2])
		}
	}
	return by
}

// maxNotes bounds the forge's messages to the session, in bytes.
const maxNotes = 8 << 10

// notes are the forge's messages to people, such as where to open a pull request.
func notes(said string) string {
	var out strings.Builder
	for line := range strings.Lines(said) {
		if text, ok := strings.CutPrefix(line, "remote:"); ok && out.Len()+len(text) < maxNotes {
			out.WriteString(strings.TrimPrefix(text, " "))
		}
	}
	return out.String()
}

// answer is the report on a push, in the requested format.
func (p *push) answer() []byte {
	var report, out bytes.Buffer
	if p.failed == "" {
		report.Write(packet("unpack ok\n"))
	} else {
		report.Write(packet("unpack " + oneLine(p.failed) + "\n"))
	}
	for _, c := range p.offer.commands {
		if c.refused == "" {
			report.Write(packet("ok " + c.ref + "\n"))
		} else {
			report.Write(packet("ng " + c.ref + " " + oneLine(c.refused) + "\n"))
		}
	}
	report.WriteString(flush)
	if !p.offer.reports {
		report.Reset()
	}
	if !p.offer.sideBand {
		return report.Bytes()
	}
	const most = maxPacket - 5
	for rest := []byte(p.notes); len(rest) > 0; rest = rest[min(len(rest), most):] {
		out.Write(packet("\x02" + string(rest[:min(len(rest), most)])))
	}
	for rest := report.Bytes(); len(rest) > 0; rest = rest[min(len(rest), most):] {
		out.Write(packet("\x01" + string(rest[:min(len(rest), most)])))
	}
	out.WriteString(flush)
	return out.Bytes()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
