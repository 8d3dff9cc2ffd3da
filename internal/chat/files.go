package chat

import (
	"strconv"
	"strings"

	"deckhand/internal/attachment"
	"deckhand/internal/plaintext"
	"deckhand/internal/store/inbox"
)

// PromptFiles are the message's, as its prompt has them.
func (m *Message) PromptFiles() []inbox.PromptFile { return promptFiles(m.Files) }

func promptFiles(shared []SharedFile) (out []inbox.PromptFile) {
	for _, f := range shared {
		if f.ID != "" {
			out = append(out, inbox.PromptFile{ID: f.ID, Name: cleanName(f.Name)})
		}
	}
	return out
}

// cleanName is a file's name as it is written down.
func cleanName(name string) string { return attachment.Name(strings.ToValidUTF8(name, "")) }

// namesOf are files' names for people and for the model, each quoted.
func namesOf(files []SharedFile) string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strconv.Quote(cleanName(f.Name))
	}
	return strings.Join(names, ", ")
}

// calledBy is what a task is called that began with files and no words: as the first of them,
// and how many more there are.
func calledBy(files []SharedFile) string {
	if len(files) == 0 {
		return ""
	}
	first := cleanName(files[0].Name)
	switch more := len(files) - 1; more {
	case 0:
		return first
	case 1:
		return first + " and another file"
	default:
		return first + " and " + strconv.Itoa(more) + " more files"
	}
}

// ofBacklog are the files of what was said in a thread before: those of the person who asks
// are theirs to give. Of others the model is told their names.
func ofBacklog(r Post, asker string) (given []inbox.PromptFile, line string) {
	files := r.Files
	if len(files) == 0 {
		return nil, ""
	}
	if r.User == asker {
		return promptFiles(files), "[attached: " + namesOf(files) + "]"
	}
	return nil, "[attached, and not given to you since somebody else than the person who writes to you attached it: " + plaintext.OneLine(namesOf(files)) + "]"
}
