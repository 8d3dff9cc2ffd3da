package settings

import (
	"strings"
	"testing"

	"deckhand/internal/attachment"
)

func TestAttachments(t *testing.T) {
	t.Parallel()
	const rest = "projects: {web: {dir: /srv/web}}\nchannels: {C0123: web}\nroles: {users: [U0123]}\n"
	for text, want := range map[string]attachment.Limits{
		"": {Files: 10, Bytes: 20 << 20}, "attachments: {max_files: 0}": {Files: -1, Bytes: 20 << 20},
		"attachments: {max_files: 3, max_size: 1MiB}": {Files: 3, Bytes: 1 << 20},
	} {
		if f, err := readText("f", []byte(rest+text+"\n")); err != nil || f.Attachments() != want {
			t.Errorf("%s: %+v, %v", text, f.Attachments(), err)
		}
	}
	for text, want := range map[string]bool{"": false, "attachments: {tool_pictures: true}": false, "attachments: {tool_pictures: false}": true} {
		if f, err := readText("f", []byte(rest+text+"\n")); err != nil || f.HidesPictures() != want {
			t.Errorf("%s: %t, %v", text, f.HidesPictures(), err)
		}
	}
	for text, want := range map[string]string{
		"max_files: -1": "write one up to 20, or 0 for none", "max_files: 21": "write one up to 20", "max_size: none": "write one from 1 KiB to 100 MiB",
		"max_size: 2GiB": "write one from 1 KiB to 100 MiB", "max_size: big": `"big" is not a size`,
	} {
		if _, err := readText("f", []byte(rest+"attachments: {"+text+"}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
