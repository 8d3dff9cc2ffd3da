package render_test

import (
	"strings"
	"testing"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
)

func TestTitle(t *testing.T) {
	t.Parallel()
	redact := func(s string) string { return strings.ReplaceAll(s, "sk-ant-secret-of-ours", "[redacted]") }
	for _, tt := range []struct{ prompt, want string }{
		{"fix the failing test", "fix the failing test"},
		{"  fix\n\tthe   failing test ", "fix the failing test"},
		{"", ""},
		{"```\n```", ""},
		{"## Fix `Sum` in **math.go**\n- now", "Fix Sum in math.go now"},
		{"<@U0ADA> look at <#C0ENG|engineering> and <https://example.com/a|the report>, <https://example.com>", "look at #engineering and the report, https://example.com"},
		{"please go through the whole repository and find out why the nightly build is slow", "please go through the whole repository and find out why…"},
		{strings.Repeat("x", 200), strings.Repeat("x", 59) + "…"},
		{"tell <!channel> and @here what sk-ant-secret-of-ours is", "tell and @here what [redacted] is"},
		{strings.Repeat("a ", 28) + "sk-ant-secret-of-ours", strings.Repeat("a ", 27) + "a…"},
		{"rename \u202egnp.exe", "rename ⟨U+202E⟩gnp.exe"},
		{strings.Repeat("ありがとう", 20), strings.Repeat("ありがとう", 20)[:59*3] + "…"},
		{strings.Repeat("🇩🇪", 40), strings.Repeat("🇩🇪", 14) + "…"},
	} {
		got := view.Title(tt.prompt, redact)
		if got != tt.want {
			t.Errorf("%q:\n got %q\nwant %q", tt.prompt, got, tt.want)
		}
		if plaintext.Width(got) > 60 {
			t.Errorf("%q: %d units", tt.prompt, plaintext.Width(got))
		}
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Fix the flaky test in src/quote.js, please": "fix-the-flaky-test-in-src",
		"Don't retry [redacted]":                     "dont-retry-redacted",
		"größe of the Header; $(rm -rf ~) ../..":     "of-the-header-rm-rf",
		"ありがとう":                                      "",
		"b64ed1b2f0ad8c33c8a1 is broken":             "is-broken",
		"-- /.lock @{1} ~^:":                         "lock-1",
	} {
		if got := view.Slug(title); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}
