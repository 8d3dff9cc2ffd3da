package settings

import (
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/gateway/egress"
	"deckhand/internal/sandbox"
)

// networkYAML is a word, a list of domains, or both: {allow: [a.example], otherwise: ask}.
type networkYAML struct {
	word    string   // beside domains, the network for others
	domains []string // nil for a word alone, or nothing
	mapping bool
	crooked bool // not one of networkForms
	// unquoted are entries that YAML did not read as strings, such as internal:host without quotes, which is a
	// mapping.
	unquoted []int
}

// networkForms lists the possible values.
const networkForms = "off, ask, open, a list of domains, or {allow: [registry.npmjs.org], otherwise: ask}; put what has a colon in quotes"

func (n *networkYAML) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&n.word) == nil {
		return nil
	}
	n.domains = []string{}
	if unmarshal(&n.domains) == nil {
		return nil
	}
	n.domains = nil
	var entries []any
	if unmarshal(&entries) == nil {
		n.list(entries)
		return nil
	}
	var keys map[string]any
	n.crooked = unmarshal(&keys) != nil
	n.mapping = true
	for key, value := range keys {
		list, isList := value.([]any)
		switch {
		case key == "otherwise" && !isList && value != nil:
			n.word = fmt.Sprint(value)
		case key == "allow" && isList:
			n.list(list)
		default:
			n.crooked = true
		}
	}
	return nil
}

// list reads a list of domains.
func (n *networkYAML) list(entries []any) {
	n.domains = make([]string, len(entries))
	for i, e := range entries {
		switch e.(type) {
		case map[string]any, []any, nil:
			n.unquoted = append(n.unquoted, i)
		default:
			n.domains[i] = fmt.Sprint(e)
		}
	}
}

// said reports whether there is a value.
func (n networkYAML) said() bool { return n.word != "" || n.domains != nil || n.mapping }

// over is the project's network, or else the team's.
func (n networkYAML) over(team networkYAML) networkYAML {
	if n.said() {
		return n
	}
	return team
}

// network is the sandbox's network. An empty list is no network.
func (n networkYAML) network() sandbox.Network {
	switch {
	case sandbox.Network(n.word) == sandbox.Ask:
		return sandbox.Ask
	case len(n.domains) > 0:
		return sandbox.Domains
	case n.word == "":
		return sandbox.Off
	}
	return sandbox.Network(n.word)
}

// networkWords are words that somebody may write into the list instead of in its place.
var networkWords = []string{"", "off", "on", "ask", "open", "none", "any", "all", "true", "false", "yes", "no", "null"}

// network checks the value at a path.
func (v *validation) network(at string, n networkYAML, kind sandbox.Kind) {
	if !shutsNetwork(kind) && n.said() {
		v.add(at, "%s does not decide about the network; leave it out", kind)
		return
	}
	switch word := sandbox.Network(n.word); {
	case n.crooked:
		v.add(at, "write %s", networkForms)
	case n.mapping && n.domains == nil:
		v.add(at, "it allows no domain; write network: ask alone, or allow: [registry.npmjs.org] beside otherwise: ask")
	case n.mapping && word == "":
		v.add(at, "it does not say what is otherwise; write otherwise: ask beside allow:, or the list of domains alone")
	case n.mapping && word != sandbox.Ask && word != sandbox.Off:
		v.add(at+".otherwise", "%q is not what can be otherwise; write ask (a person is asked about every other domain) or off", n.word)
	case !slices.Contains([]sandbox.Network{"", sandbox.Off, sandbox.Ask, sandbox.Open}, word):
		v.add(at, "%q is no network; write off (the model and nothing else), a list of domains such as [%s], ask (a person is asked about every domain), or open (this machine's)", n.word, example(n.word))
	}
	list := at
	if n.mapping {
		list += ".allow"
	}
	for i, text := range n.domains {
		v.domain(fmt.Sprintf("%s[%d]", list, i), text, slices.Contains(n.unquoted, i))
	}
}

// domain checks an entry of a list of domains.
func (v *validation) domain(at, text string, unquoted bool) {
	switch word := strings.ToLower(text); {
	case unquoted:
		v.add(at, `this is no domain; put it in quotes, such as "internal:10.1.2.3" or "example.com:443"`)
		return
	case sandbox.Network(word) == sandbox.Ask:
		v.add(at, "%q is no domain; write network: ask without a list, or {allow: [registry.npmjs.org], otherwise: ask}", text)
		return
	case slices.Contains(networkWords, word):
		v.add(at, "%q is no domain; write network: off, or network: open, without a list", text)
		return
	}
	if _, err := egress.ParseRule(text); err != nil {
		v.add(at, "%q: %v", text, err)
	}
}

// example is a domain that was perhaps meant.
func example(word string) string {
	if _, err := egress.ParseRule(word); err == nil && len(word) > 3 {
		return word
	}
	return "registry.npmjs.org"
}
