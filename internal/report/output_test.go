package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
)

// shown are the answers that the golden files hold.
var shown = map[string]string{
	"users":    "last month by user",
	"models":   "this month by model for project web",
	"threads":  "last week by thread for <#C1>",
	"days":     "last 10 days by day",
	"quarter":  "Q3",
	"empty":    "last month for <@U999>",
	"contract": "this month by user for sonnet",
}

func answerFor(t *testing.T, name string) Answer {
	t.Helper()
	ledger := autumn(t)
	if name == "contract" {
		for i := range ledger {
			ledger[i].line.ContractMicroUSD = ledger[i].line.MicroUSD * 8 / 10
		}
	}
	return mustAsk(t, ledger, shown[name])
}

func TestGoldenOutputs(t *testing.T) {
	t.Parallel()
	for name := range shown {
		a := answerFor(t, name)
		for suffix, write := range map[string]func(io.Writer, Answer, Names) error{"txt": Table, "csv": CSV, "json": JSON} {
			var b bytes.Buffer
			if err := write(&b, a, directory{}); err != nil {
				t.Fatal(err)
			}
			golden(t, name+"."+suffix, b.Bytes())
		}
	}
}

func TestATableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for name := range shown {
		var b bytes.Buffer
		if err := Table(&b, answerFor(t, name), directory{}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := text.StringWidth(line); n > tableWidth || !utf8.ValidString(line) || strings.ContainsAny(line, "\x1b\r\u202e") || strings.TrimRight(line, " ") != line {
				t.Errorf("%s: %d columns: %q", name, n, line)
			}
		}
	}
}

func TestWidthsOfLetters(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"abc": 3, "山田": 4, "e\u0301": 1, "🚀": 2, "Борис": 5, "…": 1} {
		if got := text.StringWidth(s); got != want {
			t.Errorf("%q is %d wide, want %d", s, got, want)
		}
	}
	if got := fit("山田太郎", 5); got != "山田…" {
		t.Errorf("cut to %q", got)
	}
}

func TestCSVIsReadBackAndRunsNothing(t *testing.T) {
	t.Parallel()
	a := answerFor(t, "users")
	a.Lines[3].Key = "+1+cmd|' /C calc'!A0"
	var b bytes.Buffer
	if err := CSV(&b, a, directory{}); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != len(a.Lines)+1 {
		t.Fatalf("%d records for %d lines", len(records), len(a.Lines))
	}
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	sum := int64(0)
	for i, r := range records[1:] {
		for name, at := range column {
			if s := r[at]; name != "previous_micro_usd" && s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
				t.Errorf("%s is a formula: %q", name, s)
			}
		}
		n, err := strconv.ParseInt(r[column["micro_usd"]], 10, 64)
		if err != nil || n != a.Lines[i].MicroUSD || r[column["usd"]] != money.Exact(n) {
			t.Errorf("line %d is %s micro-USD, %s USD: %v", i, r[column["micro_usd"]], r[column["usd"]], err)
		}
		sum += n
	}
	if sum != a.Total.MicroUSD {
		t.Errorf("the column comes to %d, want %d", sum, a.Total.MicroUSD)
	}
}

// TestInert: nothing is a formula wherever a spreadsheet cuts, and text stays as it is.
func TestInert(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "web": "web", "a-b=c@d": "a-b=c@d", "a; b": "a; b", "1;2": "1;2",
		"=1+1": "'=1+1", "Sep=|": "'Sep=|", "\ufeffsep=|": "'\ufeffsep=|", "＠x": "'＠x", "\t=1": "'\t'=1", "\ufeff=1+1": "\ufeff'=1+1", " \u200b=1": " \u200b'=1",
		"x;=cmd|' /C calc'!A0": "x;'=cmd|' /C calc'!A0", "x; \"=1": "x; \"'=1", "x\ty\n-1": "x\ty\n'-1", "x;=1\r\n+2": "x;'=1\r\n'+2",
		"a\u202eb\u2069": "a⟨U+202E⟩b⟨U+2069⟩", "\u200fשלום": "\u200fשלום",
	} {
		if got := Inert(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestWithoutNamesThereAreIDs(t *testing.T) {
	t.Parallel()
	a := answerFor(t, "users")
	var b bytes.Buffer
	if err := Table(&b, a, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "U100 ") || strings.Contains(b.String(), "Ann") {
		t.Error(b.String())
	}
}

func TestJSONIsOneObjectWithWholeNumbers(t *testing.T) {
	t.Parallel()
	a := answerFor(t, "users")
	var b bytes.Buffer
	if err := JSON(&b, a, directory{}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Total struct {
			MicroUSD json.Number `json:"micro_usd"`
		} `json:"total"`
		Lines []map[string]any `json:"lines"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Total.MicroUSD.String() != strconv.FormatInt(a.Total.MicroUSD, 10) || len(got.Lines) != len(a.Lines) {
		t.Errorf("total %s, %d lines", got.Total.MicroUSD, len(got.Lines))
	}
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1_234_567: "−1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 1250: "1.3k", 45_678: "45.7k", 999_949: "999.9k", 999_950: "1M", 12_345_678: "12.35M", 3_000_000_000: "3B"} {
		if got := Tokens(n); got != want {
			t.Errorf("Tokens(%d) = %q, want %q", n, got, want)
		}
	}
	for percent, want := range map[float64]string{0: "±0%", 0.04: "±0%", 3.44: "+3.4%", -9.94: "−9.9%", 9.97: "+10%", 250: "+250%", 1900: "×20", -100: "−100%"} {
		if got := percentText(percent); got != want {
			t.Errorf("percentText(%g) = %s, want %s", percent, got, want)
		}
	}
}

// pixels are a chart's, row by row.
func pixels(t *testing.T, a Answer, dark bool) *image.RGBA {
	t.Helper()
	img, ok := paint(a, directory{}, dark).Image().(*image.RGBA)
	if !ok {
		t.Fatal("the chart is not an RGBA image")
	}
	return img
}

func TestPNGIsAnImageOfTheChart(t *testing.T) {
	t.Parallel()
	a := answerFor(t, "users")
	var b bytes.Buffer
	if err := PNG(&b, a, directory{}, true); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 300<<10 {
		t.Errorf("the image has %d bytes", b.Len())
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := img.Bounds(), pixels(t, a, true).Bounds(); got != want {
		t.Errorf("the image is %v, the chart %v", got, want)
	}
}

// palette counts the pixels of each colour.
func palette(pix []byte) map[color.Color]int {
	n := map[[4]byte]int{}
	for i := 0; i < len(pix); i += 4 {
		n[[4]byte(pix[i:i+4])]++
	}
	out := make(map[color.Color]int, len(n))
	for c, many := range n {
		out[color.NRGBA{R: c[0], G: c[1], B: c[2], A: c[3]}] = many
	}
	return out
}

func TestChartsAreDrawnLightAndDark(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"users", "quarter", "empty"} {
		for dark, colours := range map[bool]look{false: daylight, true: night} {
			t.Run(name+" dark="+strconv.FormatBool(dark), func(t *testing.T) {
				t.Parallel()
				a := answerFor(t, name)
				img := pixels(t, a, dark)
				seen := palette(img.Pix)
				size := img.Bounds().Size()
				if size.X != 2*chartWidth || size.Y != 2*chartHeight {
					t.Fatalf("the image is %v", size)
				}
				all := size.X * size.Y
				if ground := seen[colours.ground]; ground < all/3 {
					t.Errorf("only %d of %d pixels are ground", ground, all)
				}
				bars := seen[colours.bar]
				if a.Empty() != (bars == 0) || (!a.Empty() && bars < all/100) {
					t.Errorf("%d pixels are bars", bars)
				}
				if others := seen[colours.other]; name == "users" && others < 200 {
					t.Errorf("the bar of the others has %d pixels", others)
				}
				if pale := seen[colours.soft]; name == "quarter" && pale < 200 {
					t.Errorf("estimates have %d pixels", pale)
				}
			})
		}
	}
}

// A bar's length follows its value.
func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	t.Parallel()
	line := func(key string, micro int64) Line {
		return Line{CostLine: ledger.CostLine{Key: key, MicroUSD: micro, Entries: 1, Turns: 1}}
	}
	a := Answer{Question: mustParse(t, "last month by project", saturday(t)), By: ledger.ByProject}
	a.Lines = []Line{line("one", 80_000_000), line("two", 40_000_000)}
	a.Total = line("", 120_000_000)
	img := pixels(t, a, false)
	var rows []int // how long the bar is that a row of pixels crosses
	last := 0
	for y := range img.Bounds().Dy() {
		n := palette(img.Pix[y*img.Stride : (y+1)*img.Stride])[daylight.bar]
		if n > 0 && last == 0 {
			rows = append(rows, 0)
		}
		if n > 0 {
			rows[len(rows)-1] = max(rows[len(rows)-1], n)
		}
		last = n
	}
	if len(rows) != 2 || rows[0] < 600 || rows[1] < rows[0]/2-3 || rows[1] > rows[0]/2+3 {
		t.Errorf("the bars are %v pixels long", rows)
	}
}

func TestChartsOfOddAnswers(t *testing.T) {
	t.Parallel()
	q := mustParse(t, "last month", saturday(t))
	back := Line{CostLine: ledger.CostLine{Key: "x", MicroUSD: -5_000_000, Entries: 1}}
	series := newSeries(q.Period, "day", []ledger.CostLine{{Key: "2026-10-05", MicroUSD: -5_000_000}, {Key: "2026-10-06", MicroUSD: 1}})
	huge := newSeries(q.Period, "day", []ledger.CostLine{{Key: "2026-10-05", MicroUSD: 1 << 62}})
	for name, a := range map[string]Answer{
		"nothing at all":            {},
		"a correction only":         {Question: q, Total: back, Lines: []Line{back}, By: ledger.ByUser, Series: series},
		"corrections by group":      {Question: mustParse(t, "by user", saturday(t)), Total: back, Lines: []Line{back, back}, By: ledger.ByUser, Series: series},
		"more than there can be":    {Question: q, Total: Line{CostLine: ledger.CostLine{MicroUSD: 1 << 62, Entries: 1}}, Series: huge},
		"entries that cost nothing": {Question: q, Total: Line{CostLine: ledger.CostLine{Entries: 3}}, Series: newSeries(q.Period, "day", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pixels(t, a, true)
			for _, write := range []func(io.Writer, Answer, Names) error{Table, CSV, JSON} {
				if err := write(io.Discard, a, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAxesHaveRoundSteps(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]float64{10: 2.5, 7: 2, 100: 25, 0.0042: 0.002, 0: 1, 1: 0.25, 81: 25} {
		if got := niceStep(most, 4); got < want*0.999 || got > want*1.001 {
			t.Errorf("steps up to %g are %g, want %g", most, got, want)
		}
	}
	for _, c := range []struct {
		amount, step float64
		want         string
	}{{0, 0.5, "$0.00"}, {7.5, 2.5, "$7.50"}, {1000, 250, "$1,000.00"}, {0.004, 0.002, "$0.004"}, {-50, 25, "−$50.00"}} {
		if got := axisMoney(c.amount, c.step); got != c.want {
			t.Errorf("%g in steps of %g is %s, want %s", c.amount, c.step, got, c.want)
		}
	}
}

func TestTimesAreShort(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0: "0.0 s", 0.84: "0.8 s", 42: "42 s", 185: "3 min 5 s", 7440: "2 h 4 min", 200_000: "2 d 7 h"} {
		if got := shortTime(seconds); got != want {
			t.Errorf("%v s is %q, want %q", seconds, got, want)
		}
	}
}

func TestAnAnswerSaysWhatIsNotInItsAmounts(t *testing.T) {
	t.Parallel()
	a := mustAsk(t, autumn(t), "last month by project")
	a.Meter = ledger.MeterNotes{
		Since:    time.Date(2026, 10, 12, 9, 0, 0, 0, time.UTC),
		Unpriced: []ledger.UnpricedModel{{Model: "claude-next", Calls: 12, MicroUSD: 1_200_000}, {Model: "b"}, {Model: "c"}, {Model: "d"}},
		Cut:      ledger.CutCalls{Calls: 3, BoundMicroUSD: 400_000}, CutBy: map[string]ledger.CutCalls{"web": {Calls: 1, BoundMicroUSD: 100_000}},
	}
	want := []string{
		"Up to $0.40 more may have been billed for 3 calls that were cut; usually it is far less.",
		"No list price for claude-next: 12 calls count $1.20 by another model's. Run bot report reprice with a Deckhand that knows it.",
		"No list price for b: 0 calls count $0.00 by another model's. Run bot report reprice with a Deckhand that knows it.",
		"No list price for c: 0 calls count $0.00 by another model's. Run bot report reprice with a Deckhand that knows it.",
		"And 1 more model has no list price.",
		"Every call is metered since 12 October 2026; before, amounts are what Claude Code reported of each turn.",
	}
	notes := a.Notes()
	if diff := cmp.Diff(want, notes[len(notes)-len(want):]); diff != "" {
		t.Error(diff)
	}
	var file bytes.Buffer
	if err := CSV(&file, a, nil); err != nil || !strings.Contains(file.String(), "cut_calls,bound_micro_usd\r\n") || !strings.Contains(file.String(), ",1,100000\r\n") {
		t.Errorf("%v\n%s", err, file.String())
	}
	if rest := a.cut(a.Rest, true); rest != (ledger.CutCalls{Calls: 2, BoundMicroUSD: 300_000}) {
		t.Errorf("the others have %+v", rest)
	}
}
