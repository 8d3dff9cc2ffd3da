package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"

	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
)

// A chart's size in points; its image has two pixels for each.
const (
	chartWidth  = 800
	chartHeight = 400
	chartDPI    = 144
	chartMargin = 24
	chartBars   = 12 // of a grouping
)

// look is the colours of a chart.
type look struct {
	ground, ink, faint, grid, bar, soft, other color.Color
}

var (
	daylight = look{
		ground: rgb(0xffffff), ink: rgb(0x1d1c1d), faint: rgb(0x696a6d), grid: rgb(0xe8e8ea),
		bar: rgb(0x3b6fe0), soft: rgb(0xb5caf7), other: rgb(0xb4b7bd),
	}
	night = look{
		ground: rgb(0x1a1d21), ink: rgb(0xe8e8ea), faint: rgb(0xa3a6ab), grid: rgb(0x32363c),
		bar: rgb(0x6b9bff), soft: rgb(0x33508c), other: rgb(0x646970),
	}
)

func rgb(hex uint32) color.Color {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

// chart is one that is being drawn.
type chart struct {
	look
	canvas draw.Canvas
	answer Answer
	names  Names
}

// PNG draws an answer as a chart of 1600 × 800 pixels, to be shown at half that size:
// bars over time, or a bar for each line when there is a grouping to show, see
// [Answer.OverTime]. It uses no fonts but its own.
func PNG(w io.Writer, a Answer, names Names, dark bool) error {
	if _, err := (vgimg.PngCanvas{Canvas: paint(a, names, dark)}).WriteTo(w); err != nil {
		return fmt.Errorf("write png: %w", err)
	}
	return nil
}

func paint(a Answer, names Names, dark bool) *vgimg.Canvas {
	c := chart{look: daylight, answer: a, names: names}
	if dark {
		c.look = night
	}
	picture := vgimg.NewWith(vgimg.UseWH(chartWidth, chartHeight), vgimg.UseDPI(chartDPI), vgimg.UseBackgroundColor(c.ground))
	c.canvas = draw.New(picture)
	c.head()
	switch {
	case a.Empty():
		c.text(c.style(14, false, c.faint, draw.XCenter), vg.Point{X: chartWidth / 2, Y: chartHeight / 2}, "Nothing was spent.")
	case a.OverTime():
		c.overTime()
	default:
		c.byGroup()
	}
	return picture
}

// OverTime reports whether a chart of the answer is best drawn over time: unless a
// grouping was asked for that has more than one line, or the period is too short.
func (a Answer) OverTime() bool {
	switch {
	case a.By == ledger.ByDay || a.By == ledger.ByMonth:
		return len(a.Series.Points) > 0
	case len(a.Lines) < 2:
		return len(a.Series.Points) > 0
	}
	return a.Question.By == ledger.ByNothing && len(a.Series.Points) > 2
}

// head writes what the chart is of.
func (c *chart) head() {
	const top = chartHeight - chartMargin
	title := c.answer.Title(c.names)
	big := c.style(18, true, c.ink, draw.XLeft)
	c.text(big, vg.Point{X: chartMargin, Y: top - 8}, c.cut(big, title, chartWidth-2*chartMargin))
	small := c.style(13, false, c.faint, draw.XLeft)
	line := c.cut(small, c.subtitle(), chartWidth-2*chartMargin-100)
	c.text(small, vg.Point{X: chartMargin, Y: top - 32}, line)
	if c.answer.Total.EstimatedMicroUSD > 0 && c.answer.OverTime() {
		at := vg.Point{X: chartMargin + small.Width(line) + 16, Y: top - 32}
		c.fillRounded(vg.Rectangle{Min: vg.Point{X: at.X, Y: at.Y - 5}, Max: vg.Point{X: at.X + 10, Y: at.Y + 5}}, 0, c.soft, false, false)
		c.text(small, vg.Point{X: at.X + 15, Y: at.Y}, "estimated")
	}
}

func (c *chart) subtitle() string {
	a := c.answer
	out := a.Total.Amount()
	if change := a.Total.ChangeText(); change != "" && a.Total.Before != 0 {
		out += " · " + change + " against " + a.Previous.Name
	}
	if a.Total.Turns > 0 {
		out += " · " + Plural(a.Total.Turns, "turn", "turns")
	}
	if !a.OverTime() && !a.Empty() {
		out += " · by " + string(a.By)
	}
	return out
}

func (c *chart) style(size vg.Length, bold bool, ink color.Color, x draw.XAlignment) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = stdfont.WeightBold
	}
	return text.Style{Color: ink, Font: f, XAlign: x, YAlign: draw.YCenter, Handler: text.Plain{Fonts: font.DefaultCache}}
}

// text writes at a point, which is beside the middle of the letters: the font's own
// middle is that of the letters with what hangs below them.
func (c *chart) text(s text.Style, at vg.Point, txt string) {
	at.Y += s.Font.Size * 0.09
	c.canvas.FillText(s, at, drawable(s, txt))
}

// cut shortens a text to a width, with an ellipsis.
func (c *chart) cut(s text.Style, txt string, width vg.Length) string {
	txt = drawable(s, txt)
	if s.Width(txt) <= width {
		return txt
	}
	runes := []rune(txt)
	for len(runes) > 0 && s.Width(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ,·") + "…"
}

// drawable leaves out what the font has no picture of, such as emoji.
func drawable(s text.Style, txt string) string {
	face := font.DefaultCache.Lookup(s.Font, s.Font.Size)
	var buf sfnt.Buffer
	out := strings.Map(func(r rune) rune {
		if i, err := face.Face.GlyphIndex(&buf, r); err != nil || i == 0 {
			return -1
		}
		return r
	}, txt)
	return strings.Join(strings.Fields(out), " ")
}

// drawableName is a name, or the id where the font cannot write it.
func drawableName(s text.Style, name, id string) string {
	shown := drawable(s, name)
	if len([]rune(shown))*2 < len([]rune(name)) && id != "" {
		return id
	}
	return shown
}

// niceStep is a round step of which about n reach from 0 to most.
func niceStep(most float64, n int) float64 {
	if most <= 0 || math.IsInf(most, 0) {
		return 1
	}
	raw := most / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range []float64{1, 2, 2.5, 5} {
		if f*power >= raw*0.999 {
			return f * power
		}
	}
	return 10 * power
}

// axisMoney writes an amount at an axis: as amounts are written, with as many decimals
// more as the steps need.
func axisMoney(amount, step float64) string {
	decimals := 0
	for d := step; decimals < 6 && math.Abs(d-math.Round(d)) > 1e-9*math.Max(1, math.Abs(d)); decimals++ {
		d *= 10
	}
	return money.Fixed(int64(math.Round(amount*1e6)), max(2, decimals))
}
