package money

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAmountsForPeople(t *testing.T) {
	t.Parallel()
	want := map[int64]string{
		0: "$0.00", 1: "$0.000001", 49: "$0.00005", 99: "$0.0001", 4_200: "$0.004", 4_999: "$0.005", 5_000: "$0.01", 12_345: "$0.01", 14_999: "$0.01",
		15_000: "$0.02", 994_999: "$0.99", 995_000: "$1.00", 1_000_000: "$1.00", 12_345_678: "$12.35", 999_995_000: "$1,000.00", 1_234_567_890_000: "$1,234,567.89",
		-1: "−$0.000001", -4_999: "−$0.005", -5_000: "−$0.01", -12_345_678: "−$12.35", math.MaxInt64: "$9,223,372,036,854.78", math.MinInt64: "−$9,223,372,036,854.78",
	}
	got := map[int64]string{}
	for micro := range want {
		got[micro] = USD(micro)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("amounts (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		micro    int64
		decimals int
		want     string
	}{{1_500_000, 0, "$2"}, {-400_000, 0, "$0"}, {4_000, 3, "$0.004"}, {250_000_000, 2, "$250.00"}, {1, 6, "$0.000001"}} {
		if got := Fixed(tt.micro, tt.decimals); got != tt.want {
			t.Errorf("%d with %d decimals: %s, want %s", tt.micro, tt.decimals, got, tt.want)
		}
	}
}

// TestWhatIsSpentIsToldFromItsLimit: while something is left.
func TestWhatIsSpentIsToldFromItsLimit(t *testing.T) {
	t.Parallel()
	for spent, want := range map[int64]string{0: "$0.00", 2_000: "$0.002", 150_000: "$0.15", 294_900: "$0.29", 295_100: "$0.295", 299_999: "$0.299999", 300_000: "$0.30", 300_001: "$0.30", 310_000: "$0.31"} {
		if got := Spent(spent, 300_000); got != want {
			t.Errorf("%d: %s, want %s", spent, got, want)
		}
	}
}

func TestAmountsForMachines(t *testing.T) {
	t.Parallel()
	for micro, want := range map[int64]string{0: "0.000000", 1: "0.000001", -1: "-0.000001", 12_345_678: "12.345678", math.MinInt64: "-9223372036854.775808"} {
		if got := Exact(micro); got != want {
			t.Errorf("%d: %s, want %s", micro, got, want)
		}
	}
	if got := Dollars(-1_250_000); got != -1.25 {
		t.Errorf("-1.25 dollars are %v", got)
	}
}

func TestAmountsThatPeopleWrite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"50": 50_000_000, " $12.50 ": 12_500_000, "$ 1,000": 1_000_000_000, "0.000001": 1, "0": 0, "999999999.999999": 999_999_999_999_999} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "$", "-1", "1e3", ".5", "1.", "1.0000001", "1,00", "1,0000", ",100", "12.5.0", "½", "١٢", "1000000000", "1,000,000,000", "99999999999999999999", "1 000", "$$1", "1.2,3"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

var forPeople = regexp.MustCompile(`^−?\$(0|[1-9][0-9]{0,2}(,[0-9]{3})*)\.[0-9]{2,6}$`)

// value reads what is written, exactly.
func value(t *rapid.T, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(strings.NewReplacer("−", "-", "$", "", ",", "").Replace(text))
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}

// TestTheRule: what holds of every amount.
func TestTheRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		micro := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-20_000, 20_000), rapid.Int64Range(-2_000_000_000, 2_000_000_000)).Draw(t, "micro")
		text := USD(micro)
		exact, shown := big.NewRat(micro, 1_000_000), value(t, text)
		drawn, _ := shown.Float64()
		_, fraction, _ := strings.Cut(text, ".")
		half := new(big.Rat).Quo(big.NewRat(1, 2), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil)))
		off := new(big.Rat).Sub(shown, exact)
		off.Abs(off)
		switch {
		case !forPeople.MatchString(text):
			t.Fatalf("%d is written %q", micro, text)
		case (micro == 0) != (shown.Sign() == 0):
			t.Fatalf("%d is written %q", micro, text)
		case micro != 0 && shown.Sign() != exact.Sign():
			t.Fatalf("%d is written %q: another sign", micro, text)
		case off.Cmp(half) > 0:
			t.Fatalf("%d is written %q: further off than half of the last place", micro, text)
		case off.Cmp(half) == 0 && new(big.Rat).Abs(shown).Cmp(new(big.Rat).Abs(exact)) < 0:
			t.Fatalf("%d is written %q: a half goes away from zero", micro, text)
		case len(fraction) > 2 && rounded(micro, len(fraction)-1) != 0:
			t.Fatalf("%d is written %q: more decimals than it takes", micro, text)
		case micro != math.MinInt64 && strings.TrimPrefix(text, "−") != strings.TrimPrefix(USD(-micro), "−"):
			t.Fatalf("%d is written %q, and %d %q", micro, text, -micro, USD(-micro))
		case Shown(micro) != drawn:
			t.Fatalf("%d is written %q and drawn as %v", micro, text, Shown(micro))
		case value(t, Exact(micro)).Cmp(exact) != 0:
			t.Fatalf("%d is %s for machines", micro, Exact(micro))
		}
		if micro >= 0 && micro < 999_999_999_000_000 {
			if back, err := Parse(Exact(micro)); err != nil || back != micro {
				t.Fatalf("%d is read back as %d, %v", micro, back, err)
			}
			if _, err := Parse(text); err != nil {
				t.Fatalf("%q is not read: %v", text, err)
			}
		}
	})
}

// TestMoreIsNeverWrittenAsLess.
func TestMoreIsNeverWrittenAsLess(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.OneOf(rapid.Int64Range(-2_000_000, 2_000_000), rapid.Int64Range(-20_000, 20_000))
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if a > b {
			a, b = b, a
		}
		if value(t, USD(a)).Cmp(value(t, USD(b))) > 0 {
			t.Fatalf("%d is %s, and %d is %s", a, USD(a), b, USD(b))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"50", "$1,000.25", "0.000001", "-1", "9223372036854.775808"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		micro, err := Parse(s)
		if err != nil {
			return
		}
		if back, err := Parse(Exact(micro)); err != nil || back != micro || micro < 0 {
			t.Errorf("%q is %d, which is read back as %d, %v", s, micro, back, err)
		}
	})
}
