// Package trust reads what a repository brings for agents: slash commands, subagents and skills,
// each a Markdown file. It is for texts alone, which somebody has agreed to. Nothing in them runs
// or gives a permission: they become part of a prompt, like what a person writes.
package trust

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// The kinds of what can be trusted, as deckhand.yaml names them.
const (
	Commands = "commands"
	Agents   = "agents"
	Skills   = "skills"
)

// Kinds are all of them.
var Kinds = []string{Commands, Agents, Skills}

// Folder is where a repository has a kind, below the folder that its sessions work in.
func Folder(kind, subdir string) string { return path.Join(subdir, ".claude", kind) }

// Sum identifies files by their paths and contents.
func Sum(files map[string]string) [sha256.Size]byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%d %d %s%s", len(name), len(files[name]), name, files[name])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Diff is what leads from some files to others, for people.
func Diff(from, to map[string]string) string {
	all := maps.Clone(to)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, from)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(udiff.Unified("trusted/"+name, "now/"+name, from[name], to[name]))
	}
	return b.String()
}

// Entry is a command, an agent or a skill.
type Entry struct {
	Name string
	Path string // of its file, from the top of the repository
	// Description says what it is for, and Hint what a command's arguments are.
	Description, Hint string
	// Tools and Model are what an agent is to work with; none is what the session has.
	Tools []string
	Model string
	// Body is the text without its front matter.
	Body string
}

// nameForm is that of every name; a command of a folder has the folder's name before it.
var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}(:[A-Za-z0-9_-]{1,64}){0,3}$`)

// Read returns what the files of a kind are, by name, and the paths of those that are nothing:
// their names are none, or taken. Of two with one name the one of the deeper folder counts, as it
// is nearer to the work.
func Read(kind string, files map[string]string) (entries []Entry, unusable []string) {
	at := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, rest, ok := strings.Cut("/"+name, "/.claude/"+kind+"/")
		e := parse(files[name])
		e.Path = name
		switch kind {
		case Commands:
			e.Name = strings.ReplaceAll(strings.TrimSuffix(rest, ".md"), "/", ":")
		case Agents:
			e.Name = cmp.Or(e.Name, strings.TrimSuffix(path.Base(rest), ".md"))
		case Skills:
			folder, file := path.Split(rest)
			if e.Name = strings.TrimSuffix(folder, "/"); file != "SKILL.md" {
				continue // what the skill's text refers to: it is read from the folder, as a file
			}
		}
		if !ok || !nameForm.MatchString(e.Name) || strings.TrimSpace(e.Body) == "" {
			unusable = append(unusable, name)
			continue
		}
		i, taken := at[e.Name]
		switch {
		case !taken:
			at[e.Name] = len(entries)
			entries = append(entries, e)
		case strings.Count(e.Path, "/") > strings.Count(entries[i].Path, "/"):
			unusable, entries[i] = append(unusable, entries[i].Path), e
		default:
			unusable = append(unusable, name)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, unusable
}

// parse takes a file's front matter apart. It is read line by line: what people write there is
// often no YAML, such as argument-hint: [issue] [priority]. Keys that nothing here needs, such as
// allowed-tools, are not believed.
func parse(text string) (e Entry) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	head, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---")
	if !strings.HasPrefix(text, "---\n") || !ok {
		e.Body, e.Description = text, firstLine(text)
		return e
	}
	_, e.Body, _ = strings.Cut(body, "\n")
	values, key := map[string]string{}, ""
	for line := range strings.SplitSeq(head, "\n") {
		k, v, ok := strings.Cut(line, ":")
		if ok && k != "" && k == strings.TrimSpace(k) {
			key, values[k] = k, strings.Trim(strings.TrimSpace(v), `"'|>`)
		} else if key != "" { // goes on
			values[key] = strings.TrimSpace(values[key] + " " + strings.TrimPrefix(strings.TrimSpace(line), "- "))
		}
	}
	e.Name, e.Description, e.Hint, e.Model = values["name"], values["description"], values["argument-hint"], values["model"]
	for name := range strings.FieldsFuncSeq(values["tools"], func(r rune) bool { return strings.ContainsRune(", []", r) }) {
		e.Tools = append(e.Tools, name)
	}
	e.Description = cmp.Or(e.Description, firstLine(e.Body))
	return e
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(strings.TrimLeft(first, "#"))
}

// argument is where a command has its arguments: all, or one by its number.
var argument = regexp.MustCompile(`\$(ARGUMENTS|[1-9])`)

// Expand is a command's or a skill's text with the arguments that a person gave it, as a prompt.
// The arguments are not looked through for placeholders.
func (e Entry) Expand(args string) string {
	words := strings.Fields(args)
	text := argument.ReplaceAllStringFunc(e.Body, func(is string) string {
		if is == "$ARGUMENTS" {
			return args
		}
		if n, _ := strconv.Atoi(is[1:]); n <= len(words) {
			return words[n-1]
		}
		return ""
	})
	if args != "" && !argument.MatchString(e.Body) {
		text = strings.TrimRight(text, "\n") + "\n\nARGUMENTS: " + args
	}
	return fmt.Sprintf("[The command /%s of this repository, from %s. Its commands after ! were not run, and its files after @ were not read: do that by your tools where it is needed. What it says of allowed tools does not hold.]\n%s", e.Name, e.Path, text)
}
