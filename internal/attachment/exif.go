package attachment

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/draw"
)

// orientation is a JPEG's orientation by its Exif data, 1 to 8; 1 if it has none. Other Exif data is not read, and
// dropped.
func orientation(b []byte) int {
	for at := 2; at+4 <= len(b) && b[at] == 0xff; {
		marker, size := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
		if marker == 0xda || size < 2 || at+2+size > len(b) {
			return 1
		}
		if body, ok := bytes.CutPrefix(b[at+4:at+2+size], []byte("Exif\x00\x00")); marker == 0xe1 && ok {
			return orientationIn(body)
		}
		at += 2 + size
	}
	return 1
}

// orientationIn reads a TIFF's first directory.
func orientationIn(tiff []byte) int {
	const tag, short = 0x0112, 3
	var order binary.ByteOrder = binary.BigEndian
	if bytes.HasPrefix(tiff, []byte("II")) {
		order = binary.LittleEndian
	}
	if len(tiff) < 8 {
		return 1
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 1
	}
	entries := int64(order.Uint16(tiff[at:]))
	for i := range entries {
		e := at + 2 + 12*i
		if e+12 > int64(len(tiff)) {
			return 1
		}
		if order.Uint16(tiff[e:]) == tag && order.Uint16(tiff[e+2:]) == short {
			if v := int(order.Uint16(tiff[e+8:])); v >= 1 && v <= 8 {
				return v
			}
			return 1
		}
	}
	return 1
}

// upright applies an Exif orientation.
func upright(img image.Image, orientation int) image.Image {
	if orientation <= 1 || orientation > 8 {
		return img
	}
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	size := image.Rect(0, 0, w, h)
	if orientation >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	in, out := image.NewRGBA(image.Rect(0, 0, w, h)), image.NewRGBA(size)
	draw.Draw(in, in.Bounds(), img, b.Min, draw.Src)
	for y := range h {
		for x := range w {
			var to int
			switch orientation {
			case 2:
				to = out.PixOffset(w-1-x, y)
			case 3:
				to = out.PixOffset(w-1-x, h-1-y)
			case 4:
				to = out.PixOffset(x, h-1-y)
			case 5:
				to = out.PixOffset(y, x)
			case 6:
				to = out.PixOffset(h-1-y, x)
			case 7:
				to = out.PixOffset(h-1-y, w-1-x)
			case 8:
				to = out.PixOffset(y, w-1-x)
			}
			copy(out.Pix[to:to+4], in.Pix[in.PixOffset(x, y):])
		}
	}
	return out
}
