package settings

import (
	"fmt"
	"slices"

	"deckhand/internal/gateway/egress"
	"deckhand/internal/sandbox"
)

// networkYAML is a word, or the domains that a session reaches.
type networkYAML struct {
	word    string
	domains []string // nil where there is a word, or nothing
}

func (n *networkYAML) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&n.word) == nil {
		return nil
	}
	n.domains = []string{}
	return unmarshal(&n.domains)
}

// said reports whether anything stands there.
func (n networkYAML) said() bool { return n.word != "" || n.domains != nil }

// over is the team's network, if the project says nothing.
func (n networkYAML) over(team networkYAML) networkYAML {
	if n.said() {
		return n
	}
	return team
}

// network is what the sandbox is told. An empty list is no network.
func (n networkYAML) network() sandbox.Network {
	switch {
	case len(n.domains) > 0:
		return sandbox.Domains
	case n.word == "":
		return sandbox.Off
	}
	return sandbox.Network(n.word)
}

// network checks what is written at a path.
func (v *validation) network(at string, n networkYAML, kind sandbox.Kind) {
	if !shutsNetwork(kind) && n.said() {
		v.add(at, "%s does not decide about the network; leave it out", kind)
		return
	}
	if !slices.Contains([]sandbox.Network{"", sandbox.Off, sandbox.Open}, sandbox.Network(n.word)) {
		v.add(at, "%q is no network; write off (the model and nothing else), a list of domains such as [%s], or open (this machine's)", n.word, example(n.word))
	}
	for i, text := range n.domains {
		if _, err := egress.ParseRule(text); err != nil {
			v.add(fmt.Sprintf("%s[%d]", at, i), "%q: %v", text, err)
		}
	}
}

// example is the domain that somebody may have meant.
func example(word string) string {
	if _, err := egress.ParseRule(word); err == nil && len(word) > 3 {
		return word
	}
	return "registry.npmjs.org"
}
