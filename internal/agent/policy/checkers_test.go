package policy

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/waittest"
)

// What checkers know and do not, by the name of the checker.
var checkerTable = []struct {
	checker   string
	known, no []string
}{
	{
		"sed",
		[]string{
			"s/a/b/", "s/a/b/g", "s|a|b|gp", "s/a\\/b/c/2", "1p", "$p", "1,10p", "/x/d", "/x/,/y/p", "/x/,+3p", "0~4p", "5q", "5q1", "$!N;P;D", "/a/{p;d}", "1!G;h;$!d",
			"s/[^/]*$//", "s/[[:space:]]*$//", ":a;N;$!ba;s/\\n/ /g", "y/abc/xyz/", "=", "/a/=", "1i hello", "$a\\\nhello", "2c\\\nx", "s/x/y/;s/a/b/", "# comment", "1~2d", "\\,a,d",
			"/x/I,/y/p", "s/(a|b)+/\\U&/gI", "s#a#b#", "n;d", "l 5", "1d;$d", "", "s/a/x\\\ny/", "/^$/d", "s/\\(.*\\)/w \\1/", "s/e/w/", "p;p", "/a/!d", "/a/ ! d", "s/[/b/e;x]/c/", "s/[]/]/e/", "s/[/b/w PWNED;x]/c/", "s/[/]/e touch PWNED;/",
		},
		[]string{
			"w x", "1w x", "r x", "R x", "W x", "e touch x", "1e touch x", "e", "s/a/b/e", "s/a/b/ge", "s/a/b/w x", "s/a/b/gw x", "s/a/b/pw x", "/x/w x", "$!{w x", "{w x\n}", "p;w x", "p\nw x",
			"s/a/b/;e touch x", "s/a/b/M;e x", "y/a/b/;w x", "a\\", "a foo\\", "i\\", "1,w x", "\\", "s", "s/", "s/a", "s/a/b", "saaba", "s a b ", "s\\a\\b\\", "s/[\\]/]/e",
			"v", "F", "}", "{", "{p", "p}", "k", "1,2,3p", "y/a/b", "s/a\nw x/b/", "s/a/b\nw x/", ": a b", "b a w", "\\xaxw y", "/a/wx", "1!w x", "# x\\\nw y", "q5w", "s/a/b/\rw x", "\x00w",
		},
	},
	{
		"awk",
		[]string{
			"{print}", "{print $1}", "{print $1, $NF}", "NR==1", "NR>1", "NR % 2 == 0 {print}", "/x/", "!/x/", "/a/,/b/", "$3 > 5 {print $1}", "{s+=$1} END {print s}", "END{print NR}",
			"BEGIN{FS=\":\"} {print $1}", "{printf \"%s\\n\", $2}", "length > 80", "length($0) > 80", "{a[$1]++} END {for (k in a) print k, a[k]}", "!seen[$0]++", "{print substr($0, 1, 5)}",
			"{gsub(/a/, \"b\"); print}", "{$1=\"\"; print $0}", "$1 ~ /^x/ && $2 !~ /y$/", "{print $1/2}", "{print (a+b)/2}", "{if ($1 == 3) print \"yes\"; else print \"no\"}", "END{print s/NR}",
			"BEGIN { while (i < 3) { i++; print i } }", "{ n = split($0, p, \",\"); print p[n] }", "# comment\n{print}", "/\"/ {print}", "{print toupper($1) \" \" tolower($2)}", "1", "$NF",
			"/[0-9]+/", "{x = $1 ~ /a/ ? 1 : 2; print x}", "{print length}", "a || b", "{N = 1; print N}", "BEGIN{srand(); print rand()}", "",
		},
		[]string{
			"BEGIN{system(\"x\")}", "BEGIN{system (\"x\")}", "BEGIN{print > \"x\"}", "BEGIN{print >> \"x\"}", "BEGIN{print \"x\" | \"sh\"}", "BEGIN{\"x\" | getline}", "BEGIN{getline < \"x\"}", "{getline}", "{getline y}",
			"BEGIN{print ENVIRON[\"X\"]}", "BEGIN{for (k in ENVIRON) print k}", "BEGIN{ARGV[1]=\"/etc/passwd\"; ARGC=2}", "BEGIN{print PROCINFO[\"x\"]}", "BEGIN{SYMTAB[\"x\"]=1}", "@load \"x\"", "@include \"x\"", "BEGIN{@f()}",
			"function f() {}", "func f() {}", "{f(1)}", "BEGIN{print 1 |& \"x\"}", "BEGIN{printf \"x\" > \"y\"}", "BEGIN{print(1) > \"x\"}", "BEGIN{print 1,\n2 > \"x\"}", "BEGIN{awk::system(\"x\")}", "BEGIN{close(\"x\")}",
			"BEGIN{fflush()}", "BEGINFILE{}", "{if (x) /\"/ ; system(\"x\") #\"}", "/[/]\"/ ; \"x\"", "{x++ /\"/ ; y}", "/a", "\"a", "\"a\n\"", "{print \\\n> \"x\"}", "BEGIN {print 1 >= \"x\"}", "{length / 2}", "`x`", "{x'y}",
			"# x\\\n", "{nextfile}", "/[\\]/]/", "{print $1 ? a > b : c}", ")", "}) /\"/ ; \"",
		},
	},
	{
		"jq",
		[]string{
			".", ".a", ".a.b[0]", ".[]", ".[] | .name", ".a // \"x\"", "keys", "length", "map(.x)", "select(.a == 1)", "[.[] | select(.x > 2)]", "{a: .b, c}", "{name, version}", "to_entries[] | \"\\(.key)=\\(.value)\"",
			".dependencies | keys[]", "@base64", ".[] | @tsv", "if .a then 1 else 2 end", "reduce .[] as $x (0; . + $x)", ".. | numbers", ".a?", ".\"foo-bar\"", ".[\"x\"]", "map({key: .a, value: .b}) | from_entries", ".env", ".scripts.env",
			"{env: .x}", "with_entries(.value += 1)", ". as {a: $x} | $x", "limit(3; .[])", "test(\"^a\")", "{(.a): 1}", "[1, 2.5, -3e4]", "del(.a)", "$x + 1", "input | .a", ".a | not", "group_by(.x) | map(length)",
			".items[].metadata.name", "{\"env\": 1}", "sort_by(.a) | reverse | first", "paths(scalars)", "\"a \\(\"b \\(.c)\") d\"", "tostring", "", "splits(\"a\")",
		},
		[]string{
			"env", "env.HOME", "$ENV", "$ENV.PATH", "{env: env}", "[env]", "{x: $ENV}", "\"\\(env)\"", "\"\\(\"\\(env)\")\"", "import \"a\" as a; .", "include \"a\"; .", "a::b", "load(\"x\")", "eval(\"x\")", "def f: env; f",
			"def f(env): env; .", "input_filename", "modulemeta", "get_search_list", "$__prog_args", "strenv(X)", "envsubst", "@file", "\"", "\"\\(", "(", ")", "]", "{", "[(])", "\"\\(1\"", "# x", ".a | env", "{a, env: 1 | env}", "{x, load(\"y\")}",
			"{env, x} | env", "`x`", "\\", "debug_env", "load_str(\"x\")", "system(\"x\")", "builtins", "{(env): 1}", ".[env]", "getpath([\"a\"]) | env",
		},
	},
	{"printf", []string{"%s\\n", "%-10s|%5.2f", "100%%", "%b", "%q", "%(%F)T", "%*d", "x", "%"}, []string{"%n", "%5n", "%ln", "x%n", "%%%n", "%(x", "%hhn", "%*.*n", "%S", "%v"}},
	{"clock", []string{"+%s", "+%F %T"}, []string{"0101", "112233", "%s", ""}},
	{"columns", []string{"pid,ppid,cmd", "pid=,args=", "-%mem", "+rss", "pid user"}, []string{"environ", "pid,environ", "e", "pid=X", "pid,?"}},
	{"header", []string{"A: b", ""}, []string{"@file", "@"}},
	{"write-out", []string{"%{http_code}", "%{http_code}\\n", "x", "%%", "%{time_total} s"}, []string{"%output{x}", "%header{x}", "@x", "%{http_code}%output{x}", "%", "%{x", "%{a b}"}},
	{"pretty", []string{"%h %s", "oneline", "format:%H%n%an", "%C(red)%h%Creset", "%(refname:short)", "%(if)%(upstream)%(then)x%(else)y%(end)", "%x09", "%>(20)%s", "%+b"}, []string{"%G?", "%GS", "%h%GK", "%(signature)", "%(signature:key)", "%(x)", "%+GG", "%(*signature)"}},
	{"refspec", []string{"main", "HEAD", "main:main", "feature/x", "HEAD:refs/heads/x", "v1.2"}, []string{"+main", ":main", "main:", "+a:b", "", "a:+b", "a b"}},
	{"glob", []string{"*.go", "src/**/*.ts", "!vendor/**"}, []string{".env", "*", ".*", "*.env", "**/.e*", "*.pem"}},
	{"key", []string{"user.name", "remote.origin.url", "branch.a/b.merge"}, []string{"edit", "unset", "set", ""}},
	{"kind", []string{"pods", "pod/x", "deploy,svc", "pod/a,svc/b", "all"}, []string{"secret", "secrets", "secret/x", "pods,secrets", "configmap", "cm", "pod/x,secret/y", "", "secrets.v1"}},
	{"kube-print", []string{"wide", "yaml", "jsonpath={.items}"}, []string{"jsonpath-file=x", "go-template-file=x", "custom-columns-file=x", ""}},
	{"download", []string{"x", "src/x.json", "-"}, []string{"a#1", "#1"}},
	{"s3", []string{"s3://bucket/a", "s3://"}, []string{"file://x", "x", "s3://a b"}},
	{"jmespath", []string{"Items[].Name"}, []string{"file://x", "fileb://x", "https://x"}},
	{"archive", []string{"x.tar", "a/b.tgz"}, []string{"host:x", "a:b/c"}},
	{"zip", []string{"x.zip"}, []string{"*.zip", "[a].zip", "a?"}},
	{"dd", []string{"bs=1", "count=2", "if=x", "of=y"}, []string{"x", "y=1", "-x"}},
	{"lines", []string{"1,5:a.go", ":f:a.go"}, []string{"x", "1,5:"}},
	{"argument", []string{"src/a.test.ts", "a b", "--fix", "--watch=false", "--grep=x", "-t", "@scope/a", "12"}, []string{"--config", "-r", "--require=x", "X=y", "$(x)", "`x`", "a;b", "a|b", "--grep=$x", "a'b", "a\"b", "a\nb", "", "-", "--", "-t=x", "--fix=x;y", "{a,b}", "*", "~/x", "a&b", "a>b", "!x"}},
	{"location", []string{"tests", "tests/a.py::T::t", "tests/a.py::t[a/../b*]", "spec/a.rb:12", "spec/a.rb:12:34", "spec/a.rb[1:2,1:3]", "a/../b"}, []string{"tests/*.py", "-x", "a{b,c}", "a?", "x:y", "a[b]", "host:path"}},
	{"sources", []string{".", "src", "src/**/*.ts", "src/**/*.{ts,tsx}", "*.js", "a/*.b"}, []string{"{/etc/x,src}", "src/{a,/etc}/x", "src/*/../../x", "src/{..,a}/x", "@(a|b)", "!src", "[a-z].js", "{~,a}", "src/*\\x"}},
	{"expression", []string{"a and not b", "(a or b) and not (c)", "not slow", "test_x[a-b]"}, []string{"a()", "__import__('os')", "exec(input())", "a.b(c)", "x\"y", "a;b", "a(b", "lambda: x\n"}},
	{"libtest", []string{"--nocapture", "--test-threads=1", "--skip", "a::b"}, []string{"--logfile", "--logfile=x", "-Z", "--format", "--no"}},
	{"lints", []string{"-D", "warnings", "-Dwarnings", "clippy::all", "-A", "--deny"}, []string{"-C", "linker=./x", "-Clinker=x", "--sysroot", "-o", "x.rs", "-D=x", "@x", "-", "-Z"}},
	{"testfilter", []string{"run", "src/a.test.ts"}, []string{"init", "complete"}},
	{"gradletask", []string{"test", ":core:test", "compileTestJava"}, []string{"", ":", "-x", "a b", "x=y", "::", "publish", ":core:publish", "bootRun", "test:publish", "pub", "Test"}},
	{"raketask", []string{"test", "db:migrate"}, []string{"", "release", "db:drop", "deploy", "test[x]", "X=y"}},
	{"recipe", []string{"test", "a:b", "build-all"}, []string{"a/b", "X=y", "../x", "-x", ""}},
}

func TestCheckersKnowWhatIsHarmless(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"yq": true, "moved": true, "zip-out": true, "archive-out": true} // from others here, or nothing but a path
	for _, name := range []string{"argument", "location", "sources", "expression", "libtest", "lints", "testfilter", "gradletask", "raketask", "recipe"} {
		seen[name] = true // build_test.go
	}
	for _, tt := range checkerTable {
		check := checkers[tt.checker]
		seen[tt.checker] = true
		for _, s := range tt.known {
			if c := check(s); c.why != "" {
				t.Errorf("%s %q is not known: %s", tt.checker, s, c.why)
			}
		}
		for _, s := range tt.no {
			if c := check(s); c.why == "" {
				t.Errorf("%s %q is known", tt.checker, s)
			}
		}
	}
	for name := range checkers {
		if !seen[name] {
			t.Errorf("the checker %s has no test", name)
		}
	}
}

// pieces of programs that confuse those who read them.
var (
	sedPieces = []string{
		"s/", "/", "a", "b", "e", "w", "PWNED", " PWNED", "e touch PWNED", "w PWNED", ";", "\n", "{", "}", "[", "]", "[^", "[]", "[[:alpha:]]", "[[.", ".]", "\\", "\\\n", "\\/", "y/", "i\\\n", "a ", "c\\", "1", "$", ",", "!", "p", "g",
		"#", ":a", "ba", "\\,", "|", "s|", "q", "l 1", "M", "I", "0~1", "+1", "~2", " ", "\t", "/x/", "s,", "&", "r PWNED", "=", "n", "N",
	}
	awkPieces = []string{
		"BEGIN", "END", "{", "}", "print", "printf", " ", "\n", ";", "\"", "/", "\\", "\\\"", "\\/", "(", ")", "[", "]", "a", "$1", "1", ">", "\"PWNED\"", "system(\"touch PWNED\")", "| \"touch PWNED\"", "> \"PWNED\"", "#", "++", "--", "=", "/=", "~", "!", ",",
		"if", "else", "while", "in", "length", "NR", "getline", "&&", "||", "?", ":", "+", "-", "return", "next", "/a/", "[/]", "/[/]/", "\"/\"", "/\"/", "split(", "x[1]", "+=", "%", "do",
	}
)

// compose makes a text of random pieces.
func compose(rng *rand.Rand, pieces []string) string {
	var b strings.Builder
	for range 1 + rng.IntN(14) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

// What the checkers know does nothing when the real programs run it: no sed and no
// awk makes the file that the pieces try to make. make attack tries thousands; this
// test, a sample.
func TestRealProgramsDoNothingElse(t *testing.T) {
	t.Parallel()
	n := 400
	if os.Getenv("DECKHAND_TEST_ATTACK") != "" {
		n = 5_000
	}
	for _, tt := range []struct {
		name     string
		check    checker
		pieces   []string
		programs [][]string
	}{
		{"sed", checkSed, sedPieces, [][]string{{"sed"}, {"sed", "-E"}, {"sed", "--posix"}, {"busybox", "sed"}}},
		{"awk", checkAwk, awkPieces, [][]string{{"gawk"}, {"mawk"}, {"original-awk"}, {"busybox", "awk"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, ran := t.TempDir(), 0
			run := func(text string) {
				for _, p := range tt.programs {
					path, err := exec.LookPath(p[0])
					if err != nil {
						continue
					}
					ran++
					ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit/10)
					c := exec.CommandContext(ctx, path, append(p[1:len(p):len(p)], text)...) //nolint:gosec // that is the test
					c.Dir, c.Stdin = dir, strings.NewReader("abc\ndef\n")
					_ = c.Run() // most are no programs at all
					cancel()
					if _, err := os.Lstat(filepath.Join(dir, "PWNED")); err == nil {
						t.Fatalf("%s %q writes or runs something", strings.Join(p, " "), text)
					}
				}
			}
			for _, row := range checkerTable {
				if row.checker == tt.name {
					for _, text := range sampled(row.known, 4) {
						run(text)
					}
				}
			}
			rng, tried := rand.New(rand.NewPCG(10, 2)), 0 //nolint:gosec // the same each time
			for range n {
				text := compose(rng, tt.pieces)
				if loops(text) || tt.check(text).why != "" {
					continue
				}
				tried++
				run(text)
			}
			t.Logf("%d of %d texts are known, %d runs", tried, n, ran)
		})
	}
}

// loops reports whether a text may run for ever, which proves nothing.
func loops(text string) bool {
	return strings.Contains(text, "while") || strings.Contains(text, "do") || strings.Contains(text, "ba") || strings.Contains(text, "D")
}

// Whatever a checker knows, it has read to the end as the program does: what comes
// after it is seen.
func FuzzCheckers(f *testing.F) {
	for _, row := range checkerTable {
		for _, text := range append(row.known, row.no...) {
			f.Add(text)
		}
	}
	harm := map[string]string{"sed": "\nw x", "awk": "\nBEGIN{system(1)}", "jq": "\n|env", "printf": "%n", "pretty": "%GG", "write-out": "%output{x}", "kind": ",secret", "columns": ",environ"}
	f.Fuzz(func(t *testing.T, text string) {
		for name, check := range checkers {
			if check(text).why != "" || harm[name] == "" {
				continue
			}
			if more := text + harm[name]; check(more).why == "" && !unfinished(name, text) {
				t.Errorf("%s knows %q", name, more)
			}
		}
	})
}

// unfinished reports whether a text takes what follows for a part of its end: %
// before %n.
func unfinished(name, text string) bool {
	return (name == "printf" || name == "pretty" || name == "write-out") && strings.Contains(text, "%") || strings.Contains(text, "=")
}
