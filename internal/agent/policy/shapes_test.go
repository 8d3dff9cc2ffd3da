package policy

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deckhand/internal/waittest"
)

// What shapes take and do not, by their names: what could do harm, and what is asked though
// it does none, because seeing that takes a reader of the language.
var shapeTable = []struct {
	shape     string
	known, no []string
}{
	{
		"sed",
		[]string{
			"s/a/b/", "s/a/b/g", "s/a\\/b/c/2", "1p", "$p", "1,10p", "/x/d", "/x/,/y/p", "/x/,+3p", "5q", "=", "/a/=", "s/x/y/;s/a/b/", "1d;$d", "/^$/d", "s/\\(.*\\)/w \\1/", "s/e/w/", "p;p",
			"/a/!d",
		},
		[]string{
			"w x", "1w x", "r x", "R x", "W x", "e touch x", "1e touch x", "e", "s/a/b/e", "s/a/b/ge", "s/a/b/w x", "s/a/b/gw x", "s/a/b/pw x", "/x/w x", "$!{w x", "{w x\n}", "p;w x", "p\nw x",
			"s/a/b/;e touch x", "s/a/b/M;e x", "y/a/b/;w x", "a\\", "a foo\\", "i\\", "1,w x", "\\", "s", "s/", "s/a", "s/a/b", "saaba", "s a b ", "s\\a\\b\\", "s/[\\]/]/e", "v", "F", "}", "{",
			"{p", "p}", "k", "1,2,3p", "y/a/b", "s/a\nw x/b/", "s/a/b\nw x/", ": a b", "b a w", "\\xaxw y", "/a/wx", "1!w x", "# x\\\nw y", "q5w", "s/a/b/\rw x", "\x00w", "s|a|b|gp", "0~4p",
			"5q1", "$!N;P;D", "/a/{p;d}", "1!G;h;$!d", "s/[^/]*$//", "s/[[:space:]]*$//", ":a;N;$!ba;s/\\n/ /g", "y/abc/xyz/", "1i hello", "$a\\\nhello", "2c\\\nx", "# comment", "1~2d",
			"\\,a,d", "/x/I,/y/p", "s/(a|b)+/\\U&/gI", "s#a#b#", "n;d", "l 5", "", "s/a/x\\\ny/", "/a/ ! d", "s/[/b/e;x]/c/", "s/[]/]/e/", "s/[/b/w PWNED;x]/c/", "s/[/]/e touch PWNED;/",
		},
	},
	{
		"awk",
		[]string{
			"{print}", "{print $1}", "{print $1, $NF}", "NR==1", "NR>1", "/x/", "$3 > 5 {print $1}", "/\"/ {print}",
		},
		[]string{
			"{s+=$1} END {print s}", "END{print NR}", "{$1=\"\"; print $0}", "{print length}", "{printf \"%s\\n\", $2}", "!seen[$0]++", "{print substr($0, 1, 5)}", "{print toupper($1) \" \" tolower($2)}",
			"BEGIN{system(\"x\")}", "BEGIN{system (\"x\")}", "BEGIN{print > \"x\"}", "BEGIN{print >> \"x\"}", "BEGIN{print \"x\" | \"sh\"}", "BEGIN{\"x\" | getline}", "BEGIN{getline < \"x\"}",
			"{getline}", "{getline y}", "BEGIN{print ENVIRON[\"X\"]}", "BEGIN{for (k in ENVIRON) print k}", "BEGIN{ARGV[1]=\"/etc/passwd\"; ARGC=2}", "BEGIN{print PROCINFO[\"x\"]}",
			"BEGIN{SYMTAB[\"x\"]=1}", "@load \"x\"", "@include \"x\"", "BEGIN{@f()}", "function f() {}", "func f() {}", "{f(1)}", "BEGIN{print 1 |& \"x\"}", "BEGIN{printf \"x\" > \"y\"}",
			"BEGIN{print(1) > \"x\"}", "BEGIN{print 1,\n2 > \"x\"}", "BEGIN{awk::system(\"x\")}", "BEGIN{close(\"x\")}", "BEGIN{fflush()}", "BEGINFILE{}", "{if (x) /\"/ ; system(\"x\") #\"}",
			"/[/]\"/ ; \"x\"", "{x++ /\"/ ; y}", "/a", "\"a", "\"a\n\"", "{print \\\n> \"x\"}", "BEGIN {print 1 >= \"x\"}", "{length / 2}", "`x`", "{x'y}", "# x\\\n", "{nextfile}", "/[\\]/]/",
			"{print $1 ? a > b : c}", ")", "}) /\"/ ; \"", "NR % 2 == 0 {print}", "!/x/", "/a/,/b/", "BEGIN{FS=\":\"} {print $1}", "length > 80", "length($0) > 80",
			"{a[$1]++} END {for (k in a) print k, a[k]}", "{gsub(/a/, \"b\"); print}", "$1 ~ /^x/ && $2 !~ /y$/", "{print $1/2}", "{print (a+b)/2}",
			"{if ($1 == 3) print \"yes\"; else print \"no\"}", "END{print s/NR}", "BEGIN { while (i < 3) { i++; print i } }", "{ n = split($0, p, \",\"); print p[n] }", "# comment\n{print}",
			"1", "$NF", "/[0-9]+/", "{x = $1 ~ /a/ ? 1 : 2; print x}", "a || b", "{N = 1; print N}", "BEGIN{srand(); print rand()}", "",
		},
	},
	{
		"jq",
		[]string{
			".", ".a", ".a.b[0]", ".[]", ".[] | .name", "keys", "length", ".dependencies | keys[]", ".env", ".scripts.env",
			".items[].metadata.name",
		},
		[]string{
			"map(.x)", "select(.a == 1)", ".\"foo-bar\"", "test(\"^a\")", ".a | not", "group_by(.x) | map(length)", "tostring",
			"env", "env.HOME", "$ENV", "$ENV.PATH", "{env: env}", "[env]", "{x: $ENV}", "\"\\(env)\"", "\"\\(\"\\(env)\")\"", "import \"a\" as a; .", "include \"a\"; .", "a::b", "load(\"x\")",
			"eval(\"x\")", "def f: env; f", "def f(env): env; .", "input_filename", "modulemeta", "get_search_list", "$__prog_args", "strenv(X)", "envsubst", "@file", "\"", "\"\\(", "(", ")",
			"]", "{", "[(])", "\"\\(1\"", "# x", ".a | env", "{a, env: 1 | env}", "{x, load(\"y\")}", "{env, x} | env", "`x`", "\\", "debug_env", "load_str(\"x\")", "system(\"x\")", "builtins",
			"{(env): 1}", ".[env]", "getpath([\"a\"]) | env", ".a // \"x\"", "[.[] | select(.x > 2)]", "{a: .b, c}", "{name, version}", "to_entries[] | \"\\(.key)=\\(.value)\"", "@base64",
			".[] | @tsv", "if .a then 1 else 2 end", "reduce .[] as $x (0; . + $x)", ".. | numbers", ".a?", ".[\"x\"]", "map({key: .a, value: .b}) | from_entries", "{env: .x}",
			"with_entries(.value += 1)", ". as {a: $x} | $x", "limit(3; .[])", "{(.a): 1}", "[1, 2.5, -3e4]", "del(.a)", "$x + 1", "input | .a", "{\"env\": 1}", "sort_by(.a) | reverse | first",
			"paths(scalars)", "\"a \\(\"b \\(.c)\") d\"", "", "splits(\"a\")",
		},
	},
	{"printf", []string{"%s\\n", "%-10s|%5.2f", "100%%", "x"}, []string{"%n", "%5n", "%ln", "x%n", "%%%n", "%(x", "%hhn", "%*.*n", "%S", "%v", "%b", "%q", "%(%F)T", "%*d", "%"}},
	{"clock", []string{"+%s", "+%F %T"}, []string{"0101", "112233", "%s", ""}},
	{"header", []string{"A: b"}, []string{"@file", "@", ""}},
	{
		"pretty",
		[]string{
			"%h %s", "oneline", "format:%H%n%an", "%C(red)%h%Creset", "%(refname:short)", "%(if)%(upstream)%(then)x%(else)y%(end)", "%>(20)%s", "%+b",
		},
		[]string{
			"%G?", "%GS", "%h%GK", "%(signature)", "%(signature:key)", "%(x)", "%+GG", "%(*signature)", "%x09",
		},
	},
	{"refspec", []string{"main", "HEAD", "main:main", "feature/x", "HEAD:refs/heads/x", "v1.2"}, []string{"+main", ":main", "main:", "+a:b", "", "a:+b", "a b"}},
	{"glob", []string{"*.go", "!vendor/**"}, []string{".env", "*", ".*", "*.env", "**/.e*", "*.pem", "src/**/*.ts"}},
	{"key", []string{"user.name", "remote.origin.url", "branch.a/b.merge"}, []string{"edit", "unset", "set", ""}},
	{"kind", []string{"pods", "pod/x", "all"}, []string{"secret", "secrets", "secret/x", "pods,secrets", "configmap", "cm", "pod/x,secret/y", "", "secrets.v1", "deploy,svc", "pod/a,svc/b"}},
	{"expression", []string{"a and not b", "(a or b) and not (c)", "not slow", "test_x[a-b]"}, []string{"a()", "__import__('os')", "exec(input())", "a.b(c)", "x\"y", "a;b", "a(b", "lambda: x\n"}},
	{"libtest", []string{"--nocapture", "--test-threads=1", "a::b"}, []string{"--logfile", "--logfile=x", "-Z", "--format", "--no", "--skip"}},
	{"lints", []string{"-D", "warnings", "-Dwarnings", "clippy::all", "-A", "--deny"}, []string{"-C", "linker=./x", "-Clinker=x", "--sysroot", "-o", "x.rs", "-D=x", "@x", "-", "-Z"}},
	{"test-filter", []string{"run", "src/a.test.ts"}, []string{"init", "complete"}},
	{"gradle-task", []string{"test", ":core:test", "compileTestJava"}, []string{"", ":", "-x", "a b", "x=y", "::", "publish", ":core:publish", "bootRun", "test:publish", "pub", "Test"}},
	{"recipe", []string{"test", "a:b", "build-all"}, []string{"a/b", "X=y", "../x", "-x", ""}},
}

func TestShapesTakeWhatIsHarmless(t *testing.T) {
	t.Parallel()
	for _, tt := range shapeTable {
		of := shapes[tt.shape].of
		for _, s := range tt.known {
			if !of.MatchString(s) {
				t.Errorf("%s %q is not known", tt.shape, s)
			}
		}
		for _, s := range tt.no {
			if of.MatchString(s) {
				t.Errorf("%s %q is known", tt.shape, s)
			}
		}
	}
}

// What the shapes of programs take does nothing but print when the real programs run it: no
// sed and no awk makes a file or runs a command. make attack tries thousands; this test, a
// sample.
func TestRealProgramsDoNothingElse(t *testing.T) {
	t.Parallel()
	n := 100
	if os.Getenv("DECKHAND_TEST_ATTACK") != "" {
		n = 3_000
	}
	for name, programs := range map[string][][]string{
		"sed": {{"sed"}, {"sed", "-E"}, {"sed", "--posix"}, {"busybox", "sed"}},
		"awk": {{"gawk"}, {"mawk"}, {"original-awk"}, {"busybox", "awk"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, ran := t.TempDir(), 0
			texts := rapid.StringMatching(strings.ReplaceAll(shapes[name].of.String(), `\b`, ""))
			for i := range n {
				text := texts.Example(i)
				if !shapes[name].of.MatchString(text) || strings.Contains(text, "\x00") {
					continue
				}
				for _, p := range programs {
					if _, err := exec.LookPath(p[0]); err != nil {
						continue
					}
					ran++
					ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit/10)
					argv := limited(append(slices.Clip(p), text))
					c := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // that is the test
					c.Dir, c.Stdin = dir, strings.NewReader("abc\ndef\n")
					_ = c.Run() // some are no programs at all
					cancel()
					if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
						t.Fatalf("%s %q makes a file", strings.Join(p, " "), text)
					}
				}
			}
			t.Logf("%d runs", ran)
		})
	}
}
