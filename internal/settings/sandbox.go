package settings

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/spelling"
)

// sandboxYAML is a kind of sandbox, or a mapping. A project's has only the differences from the team's.
type sandboxYAML struct {
	Kind    string      `yaml:"kind"`
	Network networkYAML `yaml:"network"`
	Engine  string      `yaml:"engine"`
	Image   string      `yaml:"image"`
	Command []string    `yaml:"command"`
	See     []string    `yaml:"see"`
	Caches  []string    `yaml:"caches"`
	Limits  limitsYAML  `yaml:"limits"`
}

func (s *sandboxYAML) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&s.Kind) == nil {
		return nil
	}
	type plain sandboxYAML
	return unmarshal((*plain)(s))
}

// over is the team's sandbox with the project's differences. What belongs to the team's kind is not inherited by
// another kind.
func (s *sandboxYAML) over(team sandboxYAML) sandboxYAML {
	if s == nil {
		return team
	}
	if s.Kind != "" && s.Kind != team.Kind {
		team.Network, team.Engine, team.Image, team.Command = networkOf(s.Kind, team.Network), "", "", nil
	}
	list := func(own, team []string) []string {
		if own != nil {
			return own
		}
		return team
	}
	return sandboxYAML{
		Kind: cmp.Or(s.Kind, team.Kind), Network: s.Network.over(team.Network),
		Engine: cmp.Or(s.Engine, team.Engine), Image: cmp.Or(s.Image, team.Image),
		Command: list(s.Command, team.Command), See: list(s.See, team.See), Caches: list(s.Caches, team.Caches),
		Limits: s.Limits.over(team.Limits),
	}
}

// networkOf is the team's network, for kinds with their own.
func networkOf(kind string, network networkYAML) networkYAML {
	if shutsNetwork(sandbox.Kind(kind)) {
		return network
	}
	return networkYAML{}
}

// shutsNetwork reports whether the kind can restrict the network.
func shutsNetwork(kind sandbox.Kind) bool {
	return kind != sandbox.None && kind != sandbox.Command
}

// ReachAdvice is the cure for [File.Unreached].
const ReachAdvice = "write the domains under network: for the project, or take the rule out"

// AskAdvice is the cure for [File.Idle].
const AskAdvice = "write network: ask, or {allow: [registry.npmjs.org], otherwise: ask}, for a project; or take the rule out"

// Idle are the rules about hosts that apply in no project which asks about hosts, each with its place.
func (f File) Idle() []string {
	var idle []string
	for _, asks := range []bool{false, true} {
		for _, project := range slices.Sorted(maps.Keys(f.Projects)) {
			if asks != (f.Projects[project].Sandbox.Network == sandbox.Ask) {
				continue
			}
			rules := f.Policy.Reaching(project)
			idle = slices.DeleteFunc(idle, func(r string) bool { return slices.Contains(rules, r) })
			if !asks {
				idle = append(idle, rules...)
			}
		}
	}
	return idle
}

// Unreached are the rules that allow fetching pages which the project's sandbox cannot reach, each with its place.
// Claude Code fetches them itself, from inside.
func (f File) Unreached(project string) []string {
	if s := f.Projects[project].Sandbox; !shutsNetwork(s.Kind) || s.Network != sandbox.Off {
		return nil
	}
	return f.Policy.Fetching(project)
}

func (s sandboxYAML) spec() sandbox.Spec {
	return sandbox.Spec{
		Kind: cmp.Or(sandbox.Kind(s.Kind), sandbox.Bwrap), Network: s.Network.network(), Domains: s.Network.domains,
		Engine: s.Engine, Image: s.Image, Command: s.Command, See: s.See, Caches: s.Caches,
		Limits: s.Limits.limits(sandbox.Kind(s.Kind)),
	}
}

// sandbox checks the sandbox at a path; whole is the effective one, including the team's.
func (v *validation) sandbox(at string, s, whole sandboxYAML) {
	kind := cmp.Or(sandbox.Kind(whole.Kind), sandbox.Bwrap)
	if !slices.Contains(sandbox.Kinds(), kind) {
		if s.Kind != "" {
			v.add(at+".kind", "%q is no sandbox; %s", s.Kind, oneOf(s.Kind, sandbox.Kinds()))
		}
		return
	}
	v.network(at+".network", s.Network, kind)
	if kind != sandbox.Container && (s.Engine != "" || s.Image != "") {
		v.add(at, "engine and image belong to kind: container")
	}
	if kind == sandbox.Container && whole.Image == "" {
		v.add(at, "a container needs an image; write image: with its name")
	}
	if !slices.Contains([]string{"", "docker", "podman"}, s.Engine) {
		v.add(at+".engine", "%q is no engine; write docker or podman", s.Engine)
	}
	if kind != sandbox.Command && s.Command != nil {
		v.add(at+".command", "a launcher belongs to kind: command")
	}
	if kind == sandbox.Command && len(whole.Command) == 0 {
		v.add(at, "kind: command needs a launcher; write command: with its words")
	}
	v.sandboxFolders(at, s)
	v.limits(at+".limits", s.Limits, kind)
}

func (v *validation) sandboxFolders(at string, s sandboxYAML) {
	for i, p := range s.See {
		at := fmt.Sprintf("%s.see[%d]", at, i)
		switch {
		case !filepath.IsAbs(p):
			v.add(at, "%q is not an absolute path", p)
		case slices.Contains([]string{"/", "/proc", "/sys", "/dev", "/run", "/tmp", "/etc", "/var", "/var/run", "/home", "/root"}, filepath.Clean(p)):
			v.add(at, "%s has more in it than a session should see; name the folder in it that is needed", filepath.Clean(p))
		}
	}
	for i, p := range s.Caches {
		if at := fmt.Sprintf("%s.caches[%d]", at, i); !filepath.IsLocal(p) || filepath.Clean(p) == "." || strings.Split(filepath.Clean(p), "/")[0] == ".claude" {
			v.add(at, "%q cannot be kept; write a folder below the home, such as go/pkg/mod", p)
		} else if in := nested(p, s.Caches[:i]); in != "" {
			v.add(at, "%s and %s lie in one another; write one of them", p, in)
		}
	}
}

// oneOf lists the known words, and suggests the one that was perhaps meant.
func oneOf[T ~string](word string, all []T) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = string(a)
	}
	if near := spelling.Nearest(word, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "write " + strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// nested is the first folder that contains a folder or lies in it.
func nested(folder string, others []string) string {
	for _, o := range others {
		a, b := filepath.Clean(folder)+"/", filepath.Clean(o)+"/"
		if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
			return o
		}
	}
	return ""
}
