package settings

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"deckhand/internal/access"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/spend"
	"deckhand/internal/chat/costs"
	"deckhand/internal/gateway"
	"deckhand/internal/price"
	"deckhand/internal/workspace"
)

// DefaultFile is the default path of deckhand.yaml.
const DefaultFile = "deckhand.yaml"

// File is a validated deckhand.yaml, converted for its users. The zero value is an empty file: nobody may do
// anything.
type File struct {
	Name   string
	SHA256 [sha256.Size]byte

	Projects map[string]place.Project
	// Access says who may do what, and which project belongs to a place.
	Access access.Rules
	Policy *policy.Policy
	// Doubts are parts of the policy that have no effect, or may leave somebody waiting, with their place and cure.
	Doubts    []string
	Reminders []Reminder
	Budgets   []spend.Budget
	// Prices are the team's; projects may have their own.
	Prices     price.Contract
	Digests    []costs.Digest
	Workspaces workspace.Limits
	// TimeZone is the team's; nil is UTC.
	TimeZone *time.Location
	// AskersTimeZone: days in answers are in the asking person's time zone.
	AskersTimeZone bool

	document document
	tree     *ast.File
}

// Reminder is a reminder of a pending approval.
type Reminder struct {
	After time.Duration
	// To are "thread", "approvers" (each by direct message), and channels' ids.
	To []string
}

// ReadFile reads and checks deckhand.yaml. Its error lists all problems with line, column and cure.
func ReadFile(name string) (File, error) {
	source, err := readSource(name)
	if err != nil {
		return File{}, unreadable(name, err)
	}
	return readText(name, source)
}

// readText is [ReadFile] for the file's content.
func readText(name string, source []byte) (File, error) {
	tree, err := parser.ParseBytes(source, 0)
	if err != nil {
		return File{}, positioned(name, nil, err)
	}
	v := validation{file: name, tree: tree}
	for i, doc := range tree.Docs {
		if i > 0 && doc.Body != nil {
			t := doc.Body.GetToken()
			return File{}, fmt.Errorf("%s:%d:%d: a second document begins here, and Deckhand would not read it: remove the --- before it", name, t.Position.Line, t.Position.Column)
		}
		v.shapes("$", doc.Body, reflect.TypeFor[document](), 0)
	}
	read := source
	if len(tree.Docs) > 0 && tree.Docs[0].Body != nil && tree.Docs[0].Body.Type() == ast.NullType {
		read = nil // the reader takes an empty file and refuses null
	}
	if err := v.err(); err != nil {
		return File{}, err
	}
	var d document
	if err := yaml.UnmarshalWithOptions(read, &d, yaml.Strict()); err != nil {
		return File{}, positioned(name, tree, err)
	}
	v.check(d)
	if err := v.err(); err != nil {
		return File{}, err
	}
	rules := d.policy(&v)
	v.mistakes(d, rules)
	if err := v.err(); err != nil {
		return File{}, err
	}
	return File{
		Name: name, SHA256: sha256.Sum256(source),
		Projects: d.projects(), Access: d.access(),
		Policy: rules, Doubts: v.doubts, Reminders: d.reminders(), Budgets: d.budgets(), Prices: d.Prices.prices(), Digests: d.digests(),
		Workspaces: d.Workspaces.limits(), TimeZone: d.zone(), AskersTimeZone: d.Reports.TimeZone == askersZone,
		document: d, tree: tree,
	}, nil
}

// maxFile bounds deckhand.yaml, in bytes: enough for a thousand projects, and read in a second.
const maxFile = 1 << 20

var errTooLarge = errors.New("too large")

// readSource reads a file without blocking on a FIFO.
func readSource(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, syscall.EISDIR
	case !info.Mode().IsRegular():
		return nil, errors.ErrUnsupported
	}
	source, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(source) > maxFile {
		return nil, errTooLarge
	}
	return source, err
}

func unreadable(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("DECKHAND_CONFIG: there is no file %s; copy deploy/deckhand.example.yaml there and change it", name)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("DECKHAND_CONFIG: %s is a folder; name the file in it (a bind mount of a file that was not there makes a folder: remove it, and write the file first)", name)
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("DECKHAND_CONFIG: %s is no file, but a pipe, a socket or a device; write the configuration into a file", name)
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("DECKHAND_CONFIG: %s is larger than 1 MiB, and no configuration; name deckhand.yaml", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("DECKHAND_CONFIG: this user (uid %d) may not read %s; let it, for instance by chmod o+r, or by chown", os.Getuid(), name)
	}
	return fmt.Errorf("DECKHAND_CONFIG: read %s: %w", name, err)
}

// Where is the position of a path such as "$.channels.C012" in editors' format, file:line:column. A missing key has
// its parent's position.
func (f File) Where(path string) string {
	return (&validation{file: f.Name, tree: f.tree}).where(path)
}

// AnybodyMay reports whether somebody may use the bot somewhere.
func (f File) AnybodyMay() bool {
	may := func(r access.Roles) bool { return len(r.Admins)+len(r.Approvers)+len(r.Users) > 0 }
	return may(f.Access.Roles) ||
		slices.ContainsFunc(slices.Collect(maps.Values(f.Access.Projects)), may) ||
		slices.ContainsFunc(slices.Collect(maps.Values(f.Access.Channels)), may)
}

// Zone is the team's time zone.
func (f File) Zone() *time.Location {
	if f.TimeZone == nil {
		return time.UTC
	}
	return f.TimeZone
}

// Audited is the audit's record of the rules.
func (f File) Audited() map[string]any {
	rules := []string{}
	for _, r := range f.Policy.Rules {
		rules = append(rules, r.String())
	}
	return map[string]any{"file": f.Name, "access": f.Access, "rules": rules, "policy": f.document.Policy, "postures": f.Policy.Postures, "sandboxes": f.Sandboxes()}
}

// CredentialFiles are the projects' providers' files with credentials: no session may see them.
func (f File) CredentialFiles(getenv func(string) string) []string {
	out := gateway.Provider{}.Files(getenv)
	for _, p := range f.Projects {
		out = append(append(out, p.Provider.Files(getenv)...), p.Access.Files()...)
		if p.SignKey != "" {
			out = append(out, p.SignKey)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Reactions are the emojis that do something, by their names.
func (f File) Reactions() map[string]string { return f.document.Reactions }

// Sandboxes are the sandboxes by project, for people.
func (f File) Sandboxes() map[string]string {
	out := make(map[string]string, len(f.Projects))
	for name, p := range f.Projects {
		out[name] = p.Sandbox.String()
	}
	return out
}

// Calls are, by project, how approvers learn of a request.
func (f File) Calls() map[string]access.Call {
	out := make(map[string]access.Call, len(f.document.Projects))
	for name, p := range f.document.Projects {
		out[name] = cmp.Or(access.Call(p.Call), access.CallAuto)
	}
	return out
}

// positioned moves the position of a YAML error to where editors expect it.
func positioned(file string, tree *ast.File, err error) error {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return fmt.Errorf("%s: %s", file, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	t := y.GetToken()
	message := y.GetMessage()
	if _, ok := errors.AsType[*yaml.UnknownFieldError](err); ok {
		message = unknownKey(tree, t)
	} else if readersOwn(err) {
		message = "this value, or the value that an alias puts here, is of the wrong kind"
	}
	return fmt.Errorf("%s:%d:%d: %s", file, t.Position.Line, t.Position.Column, message)
}

// readersOwn reports whether an error is the YAML reader's own, with Go types.
func readersOwn(err error) bool {
	_, kind := errors.AsType[*yaml.TypeError](err)
	_, node := errors.AsType[*yaml.UnexpectedNodeTypeError](err)
	_, large := errors.AsType[*yaml.OverflowError](err)
	return kind || node || large
}

func (d document) projects() map[string]place.Project {
	out := make(map[string]place.Project, len(d.Projects))
	for name, p := range d.Projects {
		kind := cmp.Or(workspace.Kind(p.Workspace), workspace.Shared)
		models := p.models()
		model := ""
		if len(models) > 0 {
			model = models[0]
		}
		key, email := d.signingOf(p)
		out[name] = place.Project{
			Name: name, Dir: p.Dir, Repo: p.Repo, Workspace: kind, Base: p.Base, Subdir: p.Subdir, Further: p.further(), Model: model, Models: models,
			MaxTurns: pointed(p.MaxTurns), AllowedTools: p.AllowedTools, DisallowedTools: p.DisallowedTools,
			PermissionMode: p.PermissionMode, Env: p.Env, AppendSystemPrompt: p.AppendSystemPrompt,
			Prices: p.Prices.prices(), Sandbox: p.Sandbox.over(d.Sandbox).spec(), Provider: pointed(cmp.Or(p.Provider, d.Provider)),
			MCPServers:   mcpServers(p.MCPServers),
			PullRequests: d.pullsOf(p), SignKey: key, Committer: email,
			Forge: d.forgeOf(p), Access: d.accessOf(p), Setup: p.Setup.setup(), Preview: pointed(p.Preview), Trust: p.Trust,
		}
	}
	return out
}

func (d document) access() access.Rules {
	a := access.Rules{
		Roles: d.Roles, Projects: map[string]access.Roles{}, Channels: map[string]access.Roles{},
		Places: access.Places{Channels: map[string]string{}, Several: map[string][]string{}, Unsettled: map[string]bool{}, DirectMessages: d.DirectMessages, Mention: map[string]bool{}},
	}
	for name, p := range d.Projects {
		a.Projects[name] = p.Roles
	}
	for id, ch := range d.Channels {
		a.Channels[id], a.Places.Channels[id] = ch.Roles, ch.all()[0]
		if all := ch.all(); len(all) > 1 {
			a.Places.Several[id], a.Places.Unsettled[id] = all, ch.Project == ""
		}
		if ch.Replies == repliesMention {
			a.Places.Mention[id] = true
		}
	}
	return a
}

// policy panics on a pattern that does not parse: validation refuses those.
func (d document) policy(v *validation) *policy.Policy {
	p := &policy.Policy{Default: policy.Terms{
		RequesterMayApprove: d.Policy.RequesterMayApprove == nil || *d.Policy.RequesterMayApprove,
		Timeout:             time.Duration(d.Policy.ApprovalTimeout),
		OnTimeout:           policy.OnTimeout(d.Policy.OnTimeout),
		Quorum:              d.Policy.Quorum,
		Fixed:               d.Policy.Edit != nil && !*d.Policy.Edit,
	}, Postures: d.postures(), Reads: d.reads()}
	for i, r := range d.Policy.Rules {
		verdict, patterns := r.verdict()
		rule := policy.Rule{
			Verdict: verdict, Projects: r.Projects, Channels: r.Channels, Because: r.Because,
			Approvers: r.Approvers, Quorum: r.Quorum, RequesterMayApprove: r.RequesterMayApprove,
			Timeout: time.Duration(r.Timeout), OnTimeout: policy.OnTimeout(r.OnTimeout), Dangerous: r.Dangerous, Edit: r.Edit,
			Source: v.where(fmt.Sprintf("$.policy.rules[%d]", i)),
		}
		for _, text := range patterns {
			pattern, err := policy.ParsePattern(text)
			if err != nil {
				panic(fmt.Sprintf("%s: %v", rule.Source, err))
			}
			rule.Patterns = append(rule.Patterns, pattern)
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

// defaultReminders apply without any in the file: nobody should find out in the evening that an agent has waited
// since the morning.
var defaultReminders = []reminderYAML{
	{After: duration(time.Hour), To: names{"thread"}},
	{After: duration(4 * time.Hour), To: names{"thread", "approvers"}},
}

func (d document) reminders() []Reminder {
	list := d.Policy.Reminders
	if list == nil {
		list = defaultReminders
	}
	out := []Reminder{}
	for _, r := range list {
		out = append(out, Reminder{After: time.Duration(r.After), To: r.To})
	}
	return out
}

func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
