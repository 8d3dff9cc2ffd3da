package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/gateway/egress"
	"deckhand/internal/sandbox"
)

// networkYAML is a word, or the domains that a session reaches.
type networkYAML struct {
	word    string
	domains []string // nil where there is a word, or nothing
	// unquoted are the entries that YAML took for something else than a word, such as the
	// mapping that internal:host without quotes is.
	unquoted []int
}

func (n *networkYAML) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&n.word) == nil {
		return nil
	}
	n.domains = []string{}
	if unmarshal(&n.domains) == nil {
		return nil
	}
	var entries []any
	if err := unmarshal(&entries); err != nil {
		return errors.New("write off, open, or a list of domains; put what has a colon in quotes")
	}
	n.domains = make([]string, len(entries))
	for i, e := range entries {
		switch e.(type) {
		case map[string]any, []any, nil:
			n.unquoted = append(n.unquoted, i)
		default:
			n.domains[i] = fmt.Sprint(e)
		}
	}
	return nil
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

// networkWords are what somebody may write into the list in place of the list.
var networkWords = []string{"", "off", "on", "open", "none", "any", "all", "true", "false", "yes", "no", "null"}

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
		at := fmt.Sprintf("%s[%d]", at, i)
		if slices.Contains(n.unquoted, i) {
			v.add(at, `this is no domain; put it in quotes, such as "internal:10.1.2.3" or "example.com:443"`)
			continue
		}
		if slices.Contains(networkWords, strings.ToLower(text)) {
			v.add(at, "%q is no domain; write network: off, or network: open, without a list", text)
			continue
		}
		if _, err := egress.ParseRule(text); err != nil {
			v.add(at, "%q: %v", text, err)
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
