package attachment

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is a file's kind.
type Kind string

// The kinds of files.
const (
	Picture Kind = "picture" // one that can be re-encoded: PNG, JPEG, GIF, WebP
	PDF     Kind = "PDF"
	Text    Kind = "text"
	// Other is unknown, or useless to a model: archives, office documents, databases.
	Other Kind = "other"
	// foreignPicture cannot be re-encoded, so it would keep its location; recording is film or sound.
	foreignPicture Kind = "foreign picture"
	recording      Kind = "recording"
)

// magic are file signatures; a dot stands for any byte.
var magic = []struct {
	begins string
	kind   Kind
	format string
}{
	{"\x89PNG\r\n\x1a\n", Picture, "png"},
	{"\xff\xd8\xff", Picture, "jpeg"},
	{"GIF87a", Picture, "gif"},
	{"GIF89a", Picture, "gif"},
	{"RIFF....WEBP", Picture, "webp"},
	{"%PDF-", PDF, "PDF"},

	{"II*\x00", foreignPicture, "TIFF"}, // also many cameras' raw format
	{"MM\x00*", foreignPicture, "TIFF"},
	{"II+\x00", foreignPicture, "TIFF"},
	{"MM\x00+", foreignPicture, "TIFF"},
	{"BM....\x00\x00\x00\x00", foreignPicture, "BMP"},
	{"8BPS\x00", foreignPicture, "Photoshop"},
	{"\x00\x00\x00\x0cjP  ", foreignPicture, "JPEG 2000"},
	{"\xff\x4f\xff\x51", foreignPicture, "JPEG 2000"},
	{"\xff\x0a", foreignPicture, "JPEG XL"},
	{"\x00\x00\x00\x0cJXL ", foreignPicture, "JPEG XL"},

	{"RIFF....AVI ", recording, "AVI"},
	{"RIFF....WAVE", recording, "WAV"},
	{"\x1aE\xdf\xa3", recording, "Matroska or WebM"},
	{"OggS", recording, "Ogg"},
	{"ID3", recording, "MP3"},
	{"\xff\xfb", recording, "MP3"},
	{"\xff\xf3", recording, "MP3"},
	{"fLaC", recording, "FLAC"},
	{"\x00\x00\x01\xba", recording, "MPEG"},
	{"\x00\x00\x01\xb3", recording, "MPEG"},
}

// heifBrands are the brands of HEIC and AVIF; the same container also holds films.
var heifBrands = []string{"heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "avif", "avis"}

// kindOf detects a file's kind by content. format is png, jpeg, gif or webp for a [Picture], otherwise for people,
// or empty.
func kindOf(b []byte) (kind Kind, format string) {
	for _, m := range magic {
		if begins(b, m.begins) {
			return m.kind, m.format
		}
	}
	if begins(b, "....ftyp....") {
		brand := string(b[8:12])
		switch {
		case slices.Contains(heifBrands[:8], brand):
			return foreignPicture, "HEIC"
		case slices.Contains(heifBrands, brand):
			return foreignPicture, "AVIF"
		case brand == "crx ":
			return foreignPicture, "Canon raw"
		}
		return recording, "MP4 or QuickTime"
	}
	if _, ok := textOf(b); ok {
		return Text, ""
	}
	return Other, ""
}

func begins(b []byte, with string) bool {
	if len(b) < len(with) {
		return false
	}
	for i := range len(with) {
		if with[i] != '.' && b[i] != with[i] {
			return false
		}
	}
	return true
}

// textOf reads a file as text: UTF-8, or UTF-16 with a mark. Control characters that no editor writes make it
// binary.
func textOf(b []byte) (text string, ok bool) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		b = b[3:]
	case len(b)%2 == 0 && bytes.HasPrefix(b, []byte("\xff\xfe")):
		b = fromUTF16(b[2:], binary.LittleEndian)
	case len(b)%2 == 0 && bytes.HasPrefix(b, []byte("\xfe\xff")):
		b = fromUTF16(b[2:], binary.BigEndian)
	}
	if len(b) == 0 || !utf8.Valid(b) {
		return "", false
	}
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1b || c == 0x7f {
			return "", false
		}
	}
	return string(b), true
}

func fromUTF16(b []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}
