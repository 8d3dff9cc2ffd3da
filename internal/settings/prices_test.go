package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/price"
)

const (
	priced = `prices:
  claude-sonnet-*: {input: 3.00, output: 15.00, cache_read: 0.30, cache_write_5m: 3.75, cache_write_1h: 6.00, web_search: 0.01}
  eu.anthropic.claude-opus-5-v1:0:
    input: 5.5 # with the region's premium
    output: "27.5"
    cache_read: 0.000000001
    cache_write_5m: 6
    cache_write_1h: 11
    web_search: 0
`
	pricedProject = `  web:
    prices: {"*": {input: 1, output: 2, cache_read: 3, cache_write_5m: 4, cache_write_1h: 5, web_search: 6}}
`
)

func TestPricesAreReadExactly(t *testing.T) {
	t.Parallel()
	c, err := ReadFile(write(t, strings.Replace(good, "  web:\n", pricedProject, 1)+priced))
	if err != nil {
		t.Fatal(err)
	}
	prices := c.Prices
	for model, want := range map[string]price.Terms{
		"claude-sonnet-4-5":               {Input: 3e9, Output: 15e9, CacheRead: 3e8, CacheWrite5m: 375e7, CacheWrite1h: 6e9, WebSearch: 1e7},
		"eu.anthropic.claude-opus-5-v1:0": {Input: 55e8, Output: 275e8, CacheRead: 1, CacheWrite5m: 6e9, CacheWrite1h: 11e9},
	} {
		if got, ok := prices.Of(model); !ok || got != want {
			t.Errorf("%s (-want +got):\n%s", model, cmp.Diff(want, got))
		}
	}
	if p, ok := prices.Of("claude-haiku-4-5"); ok {
		t.Errorf("a price out of nowhere: %+v", p)
	}
	if got, ok := c.Projects["web"].Prices.Of("anything"); !ok || got.Output != 2e9 {
		t.Errorf("the project's own price: %+v", got)
	}
}

func TestPricesThatMakeNoSenseAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	whole := good + priced
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"negative", "output: 15.00", "output: -15.00", []string{":18:", "prices.'claude-sonnet-*'.output", "negative"}},
		{"not a number", "input: 5.5", "input: .nan", []string{":20:12", "not a price"}},
		{"infinite", "input: 5.5", "input: .inf", []string{":20:12", "not a price"}},
		{"an exponent", "input: 5.5", "input: 1e3", []string{":20:12", "not a price"}},
		{"a word", "input: 5.5", "input: cheap", []string{":20:12", `"cheap"`}},
		{"a list", "input: 5.5", "input: [5]", []string{":20:", "write US dollars"}},
		{"for a single token", "output: \"27.5\"", "output: 27500000", []string{":21:13", "a million dollars"}},
		{"too fine", "0.000000001", "0.0000000001", []string{":22:17", "nine decimals"}},
		{"missing", "    cache_write_5m: 6\n    cache_write_1h: 11\n", "", []string{":20:5", "cache_write_5m, cache_write_1h", "0 if it costs nothing"}},
		{"empty", "web_search: 0.01", "web_search: ", []string{":18:21", "web_search"}},
		{"unknown", "web_search: 0.01", "web_searches: 0.01", []string{":18:", "web_searches"}},
		{"not for a model", "claude-sonnet-*", `"claude sonnet"`, []string{":18:3", "claude sonnet", "claude-sonnet-*"}},
		{"a quote in the model", "claude-sonnet-*", `"claude'"`, []string{"not a model"}},
		{"nothing at all", "{input: 3.00, output: 15.00, cache_read: 0.30, cache_write_5m: 3.75, cache_write_1h: 6.00, web_search: 0.01}", "3", []string{":18:"}},
		{"twice", "eu.anthropic.claude-opus-5-v1:0", "claude-sonnet-*", []string{":19:"}},
		{"of a project", "    dir: /srv/web\n", "    dir: /srv/web\n    prices: {m: {input: -1}}\n", []string{":4:25", "projects.web.prices.'m'.input", "negative"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(whole, tt.old) {
				t.Fatalf("%q is not in the good configuration", tt.old)
			}
			_, err := ReadFile(write(t, strings.Replace(whole, tt.old, tt.new, 1)))
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error does not say %q:\n%v", w, err)
				}
			}
		})
	}
}

func TestTheAdminKeyIsNotForTheAgent(t *testing.T) {
	t.Parallel()
	_, err := ReadFile(write(t, strings.Replace(good, "[GOPROXY]", "[ANTHROPIC_ADMIN_KEY]", 1)))
	if err == nil || !strings.Contains(fmt.Sprint(err), "cannot be passed on") {
		t.Errorf("error %v", err)
	}
	if !slices.Contains(Environment{AnthropicAdminKey: "sk-ant-admin01-x"}.Secrets(nil), "sk-ant-admin01-x") {
		t.Error("the log would show it")
	}
}

// What the example says in a comment is valid, too.
func TestTheExamplesPricesAreValid(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile(filepath.Join("..", "..", "deploy", "deckhand.example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(example), "\n# prices:\n")
	if !ok {
		t.Fatal("the example has no prices")
	}
	block := "prices:\n"
	for line := range strings.Lines(rest) {
		text, commented := strings.CutPrefix(line, "# ")
		if !commented {
			break
		}
		block += text
	}
	c, err := ReadFile(write(t, good+block))
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"claude-sonnet-4-5", "eu.anthropic.claude-opus-5-v1:0"} {
		if _, ok := c.Prices.Of(model); !ok {
			t.Errorf("the example has no price for %s:\n%s", model, block)
		}
	}
}
