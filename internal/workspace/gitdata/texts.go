package gitdata

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
)

const (
	textsMost = 200
	textBytes = 40 << 10
)

// Texts are the Markdown files of some folders as the base has them, by their paths. Links are not followed. left are
// the paths of links, of files that are longer than 40 KiB or no UTF-8, and of those beyond the first 200.
func (c Clone) Texts(ctx context.Context, folders ...string) (texts map[string]string, left []string, err error) {
	view, err := c.View()
	if err != nil {
		return nil, nil, err
	}
	defer view.Close() //nolint:errcheck // only read
	base, err := view.Commit(ctx, cmp.Or(c.Base, "HEAD"))
	if err != nil {
		return nil, nil, err
	}
	list, err := view.git(ctx, nil, nil, append([]string{"--literal-pathspecs", "ls-tree", "-r", "-z", "--long", base, "--"}, folders...)...)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	var wanted strings.Builder
	for line := range strings.SplitSeq(list, "\x00") {
		about, name, _ := strings.Cut(line, "\t")
		of := strings.Fields(about) // mode, type, hash, size
		if len(of) != 4 || !strings.HasSuffix(name, ".md") {
			continue
		}
		size, err := strconv.Atoi(of[3])
		if of[0] != "100644" && of[0] != "100755" || err != nil || size > textBytes || len(names) == textsMost {
			left = append(left, name)
			continue
		}
		names = append(names, name)
		wanted.WriteString(of[2] + "\n")
	}
	out, err := view.git(ctx, strings.NewReader(wanted.String()), nil, "cat-file", "--batch")
	if err != nil {
		return nil, nil, err
	}
	texts = map[string]string{}
	for _, name := range names {
		about, rest, _ := strings.Cut(out, "\n") // hash, type, size
		of := strings.Fields(about)
		size := -1
		if len(of) == 3 && of[1] == "blob" {
			size, _ = strconv.Atoi(of[2])
		}
		if size < 0 || size >= len(rest) {
			return nil, nil, fmt.Errorf("git: the content of %s is missing", name)
		}
		text := rest[:size]
		if out = rest[size+1:]; strings.ToValidUTF8(text, "") != text || strings.Contains(text, "\x00") { // which no database takes
			left = append(left, name)
			continue
		}
		texts[name] = text
	}
	return texts, left, nil
}
