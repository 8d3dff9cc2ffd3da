package slackui

import "testing"

func TestWhatPeopleTyped(t *testing.T) {
	t.Parallel()
	for slacks, want := range map[string]string{
		"see <http://127.0.0.1:8080/a?b=1&amp;c=2> now":      "see http://127.0.0.1:8080/a?b=1&c=2 now",
		"<http://example.com|example.com>":                   "example.com",
		"<https://example.com/|example.com>":                 "example.com",
		"<https://example.com/a|the notes &amp; all>":        "the notes & all (https://example.com/a)",
		"<mailto:ada@example.com|ada@example.com>":           "ada@example.com",
		"<@U1> and <@U2|grace> in <#C1|general>, <#C2>":      "@Ada and @Ada in #general, <#C2>",
		"<!here> <!subteam^S1|@team> <!date^1^{date}|today>": "@here @team today",
		"if a &lt; b &amp;&amp; c &gt; d":                    "if a < b && c > d",
		"&lt;http://example.com|x&gt; &amp;lt;":              "<http://example.com|x> &lt;",
		"a <b":                                               "a <b",
		" x\x00":                                             "x",
	} {
		if got := unmarked(slacks, func(string) string { return "Ada" }); got != want {
			t.Errorf("%q was read as %q, want %q", slacks, got, want)
		}
	}
}
