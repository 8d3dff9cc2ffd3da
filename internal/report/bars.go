package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"deckhand/internal/money"
)

// bar is one bar of a chart, in micro-USD.
type bar struct {
	value, pale int64 // pale is the part that is estimated
	label       string
	fill        color.Color
}

// panel is an empty plot without lines around it.
func (c *chart) panel() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Width = 0
		axis.Tick.LineStyle.Width = 0
		axis.Tick.Length = 0
		axis.Padding = 0
	}
	p.X.Tick.Label = c.style(11, false, c.faint, draw.XCenter)
	p.X.Tick.Label.YAlign = draw.YTop
	p.Y.Tick.Label = c.style(11, false, c.faint, draw.XRight)
	return p
}

// overTime draws a bar for each day, week or month.
func (c *chart) overTime() {
	points := c.answer.Series.Points
	upright := &uprights{chart: c, p: make([]bar, len(points))}
	most, least := 0.0, 0.0
	for i, pt := range points {
		upright.p[i] = bar{value: pt.MicroUSD, pale: pt.EstimatedMicroUSD, fill: c.bar}
		most, least = math.Max(most, money.Dollars(pt.MicroUSD)), math.Min(least, money.Dollars(pt.MicroUSD))
	}
	step := niceStep(most-least, 4)
	p := c.panel()
	p.Y.Min, p.Y.Max = math.Floor(least/step)*step, math.Max(math.Ceil(most/step), 1)*step
	p.X.Min, p.X.Max = -0.5, float64(len(points))-0.5

	var ticks []plot.Tick
	for v := p.Y.Min; v <= p.Y.Max+step/2; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: axisMoney(v, step)})
		upright.grid = append(upright.grid, v)
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Tick.Marker = plot.ConstantTicks(c.timeTicks(points))
	p.X.Padding = 5
	p.Add(upright)
	p.Draw(draw.Crop(c.canvas, chartMargin-4, -chartMargin, chartMargin-8, -(chartMargin + 66)))
}

// timeTicks labels as many points as there is room for, evenly and the last one
// first: that is the one people look for.
func (c *chart) timeTicks(points []Point) []plot.Tick {
	style := c.style(11, false, c.faint, draw.XCenter)
	widest := vg.Length(0)
	labels := make([]string, len(points))
	for i, pt := range points {
		labels[i] = pt.Label
		if c.answer.Series.Unit == "week" {
			labels[i] = pt.first.Format("2 Jan")
		}
		widest = max(widest, style.Width(labels[i]))
	}
	room := max(1, int((chartWidth-3*chartMargin-40)/(widest+14)))
	every := (len(points) + room - 1) / room
	var ticks []plot.Tick
	for i := len(points) - 1; i >= 0; i -= every {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: labels[i]})
	}
	return ticks
}

// uprights are bars that stand beside each other, over a grid.
type uprights struct {
	chart *chart
	p     []bar
	grid  []float64
}

// Plot implements [plot.Plotter].
func (u *uprights) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, v := range u.grid {
		ink := u.chart.grid
		if v == 0 {
			ink = u.chart.other
		}
		c.StrokeLine2(draw.LineStyle{Color: ink, Width: 0.75}, c.Min.X, y(v), c.Max.X, y(v))
	}
	slot := x(1) - x(0)
	wide := min(slot*0.72, 56)
	dearest := -1
	for i, b := range u.p {
		if b.value > 0 && (dearest < 0 || b.value > u.p[dearest].value) {
			dearest = i
		}
		left, zero, top := x(float64(i))-wide/2, y(0), y(money.Dollars(b.value))
		box := vg.Rectangle{Min: vg.Point{X: left, Y: min(zero, top)}, Max: vg.Point{X: left + wide, Y: max(zero, top)}}
		if b.value != 0 && box.Max.Y-box.Min.Y < 1 {
			box.Max.Y = box.Min.Y + 1
		}
		if b.value == 0 {
			continue
		}
		round := b.value > 0
		if b.pale > 0 && b.value > 0 {
			pale := box
			pale.Min.Y = pale.Max.Y - (pale.Max.Y-pale.Min.Y)*vg.Length(math.Min(1, float64(b.pale)/float64(b.value)))
			u.chart.fillRounded(pale, min(3, wide/4), u.chart.soft, true, false)
			box.Max.Y, round = pale.Min.Y, false
		}
		if box.Max.Y > box.Min.Y {
			u.chart.fillRounded(box, min(3, wide/4), b.fill, round, false)
		}
	}
	style := u.chart.style(11, true, u.chart.ink, draw.XCenter)
	for i, b := range u.p {
		label := money.USD(b.value)
		fits := style.Width(label)+6 <= slot
		if b.value == 0 || (i != dearest && !fits) || (i != dearest && len(u.p) > chartBars) {
			continue
		}
		half := style.Width(label) / 2
		at := vg.Point{X: min(max(x(float64(i)), c.Min.X+half), c.Max.X-half), Y: y(math.Max(0, money.Dollars(b.value))) + 8}
		u.chart.text(style, at, label)
	}
}

// byGroup draws a bar for each line, the dearest on top and the others last.
func (c *chart) byGroup() {
	lines, others, more := c.answer.Top(chartBars)
	if more > 0 {
		lines, others, more = c.answer.Top(chartBars - 1)
	}
	labels := c.answer.Labels(c.answer.By, lines, c.names)
	flat := &flats{
		chart: c, name: c.style(13, false, c.ink, draw.XRight),
		amount: c.style(12, true, c.ink, draw.XLeft), share: c.style(12, false, c.faint, draw.XLeft),
	}
	for i, l := range lines {
		label := c.cut(flat.name, drawableName(flat.name, labels[i], l.Key), 230)
		flat.p = append(flat.p, bar{value: l.MicroUSD, label: label, fill: c.bar})
	}
	if more > 0 {
		flat.p = append(flat.p, bar{value: others.MicroUSD, label: Plural(int64(more), "other", "others"), fill: c.other})
	}
	left, right := vg.Length(0), vg.Length(0)
	for _, b := range flat.p {
		flat.most = max(flat.most, b.value)
		left = max(left, flat.name.Width(b.label))
		right = max(right, flat.amount.Width(money.USD(b.value))+flat.share.Width("100.0%"))
	}
	p := c.panel()
	p.HideAxes()
	p.X.Min, p.X.Max = 0, 1
	p.Y.Min, p.Y.Max = -0.5, float64(len(flat.p))-0.5
	p.Add(flat)
	// A few bars are not much thicker than many, and stand at the top.
	const slot, head = 56, chartMargin + 56
	bottom := max(chartMargin, vg.Length(chartHeight-head-slot*len(flat.p)))
	p.Draw(draw.Crop(c.canvas, chartMargin+left+10, -(chartMargin + right + 22), bottom, -head))
}

// flats are bars that lie above each other, with their names and values beside them.
type flats struct {
	chart               *chart
	p                   []bar
	most                int64
	name, amount, share text.Style
}

// Plot implements [plot.Plotter].
func (f *flats) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	thick := min((y(1)-y(0))*0.66, 30)
	for i, b := range f.p {
		at := y(float64(len(f.p) - 1 - i))
		long := vg.Length(0)
		if f.most > 0 && b.value > 0 {
			long = max(1.5, (c.Max.X-c.Min.X)*vg.Length(float64(b.value)/float64(f.most)))
		}
		box := vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: at - thick/2}, Max: vg.Point{X: c.Min.X + long, Y: at + thick/2}}
		if long > 0 {
			f.chart.fillRounded(box, min(3, long/2), b.fill, false, true)
		}
		f.chart.text(f.name, vg.Point{X: c.Min.X - 10, Y: at}, b.label)
		right := box.Max.X + 8
		f.chart.text(f.amount, vg.Point{X: right, Y: at}, money.USD(b.value))
		if total := f.chart.answer.Total.MicroUSD; total > 0 {
			right += f.amount.Width(money.USD(b.value)) + 8
			f.chart.text(f.share, vg.Point{X: right, Y: at}, shareText(share(b.value, total)))
		}
	}
}

// fillRounded fills a box, round at its upper or its right corners.
func (c *chart) fillRounded(box vg.Rectangle, r vg.Length, fill color.Color, top, right bool) {
	r = max(0, min(r, (box.Max.Y-box.Min.Y)/2, (box.Max.X-box.Min.X)/2))
	nw, ne, se := vg.Length(0), vg.Length(0), vg.Length(0)
	if top {
		nw, ne = r, r
	}
	if right {
		ne, se = r, r
	}
	corner := func(x, y vg.Length) vg.Point { return vg.Point{X: x, Y: y} }
	var path vg.Path
	path.Move(box.Min)
	path.Line(corner(box.Min.X, box.Max.Y-nw))
	path.QuadTo(corner(box.Min.X, box.Max.Y), corner(box.Min.X+nw, box.Max.Y))
	path.Line(corner(box.Max.X-ne, box.Max.Y))
	path.QuadTo(box.Max, corner(box.Max.X, box.Max.Y-ne))
	path.Line(corner(box.Max.X, box.Min.Y+se))
	path.QuadTo(corner(box.Max.X, box.Min.Y), corner(box.Max.X-se, box.Min.Y))
	path.Close()
	c.canvas.SetColor(fill)
	c.canvas.Fill(path)
}
