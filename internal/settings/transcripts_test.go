package settings

import (
	"strings"
	"testing"
	"time"
)

func TestTranscripts(t *testing.T) {
	t.Parallel()
	const rest = "projects: {web: {dir: /srv/web}}\nchannels: {C0123: web}\nroles: {users: [U0123]}\n"
	f, err := readText("f", []byte(rest+"transcripts: {limit: 8MiB, keep_days: 30}\n"))
	if limit, keep := f.Transcripts(); err != nil || limit != 8<<20 || keep != 30*24*time.Hour {
		t.Errorf("%d bytes for %s, %v", limit, keep, err)
	}
	f, err = readText("f", []byte(rest))
	if limit, keep := f.Transcripts(); err != nil || limit != 0 || keep != 0 {
		t.Errorf("without a word: %d bytes for %s, %v", limit, keep, err)
	}
	for text, want := range map[string]string{
		"limit: none": "write one from 1 MiB to 1 GiB", "limit: 1KiB": "write one from 1 MiB to 1 GiB", "limit: 2GiB": "write one from 1 MiB to 1 GiB",
		"limit: much": `"much" is not a size`, "keep_days: -1": "write one from 1 to 36500", "keep_days: 1e9": "write",
	} {
		if _, err := readText("f", []byte(rest+"transcripts: {"+text+"}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
