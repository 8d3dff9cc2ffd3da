package claude

import (
	"slices"
	"strings"
	"testing"
)

// TestAProxysPasswordStaysOutside, however it is written, also where a project names
// the variable.
func TestAProxysPasswordStaysOutside(t *testing.T) {
	for value, want := range map[string]string{
		"http://proxy:3128":                        "http://proxy:3128",
		"http://user:s3cret@proxy:3128":            "http://proxy:3128",
		"user:s3cret@proxy:3128":                   "proxy:3128",
		"https://us%40er:s3/cret@x?#@proxy:3128/":  "https://proxy:3128/",
		"socks5h://s3cret@[::1]:1080":              "socks5h://[::1]:1080",
		"http://user:s3cret://x@proxy.example.org": "http://proxy.example.org",
	} {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "Https_Proxy"} {
			t.Setenv(name, value)
			env := Environ([]string{name}, nil)
			if !slices.Contains(env, name+"="+want) {
				t.Errorf("%s=%s becomes %q, want %s", name, value, slices.DeleteFunc(env, func(e string) bool { return !strings.HasPrefix(e, name+"=") }), want)
			}
		}
	}
	t.Setenv("NO_PROXY", "localhost,.example.org")
	if !slices.Contains(Environ(nil, nil), "NO_PROXY=localhost,.example.org") {
		t.Error("NO_PROXY is not passed on")
	}
}
