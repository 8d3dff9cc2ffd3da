package model

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif" // pictures that people attach
	_ "image/jpeg"
	_ "image/png"
	"strings"
)

// media is what an image or a document is.
type media struct {
	Title  string `json:"title"`
	Source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

// attachedTo says what a message shows beside its words: what arrived, so that a person
// who tries the playground, and a test, can see that it did.
func attachedTo(m message) (out []string) {
	for _, b := range m.Content {
		if b.Type == "image" || b.Type == "document" {
			out = append(out, b.seen())
		}
	}
	return out
}

// seen describes an image or a document.
func (b *block) seen() string {
	var m media
	if json.Unmarshal(b.raw, &m) != nil {
		return "something that I cannot read"
	}
	title := m.Title
	if title != "" {
		title = "“" + title + "” "
	}
	if m.Source.Type == "text" {
		words, more := cutRunes(strings.Join(strings.Fields(m.Source.Data), " "), 60)
		if more != "" {
			words += "…"
		}
		return fmt.Sprintf("the text %s(%s)", title, words)
	}
	raw, err := base64.StdEncoding.DecodeString(m.Source.Data)
	if err != nil {
		return "a file " + title + "that is no base64"
	}
	if b.Type == "document" {
		return fmt.Sprintf("the document %s(%s, %d bytes)", title, m.Source.MediaType, len(raw))
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || "image/"+format != m.Source.MediaType {
		return "a picture that is not what it says (" + m.Source.MediaType + ")"
	}
	return fmt.Sprintf("a picture of %d × %d pixels (%s)", c.Width, c.Height, m.Source.MediaType)
}
