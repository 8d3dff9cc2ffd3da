package claude

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// maxTranscript is the size of a transcript that is read, in bytes.
const maxTranscript = 1 << 30

// ReadCalls returns the calls of the model that a prompt has led to, the prompt's
// subagents' included, from the transcripts that the CLI keeps under its
// configuration folder. It is for a turn whose process is gone and whose result
// nobody read. What the CLI had not yet written is not there: the calls that were
// on their way, and those that it makes for itself, such as a compaction's. A
// session without a transcript, or a prompt that is not in it, has no calls.
func ReadCalls(configDir, sessionID, promptUUID string) ([]Call, error) {
	if !isUUID(sessionID) || promptUUID == "" {
		return nil, fmt.Errorf("read the transcript of %q: no such session or prompt", sessionID)
	}
	// The folder between is named for the working directory; a session's id is unique.
	found, err := filepath.Glob(filepath.Join(configDir, "projects", "*", sessionID+".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("look for the transcript of %s: %w", sessionID, err)
	}
	var calls []Call
	for _, path := range found {
		r := transcriptReader{prompt: promptUUID, calls: calls}
		if err := r.read(path); err != nil {
			return nil, err
		}
		if r.promptID != "" {
			agents, err := filepath.Glob(filepath.Join(filepath.Dir(path), sessionID, "subagents", "agent-*.jsonl"))
			if err != nil {
				return nil, fmt.Errorf("look for the subagents of %s: %w", sessionID, err)
			}
			for _, agent := range agents {
				if err := r.readSubagent(agent); err != nil {
					return nil, err
				}
			}
		}
		calls = r.calls
	}
	return calls, nil
}

// transcriptReader gathers the calls that belong to a prompt.
type transcriptReader struct {
	prompt   string
	promptID string // the CLI's own name for the prompt, by which its subagents know it
	calls    []Call
}

// transcriptEntry is what is read of a line of a transcript.
type transcriptEntry struct {
	Type     string `json:"type"`
	UUID     string `json:"uuid"`
	PromptID string `json:"promptId"`
	AgentID  string `json:"agentId"`
	Message  struct {
		ID    string     `json:"id"`
		Model string     `json:"model"`
		Usage TokenUsage `json:"usage"`
	} `json:"message"`
}

// read takes what follows the prompt. Nothing that follows the last prompt of a
// session belongs to another one, and a prompt that was written again begins anew.
func (r *transcriptReader) read(path string) error {
	within := false
	return eachEntry(path, func(e transcriptEntry) {
		switch {
		case e.Type == "user" && e.UUID == r.prompt:
			within, r.promptID = true, e.PromptID
		case within:
			r.add(e)
		}
	})
}

func (r *transcriptReader) readSubagent(path string) error {
	within := false
	return eachEntry(path, func(e transcriptEntry) {
		if e.Type == "user" && e.PromptID != "" {
			within = e.PromptID == r.promptID
		}
		if within {
			r.add(e)
		}
	})
}

// add takes an entry's call. A call has an entry for each of its content blocks,
// and the last one knows the whole usage.
func (r *transcriptReader) add(e transcriptEntry) {
	u := e.Message.Usage
	if e.Type != "assistant" || e.Message.ID == "" || u == (TokenUsage{}) { // without usage, the CLI's own words
		return
	}
	r.calls = MergeCalls(r.calls, []Call{{MessageID: e.Message.ID, Model: e.Message.Model, ParentToolUseID: e.AgentID, Usage: u, Done: true}})
}

// MergeCalls returns calls and those of more that are not among them, by the id of
// their message. Of a call that is in both, each count of tokens is the greater:
// counts only grow while a call goes on.
func MergeCalls(calls, more []Call) []Call {
	out := slices.Clone(calls)
	for _, c := range more {
		i := slices.IndexFunc(out, func(known Call) bool { return known.MessageID == c.MessageID })
		if i < 0 {
			out = append(out, c)
			continue
		}
		out[i].Usage = out[i].Usage.update(c.Usage)
		out[i].Done = out[i].Done || c.Done
	}
	return out
}

// eachEntry hands out the prompts and answers of a transcript. A line that a dying
// process has left unfinished is skipped.
func eachEntry(path string, f func(transcriptEntry)) error {
	// The agent's side may have put anything there: a pipe must not hold the bot.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a transcript: %w", err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxTranscript {
		return fmt.Errorf("read a transcript: %s is no file that a session writes", path)
	}
	lines := bufio.NewReaderSize(io.LimitReader(file, maxTranscript), 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		var e transcriptEntry
		// Most lines are neither, and some are long.
		if (bytes.Contains(line, []byte(`"assistant"`)) || bytes.Contains(line, []byte(`"user"`))) && unmarshal(line, &e) == nil {
			f(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a transcript: %w", err)
		}
	}
}
