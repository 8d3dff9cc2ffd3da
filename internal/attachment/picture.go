package attachment

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

const (
	// maxPixels bounds a decoded picture: a progressive JPEG needs up to 16 bytes per pixel.
	maxPixels = 25_000_000
	// maxSide bounds a side of what the model is shown: beyond it a provider refuses conversations with many
	// pictures.
	maxSide = 2000
	// maxPicture bounds what the model is shown, in bytes, before base64.
	maxPicture = 3 << 20
)

var formats = map[string]struct {
	config func([]byte) (image.Config, error)
	decode func([]byte) (image.Image, error)
}{
	"png":  {from(png.DecodeConfig), from(png.Decode)},
	"jpeg": {from(jpeg.DecodeConfig), from(jpeg.Decode)},
	"gif":  {from(gif.DecodeConfig), from(gif.Decode)}, // its first frame
	"webp": {from(webp.DecodeConfig), from(webp.Decode)},
}

// from adapts a stream decoder to bytes.
func from[T any](read func(io.Reader) (T, error)) func([]byte) (T, error) {
	return func(b []byte) (T, error) { return read(bytes.NewReader(b)) }
}

// readPicture re-encodes a picture.
func (f *File) readPicture(b []byte, format string) error {
	img, err := decode(b, format)
	if err != nil {
		return err
	}
	f.Width, f.Height = img.Bounds().Dx(), img.Bounds().Dy()
	lossy := format == "jpeg"
	if format == "gif" {
		f.Note = "the first frame of a GIF"
	}
	media := ""
	if f.Content, media, err = encode(img, lossy); err != nil {
		return err
	}
	shown := f.Content
	if max(f.Width, f.Height) > maxSide || len(shown) > maxPicture {
		if shown, media, err = encode(shrink(img, maxSide), lossy); err != nil {
			return err
		}
	}
	if len(shown) > maxPicture {
		if shown, media, err = encode(shrink(img, maxSide), true); err != nil {
			return err
		}
	}
	f.Name = pictureName(f.Name, lossy)
	f.MediaType, f.Shown = media, base64.StdEncoding.EncodeToString(shown)
	return nil
}

// pictureName is a picture's name with its new extension.
func pictureName(name string, lossy bool) string {
	if lossy {
		return withExtension(name, ".jpg", ".jpeg")
	}
	return withExtension(name, ".png")
}

// Clean re-encodes a tool's picture for people: PNG or JPEG, with sides of at most maxSide. A picture that cannot
// be shown gives a [*Refusal].
func Clean(ctx context.Context, name string, b []byte) (cleanName string, content []byte, err error) {
	f, err := inHelper(ctx, order{Clean: true, Name: name, Content: b})
	return f.Name, f.Content, err
}

func clean(name string, b []byte) (File, error) {
	kind, format := kindOf(b)
	if kind != Picture {
		return File{}, Refuse("is no picture that can be shown")
	}
	img, err := decode(b, format)
	if err != nil {
		return File{}, err
	}
	lossy := format == "jpeg"
	content, _, err := encode(shrink(img, maxSide), lossy)
	return File{Name: pictureName(Name(name), lossy), Content: content}, err
}

// decode decodes a picture in its orientation. Its error is a [*Refusal].
func decode(b []byte, format string) (image.Image, error) {
	damaged := Refuse("is damaged or incomplete: it cannot be read as %s", format)
	c, err := formats[format].config(b)
	switch {
	case err != nil || c.Width <= 0 || c.Height <= 0:
		return nil, damaged
	case c.Height > maxPixels/c.Width:
		return nil, Refuse("has %d × %d pixels; the limit is %d megapixels", c.Width, c.Height, maxPixels/1_000_000)
	}
	img, err := formats[format].decode(b)
	if err != nil || img.Bounds().Dx() > c.Width || img.Bounds().Dy() > c.Height || img.Bounds().Empty() {
		return nil, damaged
	}
	if format == "jpeg" {
		img = upright(img, orientation(b))
	}
	return img, nil
}

func encode(img image.Image, lossy bool) (content []byte, mediaType string, err error) {
	var out bytes.Buffer
	if lossy {
		mediaType, err = "image/jpeg", jpeg.Encode(&out, onWhite(img), &jpeg.Options{Quality: 90})
	} else {
		mediaType, err = "image/png", (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img)
	}
	if err != nil {
		return nil, "", fmt.Errorf("encode a picture: %w", err)
	}
	return out.Bytes(), mediaType, nil
}

// onWhite removes transparency, which JPEG lacks.
func onWhite(img image.Image) image.Image {
	if o, ok := img.(interface{ Opaque() bool }); ok && o.Opaque() {
		return img
	}
	out := image.NewRGBA(img.Bounds())
	draw.Draw(out, out.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), img, img.Bounds().Min, draw.Over)
	return out
}

// shrink limits a picture's sides to most.
func shrink(img image.Image, most int) image.Image {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	if w <= most && h <= most {
		return img
	}
	size := image.Rect(0, 0, max(w*most/max(w, h), 1), max(h*most/max(w, h), 1))
	out := image.NewNRGBA(size)
	draw.ApproxBiLinear.Scale(out, size, img, img.Bounds(), draw.Src, nil)
	return out
}
