package main

import (
	"cmp"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"slices"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// The grounds of a sheet and its letters.
var (
	ground = color.RGBA{0xb9, 0xc1, 0xbe, 0xff}
	ink    = color.RGBA{0x1d, 0x26, 0x24, 0xff}
)

// side lays pictures side by side, with a gap between them, each below its caption.
func side(captions []string, list []image.Image) (image.Image, error) {
	const gap, head = 12, 36
	parsed, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 17, DPI: 72})
	if err != nil {
		return nil, err
	}
	width, height := gap*(len(list)-1), 0
	for _, p := range list {
		width += p.Bounds().Dx()
		height = max(height, p.Bounds().Dy())
	}
	out := image.NewRGBA(image.Rect(0, 0, width, head+height))
	draw.Draw(out, out.Bounds(), image.NewUniform(ground), image.Point{}, draw.Src)
	x := 0
	for i, p := range list {
		letters := font.Drawer{Dst: out, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(x+gap, head-12)}
		letters.DrawString(captions[i])
		draw.Draw(out, image.Rect(x, head, x+p.Bounds().Dx(), head+p.Bounds().Dy()), p, p.Bounds().Min, draw.Src)
		x += p.Bounds().Dx() + gap
	}
	return out, nil
}

// write keeps each look in a file of its own: NAME-light.png and so on.
func (l looks) write(name string) error {
	return errors.Join(writePicture(name+"-light.png", l.light), writePicture(name+"-dark.png", l.dark), writePicture(name+"-phone.png", l.phone))
}

// readLooks reads what write has kept.
func readLooks(name string) (l looks, err error) {
	for suffix, to := range map[string]*image.Image{"-light.png": &l.light, "-dark.png": &l.dark, "-phone.png": &l.phone} {
		f, err := os.Open(name + suffix)
		if err != nil {
			return looks{}, err
		}
		p, err := png.Decode(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return looks{}, err
		}
		*to = p
	}
	return l, nil
}

// beside draws what was kept as before beside this: a sheet in light, to.png, and one in dark
// and on a phone, to-dark-phone.png.
func (l looks) beside(before, to string) error {
	old, err := readLooks(before)
	if err != nil {
		return err
	}
	light, err1 := side([]string{"Before", "Now"}, []image.Image{old.light, l.light})
	rest, err2 := side([]string{"Before, dark", "Now, dark", "Before, phone", "Now, phone"}, []image.Image{old.dark, l.dark, old.phone, l.phone})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return errors.Join(writePicture(to+".png", light), writePicture(to+"-dark-phone.png", rest))
}

// same reports whether two pictures show the same.
func same(a, b image.Image) bool {
	at := b.Bounds()
	if a.Bounds() != at {
		return false
	}
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			if a.At(x, y) != b.At(x, y) {
				return false
			}
		}
	}
	return true
}

// apart is how far two colours are from each other, over all channels.
func apart(a, b color.RGBA) int {
	far := func(a, b uint8) int { return max(int(a), int(b)) - min(int(a), int(b)) }
	return far(a.R, b.R) + far(a.G, b.G) + far(a.B, b.B)
}

// writePicture writes a picture of a page, which has few colours, with the 256 that are most
// frequent and can be told apart: a quarter of the size, and nobody sees it.
func writePicture(file string, p image.Image) error {
	counted := map[color.RGBA]int{}
	b := p.Bounds()
	at := func(x, y int) color.RGBA {
		c, _ := color.RGBAModel.Convert(p.At(x, y)).(color.RGBA)
		return c
	}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counted[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(counted))
	for c := range counted {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		return cmp.Or(counted[b]-counted[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	palette := color.Palette{}
	for _, c := range all {
		if len(palette) == 256 {
			break
		}
		if len(palette) == 0 || apart(c, palette[palette.Index(c)].(color.RGBA)) > 9 {
			palette = append(palette, c)
		}
	}
	nearest := map[color.RGBA]uint8{}
	out := image.NewPaletted(b, palette)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := at(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c)) //nolint:gosec // below 256
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, out), f.Close())
}
