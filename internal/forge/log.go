package forge

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// logWindow is how much is read of the end of a log of which limit bytes are wanted: what
// comes after the failing step is cut off.
func logWindow(limit int) int { return max(4*limit, 512<<10) }

// download returns what a forge stores, perhaps elsewhere. Its error does not have the address, which may hold a
// signature.
func download(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if u, ok := errors.AsType[*url.Error](err); ok {
		return nil, u.Err
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it is in memory
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(response.Body)
}

var (
	escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -~]`)
	// stamps are what runners write before a line: GitHub its time, GitLab its stream too.
	stamps = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z (?:[0-9a-f]{2}[OE][ +])?`)
)

// logLine is one of a runner's, with its time if it has one.
type logLine struct {
	at   time.Time // in whole seconds
	text string    // as the runner wrote it
}

func logLines(log []byte) []logLine {
	var out []logLine
	var at time.Time
	for text := range strings.Lines(strings.TrimPrefix(string(log), "\ufeff")) {
		text = strings.TrimRight(text, "\r\n")
		if m := stamps.FindStringSubmatch(text); m != nil {
			at, _ = time.Parse("2006-01-02T15:04:05", m[1])
			text = text[len(m[0]):]
		}
		out = append(out, logLine{at, text})
	}
	return out
}

// logEnd returns the last whole lines that fit into limit bytes, without what only a terminal
// reads.
func logEnd(lines []logLine, limit int) string {
	size, first := 0, len(lines)
	plain := make([]string, len(lines))
	for i := len(lines) - 1; i >= 0; i-- {
		plain[i] = plainLine(lines[i].text)
		if size += len(plain[i]) + 1; size > limit {
			break
		}
		first = i
	}
	if n := len(lines); first == n && n > 0 && limit > 0 { // the last one alone is longer
		return strings.ToValidUTF8(plain[n-1][max(0, len(plain[n-1])-limit):], "")
	}
	return strings.TrimSpace(strings.Join(plain[first:], "\n"))
}

// plainLine is a line as it looks in the end: a terminal writes over what is before a
// carriage return.
func plainLine(text string) string {
	text = escapes.ReplaceAllString(text[strings.LastIndexByte(text, '\r')+1:], "")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
