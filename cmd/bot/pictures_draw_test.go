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
)

// side lays pictures side by side, with a gap between them.
func side(list ...image.Image) image.Image {
	const gap = 12
	width, height := gap*(len(list)-1), 0
	for _, p := range list {
		width += p.Bounds().Dx()
		height = max(height, p.Bounds().Dy())
	}
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(out, out.Bounds(), image.NewUniform(color.RGBA{0xb9, 0xc1, 0xbe, 0xff}), image.Point{}, draw.Src)
	x := 0
	for _, p := range list {
		draw.Draw(out, image.Rect(x, 0, x+p.Bounds().Dx(), p.Bounds().Dy()), p, p.Bounds().Min, draw.Src)
		x += p.Bounds().Dx() + gap
	}
	return out
}

// writePicture writes a picture of a page, which has few colours, with the 256 that are most
// frequent: a quarter of the size, and nobody sees it.
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
	for _, c := range all[:min(len(all), 256)] {
		palette = append(palette, c)
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
