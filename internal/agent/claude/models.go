package claude

import (
	"slices"
	"strings"

	"deckhand/internal/price"
)

// aliases are names that the CLI takes for a model, beside the models' own.
var aliases = []string{"default", "best", "sonnet", "opus", "haiku", "opusplan"}

// KnownModels are the names of models that the CLI of this version is known to take: its
// aliases, and the beginnings of the models' own. A model may be newer than this list.
func KnownModels() []string {
	known := slices.Clone(aliases)
	for _, m := range price.Models() {
		known = append(known, m.Name)
	}
	slices.Sort(known[len(aliases):])
	return known
}

// ModelOf is the model that an alias of a kind, such as opus, means to the CLI that the price
// list is of: the newest of them. Other names stay.
func ModelOf(name string) string {
	kind, _, _ := strings.Cut(name, "[") // as in opus[1m]
	for _, m := range price.Models() {   // the newest of a kind comes first
		if strings.HasPrefix(m.Name, "claude-"+kind+"-") {
			return m.Name
		}
	}
	return name
}

// KnowsModel reports whether a name is one of them, whatever stands around it: Bedrock
// and Vertex have their own prefixes, and [1m] is a context window.
func KnowsModel(model string) bool {
	_, priced := price.Of(model)
	return slices.Contains(aliases, strings.TrimSuffix(model, "[1m]")) || priced
}
