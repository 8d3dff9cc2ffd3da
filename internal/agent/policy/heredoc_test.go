package policy

import (
	"os/exec"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"deckhand/internal/needtest"
)

// herePieces are what texts of here-documents are made of: what could end them
// early, or run.
var herePieces = []string{"a", "it's", "\"", "'", "`", "(", ")", "$(", "$x", "${", "\\", "\n", "\n", "\nEOF", "\nEOF ", "\nEOF)", " EOF", "\n)", "\n)\"", "#", ";", "&", "|", "<", "<<", "<<EOF", "{", "}", "case x in", "esac", "\t", "é"}

// Where the text of a here-document is held to be known, it is what Bash reads.
func TestAHereDocumentIsWhatBashReads(t *testing.T) {
	t.Parallel()
	sh := needtest.Program(t, "bash")
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(rapid.SampledFrom(herePieces), 0, 12).Draw(t, "text"), "")
		end := rapid.SampledFrom([]string{"'EOF'", "EOF", "\"EOF\"", " 'EOF'", "'EOF' x", "E'OF'", "\\EOF"}).Draw(t, "end")
		src := "printf %s \"$(cat <<" + end + "\n" + body + "\nEOF\n)\""
		as := withoutHere(src)
		f, doubt := parseShell(as)
		if doubt != "" || len(f.Stmts) != 1 {
			return
		}
		call, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) != 3 {
			return
		}
		w := readWord(call.Args[2])
		if as == src || !w.known() {
			return
		}
		known++
		out, err := exec.CommandContext(t.Context(), sh, "--norc", "-c", src).Output()
		if err != nil || string(out) != w.text {
			t.Fatalf("%q says %q in bash (%v), and is held to say %q", src, out, err, w.text)
		}
	})
	t.Logf("%d known", known)
}
