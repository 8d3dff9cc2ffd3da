package attachment

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
)

// Limits of what a model is shown directly. It can read larger files in the inbox.
const (
	// maxText bounds a text, in bytes; maxPages and maxPDF a PDF.
	maxText  = 64 << 10
	maxPages = 100
	maxPDF   = 4 << 20
	// maxShown bounds what is shown of one message's files, in bytes of base64: every call of the model sends the
	// whole conversation, and providers accept 32 MB.
	maxShown = 10 << 20
)

// Limits bound attachments. A zero field means its default.
type Limits struct {
	// Files is how many files of a message are accepted: 10. Negative is none.
	Files int
	// Bytes is the maximum size of each: 20 MiB.
	Bytes int64
}

// The defaults of [Limits].
const (
	DefaultFiles = 10
	DefaultBytes = 20 << 20
)

// WithDefaults fills in the defaults.
func (l Limits) WithDefaults() Limits {
	l.Files = cmp.Or(l.Files, DefaultFiles)
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	return l
}

// Sentence describes the limits for people.
func (l Limits) Sentence() string {
	if l = l.WithDefaults(); l.Files < 0 {
		return "Files that you attach are not read here."
	}
	return fmt.Sprintf("Attach up to %d files of %s: pictures (PNG, JPEG, GIF, WebP, up to %d megapixels), PDFs, text, anything else but films and sound.",
		l.Files, Size(l.Bytes), maxPixels/1_000_000)
}

// Size formats bytes for people.
func Size(n int64) string {
	switch {
	case n >= 1<<20:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/(1<<20)), ".0") + " MiB"
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Refusal is why a file is not accepted, for people. It continues after the file's name and a space: "is 23 MiB
// large; up to 20 MiB are taken".
type Refusal struct{ Why string }

func (r *Refusal) Error() string { return r.Why }

// Refuse returns a [Refusal].
func Refuse(format string, args ...any) *Refusal { return &Refusal{fmt.Sprintf(format, args...)} }

// File is an attached file after reading.
type File struct {
	Name    string // see [Name]
	Kind    Kind
	Content []byte // for the inbox
	// MediaType and Shown (base64) are for the model, of a [Picture] or a [PDF], and Text of a [Text]; empty if it
	// is too large, or of another kind.
	MediaType, Shown string
	Text             string
	// Width and Height are a picture's, in pixels.
	Width, Height int
	// Note is a remark for people and the model, or empty.
	Note string
}

// Read reads an attached file. One that is not accepted gives a [*Refusal].
func Read(ctx context.Context, name string, b []byte) (File, error) {
	if kind, _ := kindOf(b); kind == Picture || kind == PDF {
		return inHelper(ctx, order{Name: name, Content: b})
	}
	return read(name, b)
}

func read(name string, b []byte) (File, error) {
	f := File{Name: Name(name), Content: b}
	if len(b) == 0 {
		return File{}, Refuse("is empty")
	}
	var format string
	switch f.Kind, format = kindOf(b); f.Kind {
	case Picture:
		return f, f.readPicture(b, format)
	case foreignPicture:
		return File{}, Refuse("is %s, which isn't supported (its location can't be removed). Send PNG or JPEG", format)
	case recording:
		return File{}, Refuse("is a film or sound (%s), which the model can neither see nor hear. Attach pictures or text", format)
	case PDF:
		switch pages, why := readPDF(b); {
		case why != "":
			f.Note = why
		case len(b) > maxPDF:
			f.Note = "too large to be shown as a whole"
		case pages > maxPages:
			f.Note = fmt.Sprintf("too long to be shown as a whole: %d pages", pages)
		default:
			f.MediaType, f.Shown = "application/pdf", base64.StdEncoding.EncodeToString(b)
		}
	case Text:
		if text, _ := textOf(b); len(text) <= maxText {
			f.Text = text
		} else {
			f.Note = "too large to be shown as a whole"
		}
	}
	return f, nil
}

// Hide removes what the model is shown of the file if it would be too much. shown is the size for other files; it
// returns the sum.
func (f *File) Hide(shown int) int {
	if own := len(f.Shown) + len(f.Text); shown+own <= maxShown {
		return shown + own
	}
	f.Shown, f.Text, f.Note = "", "", "not shown, since the other files of the message are large"
	return shown
}

// Describe describes the file for the model.
func (f *File) Describe() string {
	what := cmp.Or(map[Kind]string{Picture: fmt.Sprintf("a picture of %d × %d pixels", f.Width, f.Height), PDF: "a PDF", Text: "a text"}[f.Kind], "a file")
	what += ", " + Size(int64(len(f.Content)))
	if f.Note != "" {
		what += ", " + f.Note
	}
	return what
}
