package policy

import (
	"regexp"
	"runtime"
	"strings"
)

// A here-document is read only in the two plain forms in which agents write messages and files: cat and git commit
// with <<'EOF', and "$(cat <<'EOF' …)". It is then judged as the quoted text that it stands for. Others are asked.

const doubtHere = "the text of the here-document is not plain: it needs an end in quotes, such as <<'EOF', and no other one beside it"

// hereWords are what stands before a here-document: nothing that opens a quote or goes on over it.
const hereWords = `[A-Za-z0-9_./:=@%+,> -]*`

var (
	hereInput = regexp.MustCompile(`(?s)^((?:` + hereWords + `(?:&&|;|\n) *)*(?:cat|git commit)(?: ` + hereWords + `)?)<< ?(['"]?)([A-Za-z_]+)(['"]?)((?: ` + hereWords + `)?(?:(?:&&|\|) ` + hereWords + `)?)\n(.*)$`)
	hereWord  = regexp.MustCompile(`(?s)^((?:` + hereWords + `|"` + hereWords + `"|&&|;|\||\n)*)"\$\(cat <<(['"])([A-Za-z_]+)(['"])\n(.*)$`)
	quoteText = strings.NewReplacer(`'`, `'\''`)
)

// withoutHere replaces a plain here-document by the text that it stands for.
func withoutHere(src string) string {
	if m := hereInput.FindStringSubmatch(src); m != nil && m[2] == m[4] {
		text, after, ok := hereText(m[6], m[3])
		if ok && !strings.Contains(after, "<<") && (m[2] != "" || !strings.ContainsAny(text, "$`\\")) {
			return m[1] + "<<<'" + quoteText.Replace(text) + "'" + m[5] + "\n" + after
		}
	}
	// Bash 3.2, as on macOS, finds the end of $(…) without reading here-documents.
	if m := hereWord.FindStringSubmatch(src); m != nil && m[2] == m[4] && runtime.GOOS != "darwin" {
		text, after, ok := hereText(m[5], m[3])
		if tail, closed := strings.CutPrefix(after, `)"`); ok && closed && !strings.Contains(tail, "<<") {
			return m[1] + "'" + quoteText.Replace(strings.TrimRight(text, "\n")) + "'" + tail
		}
	}
	return src
}

// hereText is the lines before the first that is the end, if no earlier one could be taken for it.
func hereText(lines, end string) (text, after string, ok bool) {
	for line := range strings.Lines(lines) {
		switch l := strings.TrimSuffix(line, "\n"); {
		case l == end:
			return text, lines[len(text)+len(line):], true
		case strings.HasPrefix(strings.TrimSpace(l), end): // in $(…), EOF) is an end to Bash
			return "", "", false
		}
		text += line
	}
	return "", "", false
}
