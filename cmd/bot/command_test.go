package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"deckhand/internal/doctor"
	"deckhand/internal/needtest"
)

// typed is what the program says to a command line, within this process.
func typed(args ...string) (out, errOut string, code int) {
	var o, e bytes.Buffer
	code = run(args, &o, &e)
	return o.String(), e.String(), code
}

// everyCommand calls f with each command's words.
func everyCommand(t *testing.T, f func(t *testing.T, c *cobra.Command, words []string)) {
	t.Helper()
	var walk func(c *cobra.Command, words []string)
	walk = func(c *cobra.Command, words []string) {
		t.Run(strings.Join(append([]string{"bot"}, words...), " "), func(t *testing.T) { f(t, c, words) })
		for _, below := range c.Commands() {
			walk(below, append(slices.Clip(words), below.Name()))
		}
	}
	walk(newRoot(), nil)
}

func TestEveryCommandHasItsOwnHelp(t *testing.T) {
	t.Parallel()
	everyCommand(t, func(t *testing.T, c *cobra.Command, words []string) {
		out, errOut, code := typed(append(words, "-h")...)
		for _, want := range []string{"Usage:\n  " + c.CommandPath(), "Examples:\n  ", "Exit code: 0 done"} {
			if code != 0 || errOut != "" || !strings.Contains(out, want) {
				t.Errorf("exit %d, no %q in\n%s%s", code, want, out, errOut)
			}
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || !strings.Contains(out, "--"+f.Name) {
				t.Errorf("--%s is not explained", f.Name)
			}
		})
		for line := range strings.Lines(out) {
			if n := len([]rune(line)); n > 140 {
				t.Errorf("a line of %d characters: %s", n, line)
			}
		}
		if by, _, code := typed(append([]string{"help"}, words...)...); code != 0 || by != out {
			t.Errorf("bot help says something else, exit %d:\n%s", code, by)
		}
	})
}

func TestWhatIsMistypedIsToldWithWhatWasMeant(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"demmo", `bot: there is no command "bot demmo"; did you mean bot demo? bot -h lists them`},
		{"banana", `bot: there is no command "bot banana"; bot -h lists them`},
		{"audit verfy", `bot: there is no command "bot audit verfy"; did you mean bot audit verify? bot audit -h lists them`},
		{"help migrat", `bot: there is no command "bot migrat"; did you mean bot migrate?`},
		{"help audit exprt", `did you mean bot audit export?`},
		{"report verfy", `bot: "verfy" is no question; did you mean bot report verify? see bot report -h`},
		{"migrate status --jsno", "bot: unknown flag: --jsno; did you mean --json? see bot migrate status -h"},
		{"report reprice --dry-run=maybe", `bot: --dry-run: "maybe" is not what it takes; write --dry-run alone, or with =true or =false; see bot report reprice -h`},
		{"report -format csv", "did you mean --format?"},
		{"demo --banana", "bot: unknown flag: --banana; see bot demo -h"},
		{"demo --pace -5 --data /dev/null/x", "bot: nobody speaks at -5 characters a second"},
		{"demo --only foo --data /dev/null/x", `bot: there is no part "foo" of the playground: write slack or model; see bot demo -h`},
		{"demo --listen x --data /dev/null/x", `bot: the address "x" is not host:port`},
		{"demo --pace fast", `--pace: "fast" is not what it takes; write a whole number;`},
		{"run away", `bot: bot run: the argument "away" is one too many, see bot run -h`},
		{"audit", "bot: write bot audit verify, anchors or export"},
		{"policy", "bot: write bot policy check or test"},
		{"migrate", "bot: write bot migrate up, down or status"},
		{"completion", "bot: write bot completion bash, zsh or fish"},
		{"completion fsh", "did you mean bot completion fish?"},
		{"policy check --input ls", "--input is about a call: name its tool with --tool"},
		{"audit export --format pdf", `"pdf" is no format; write jsonl or csv`},
		{"audit export --since soon", `--since: "soon" is no time`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Setenv("DATABASE_URL", "postgres://u@127.0.0.1:1/d")
			out, errOut, code := typed(strings.Fields(tt.args)...)
			if code != 2 || out != "" || !strings.Contains(errOut, tt.want) || strings.Contains(errOut, ": usage") || strings.Count(errOut, "\n") != 1 {
				t.Errorf("exit %d, want 2 and %q\n%s%s", code, tt.want, out, errOut)
			}
		})
	}
}

func TestTheVersion(t *testing.T) {
	t.Parallel()
	out, _, code := typed("version")
	if by, _, _ := typed("--version"); code != 0 || by != out || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d: %q, and %q by the flag", code, out, by)
	}
	var v map[string]string
	if out, _, _ := typed("version", "--json"); json.Unmarshal([]byte(out), &v) != nil || v["least_claude_code"] != doctor.LeastCLI || v["go"] == "" {
		t.Errorf("json: %s", out)
	}
}

func TestShellsComplete(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, errOut, code := typed("completion", shell)
		if code != 0 || errOut != "" || !strings.Contains(script, "bot") {
			t.Errorf("%s: exit %d %s", shell, code, errOut)
		}
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.CommandContext(t.Context(), path, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s does not read it: %v\n%s", shell, err, out)
			}
		}
	}
	for args, want := range map[string]string{
		"de": "demo", "audit ver": "verify", "report --format ": "png", "help mig": "migrate", "help audit ex": "export", "report re": "reconcile", "demo --only ": "slack",
	} {
		out, _, code := typed(append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d, no %q in %q", args, code, want, out)
		}
	}
}

// openTerminal is a terminal that nobody sits at.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		needtest.Missing(t, "no pseudo-terminals here: mount /dev/pts: "+err.Error())
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal
}

func TestColoursAreForTerminals(t *testing.T) {
	plain := marks{ok: "✓", warning: "!", failed: "✗", skipped: "–"}
	terminal := openTerminal(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if marksFor(terminal) == plain {
		t.Error("none on a terminal")
	}
	if marksFor(&bytes.Buffer{}) != plain {
		t.Error("some in a file")
	}
	t.Setenv("NO_COLOR", "1")
	if marksFor(terminal) != plain {
		t.Error("some with NO_COLOR")
	}
}

// What the documents tell people to type is a command line that there is.
func TestTheDocumentsCommandLinesExist(t *testing.T) {
	t.Parallel()
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	quoted := regexp.MustCompile(`'[^']*'`)
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)(?:^ *|`|bin/|exec bot |--rm bot |--build bot )bot ([a-z][^`#;|>\n]*)").FindAllStringSubmatch(string(b), -1) {
			words := strings.Fields(quoted.ReplaceAllString(strings.Trim(m[1], `…, \`), "x"))
			c, rest, err := root.Find(words)
			if err == nil && c.Name() != "report" && c.Name() != "reconcile" && !c.HasParent() {
				err = knownCommand(c, rest)
			}
			if err != nil {
				t.Errorf("%s: bot %s: %v", file, m[1], err)
				continue
			}
			for _, word := range rest {
				name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
				if strings.HasPrefix(word, "--") && name != "" && c.Flag(name) == nil {
					t.Errorf("%s: bot %s: there is no flag --%s", file, m[1], name)
				}
			}
		}
	}
}
