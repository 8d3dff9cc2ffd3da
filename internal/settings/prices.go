package settings

import (
	"regexp"
	"strings"

	"deckhand/internal/price"
)

// pricesYAML are contract prices by model, or by a pattern such as claude-sonnet-*.
type pricesYAML map[string]priceYAML

// priceYAML is in US dollars: per million tokens, and per web search. All are required, so that nothing is free by
// mistake.
type priceYAML struct {
	Input        *dollars `yaml:"input"`
	Output       *dollars `yaml:"output"`
	CacheRead    *dollars `yaml:"cache_read"`
	CacheWrite5m *dollars `yaml:"cache_write_5m"`
	CacheWrite1h *dollars `yaml:"cache_write_1h"`
	WebSearch    *dollars `yaml:"web_search"`
}

// dollars is a price as written: a float would not hold it exactly.
type dollars string

// UnmarshalYAML accepts anything; the validation reports mistakes with their place.
func (d *dollars) UnmarshalYAML(source []byte) error {
	text := strings.TrimSpace(string(source))
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		text = text[1 : n-1]
	}
	*d = dollars(text)
	return nil
}

type priceField struct {
	key  string
	text *dollars
	into *price.Rate
}

func (p priceYAML) fields(into *price.Terms) []priceField {
	return []priceField{
		{"input", p.Input, &into.Input},
		{"output", p.Output, &into.Output},
		{"cache_read", p.CacheRead, &into.CacheRead},
		{"cache_write_5m", p.CacheWrite5m, &into.CacheWrite5m},
		{"cache_write_1h", p.CacheWrite1h, &into.CacheWrite1h},
		{"web_search", p.WebSearch, &into.WebSearch},
	}
}

var modelPattern = regexp.MustCompile(`^[A-Za-z0-9*][A-Za-z0-9*._:@/\[\]-]{0,127}$`)

func (v *validation) prices(at string, prices pricesYAML) {
	for _, model := range sorted(prices) {
		if !modelPattern.MatchString(model) {
			v.add(at, "%q is not a model; write its id, or a pattern such as claude-sonnet-*", model)
			continue
		}
		at := at + ".'" + model + "'"
		var missing []string
		for _, f := range prices[model].fields(new(price.Terms)) {
			if f.text == nil {
				missing = append(missing, f.key)
				continue
			}
			if _, err := price.ParseRate(string(*f.text)); err != nil {
				v.add(at+"."+f.key, "%v", err)
			}
		}
		if len(missing) > 0 {
			v.add(at, "%s: write a price for each, in US dollars per million tokens (web_search: per search); 0 if it costs nothing", strings.Join(missing, ", "))
		}
	}
}

// prices omits what does not parse: validation has refused it.
func (c pricesYAML) prices() price.Contract {
	out := make(map[string]price.Terms, len(c))
	for model, written := range c {
		var p price.Terms
		for _, f := range written.fields(&p) {
			if f.text != nil {
				*f.into, _ = price.ParseRate(string(*f.text)) // see above
			}
		}
		out[model] = p
	}
	return price.NewContract(out)
}
