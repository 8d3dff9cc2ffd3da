package report

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestQuestionsAreUnderstood(t *testing.T) {
	t.Parallel()
	o := saturday(t)
	for said, want := range map[string]string{
		"":                     "this month",
		"costs":                "this month",
		"Today.":               "today",
		"TODAY":                "today",
		"yesterday's costs":    "yesterday",
		"this week":            "this week",
		"the last week":        "last week",
		"previous month!":      "last month",
		"this year":            "this year",
		"ytd by month":         "this year by month",
		"last quarter":         "last quarter",
		"2026":                 "2026",
		"2026-10":              "2026-10",
		"2026/10/3":            "2026-10-03",
		"3.10.2026":            "2026-10-03",
		"October":              "2026-10",
		"in october":           "2026-10",
		"December":             "2025-12", // this year's has not begun
		"last October":         "2026-10",
		"last November":        "2025-11", // this one is still running
		"October 2024":         "2024-10",
		"3 October":            "2026-10-03",
		"3rd of October, 2025": "2025-10-03",
		"Oct 3rd":              "2026-10-03",
		"December 24":          "2025-12-24",
		"29 February":          "2024-02-29", // the latest there was
		"Q3":                   "2026-Q3",
		"2025-Q4":              "2025-Q4",
		"q4 2025":              "2025-Q4",
		"Saturday":             "2026-11-21",
		"last Saturday":        "2026-11-14",
		"Monday":               "2026-11-16",
		"last 7 days":          "last 7 days",
		"past seven days":      "last 7 days",
		"7 days":               "last 7 days",
		"last 1 day":           "last 1 day",
		"last 3 weeks":         "last 3 weeks",
		"last 12 months":       "last 12 months",
		"since 2026-10-01":     "since 2026-10-01",
		"since Monday":         "since 2026-11-16",
		"since last month":     "since 2026-10-01",
		"from October":         "since 2026-10-01",

		"from 2026-10-01 to 2026-10-15":     "from 2026-10-01 to 2026-10-15",
		"2026-10-01..2026-10-15":            "from 2026-10-01 to 2026-10-15",
		"2026-10-01–2026-10-15":             "from 2026-10-01 to 2026-10-15",
		"2026-10-01 - 2026-10-15":           "from 2026-10-01 to 2026-10-15",
		"between October and November":      "from 2026-10-01 to 2026-11-30",
		"from November to February":         "from 2026-11-01 to 2027-02-28", // which has begun
		"from December to February":         "from 2025-12-01 to 2026-02-28",
		"from Monday to Wednesday":          "from 2026-11-16 to 2026-11-18",
		"from Wednesday until Monday":       "from 2026-11-11 to 2026-11-16",
		"from 3 October to 5 November 2026": "from 2026-10-03 to 2026-11-05",
		"since 2026-10-01 until yesterday":  "from 2026-10-01 to 2026-11-20",

		// One end can be a day of the other's month.
		"between 1 and 5 november by person as csv": "from 2026-11-01 to 2026-11-05 by user with csv",
		"1-5 november":                            "from 2026-11-01 to 2026-11-05",
		"1–5 nov 2026":                            "from 2026-11-01 to 2026-11-05",
		"1–5 nov 2025":                            "from 2025-11-01 to 2025-11-05",
		"1..5 Nov":                                "from 2026-11-01 to 2026-11-05",
		"1 - 5 november":                          "from 2026-11-01 to 2026-11-05",
		"1.–5. November":                          "from 2026-11-01 to 2026-11-05",
		"1st-5th of November, 2026":               "from 2026-11-01 to 2026-11-05",
		"from 1 to 5 november":                    "from 2026-11-01 to 2026-11-05",
		"from the 1st to the 5th of November":     "from 2026-11-01 to 2026-11-05",
		"between the 1st and the 5th of November": "from 2026-11-01 to 2026-11-05",
		"between 1 november and 5 november":       "from 2026-11-01 to 2026-11-05",
		"november 1 to 5":                         "from 2026-11-01 to 2026-11-05",
		"November 1-5 for me":                     "from 2026-11-01 to 2026-11-05 for <@U0ANN>",
		"nov 1–5, 2025":                           "from 2025-11-01 to 2025-11-05",
		"between november 1st and 5th by project": "from 2026-11-01 to 2026-11-05 by project",
		"2026-11-01 to 5":                         "from 2026-11-01 to 2026-11-05",
		"since 1 november until 5":                "from 2026-11-01 to 2026-11-05",
		"20 to 25 november":                       "from 2026-11-20 to 2026-11-25", // so far
		"24 to 26 november":                       "from 2025-11-24 to 2025-11-26", // this year's has not begun
		"from 20 to 24 november 2026":             "from 2026-11-20 to 2026-11-24",
		"28 to 29 february 2024":                  "from 2024-02-28 to 2024-02-29",
		"Oct-Nov":                                 "from 2026-10-01 to 2026-11-30",
		"jan–mar 2025":                            "from 2025-01-01 to 2025-03-31",
		"Mon-Wed":                                 "from 2026-11-16 to 2026-11-18",
		"Q1-Q3":                                   "from 2026-01-01 to 2026-09-30",
		"2024-2025":                               "from 2024-01-01 to 2025-12-31",
		"3 oct–5 nov":                             "from 2026-10-03 to 2026-11-05",
		"from 19 November to 2 December":          "from 2026-11-19 to 2026-12-02",
		"from 3 October to 5 November 2024":       "from 2024-10-03 to 2024-11-05",
		"from 2026-11-20 until Monday":            "from 2026-11-20 to 2026-11-23",

		"by user":               "this month by user",
		"per users last month":  "last month by user",
		"last month per person": "last month by user",
		"grouped by project":    "this month by project",
		"Monthly, this year":    "this year by month",
		"by day":                "this month by day",

		"for <@U1|ann>":                      "this month for <@U1>",
		"<@U2>, <@U1> and <@U2>":             "this month for <@U1> for <@U2>",
		"for<@U1>":                           "this month for <@U1>",
		"user U0BOB":                         "this month for <@U0BOB>",
		"for U012AB3CD":                      "this month for <@U012AB3CD>",
		"in <#C1|general and all> last week": "last week for <#C1>",
		"for <#C1>":                          "this month for <#C1>",
		"channel C0GENERAL by user":          "this month by user for <#C0GENERAL>",
		"for me":                             "this month for <@U0ANN>",
		"show me my costs this week":         "this week for <@U0ANN>",
		"for this thread":                    "this month for this thread",
		"this thread by day":                 "this month by day for this thread",
		"for everyone":                       "this month for everyone",
		"for the whole team":                 "this month for everyone",

		"for project web":                        "this month for project web",
		"project WEB":                            "this month for project web",
		"web last month":                         "last month for project web",
		"projects web, api and shop-floor today": "today for project api for project shop-floor for project web",
		"project today":                          "this month for project today",
		`for project "shop-floor".`:              "this month for project shop-floor",
		"project web and last week":              "last week for project web",

		"for model opus":                         "this month for model claude-opus-4-5-20251101",
		"sonnet 4.5 by day":                      "this month by day for model claude-sonnet-4-5-20250929",
		"for sonnet":                             "this month for model claude-sonnet-4-20250514 for model claude-sonnet-4-5-20250929",
		"model claude-haiku-4-5, and opus":       "this month for model claude-haiku-4-5 for model claude-opus-4-5-20251101",
		"for Claude Opus 4.5 since yesterday":    "since 2026-11-20 for model claude-opus-4-5-20251101",
		"for 2026-10 for everyone as a CSV file": "2026-10 for everyone with csv",
		"by model, with the csv attached":        "this month by model with csv",
		"csv":                                    "this month with csv",

		"by user for <@U1|ann> in <#C1|general>, last month, for project web and api.": "last month by user for <@U1> for <#C1> for project api for project web",
	} {
		q, err := Parse(said, o)
		switch {
		case err != nil:
			t.Errorf("Parse(%q): %v", said, err)
		case q.String() != want:
			t.Errorf("Parse(%q) = %s, want %s", said, q, want)
		}
	}
}

// TestMisunderstandingsAreSaid, with what can be answered instead; "" is for a question that
// nothing is near to but this month's costs.
func TestMisunderstandingsAreSaid(t *testing.T) {
	t.Parallel()
	o := saturday(t)
	for said, want := range map[string]struct{ says, nearest string }{
		"lost month":                     {"I don't know “lost month”", "last month"},
		"last moth":                      {"I don't know “last moth”", "last month"},
		"octobre":                        {"octobre", "2026-10"},
		"yesterdya":                      {"yesterdya", "yesterday"},
		"by usr":                         {"I don't know “by usr”", "this month by user"},
		"by colour":                      {"I don't know “by colour”", "this month"},
		"by week":                        {"not by week", "this month"},
		"by user by model":               {"one thing at a time: by user or by model", "this month by user; this month by model"},
		"by user and model":              {"one thing at a time", "this month by user; this month by model"},
		"for bob":                        {"I don't know “bob” in a question about costs. For a person, write @", "this month"},
		"last month for project wbe":     {"There is no project “wbe”. There is web, api, shop-floor, today.", "last month for project web"},
		"project mars":                   {"There is no project “mars”", "this month"},
		"wbe":                            {"wbe", "this month for project web"},
		"model gpt":                      {"gpt", "this month"},
		"2026-13":                        {"There is no month 13.", "this month"},
		"2026-02-30":                     {"February has no day 30.", "this month"},
		"29 February 2026":               {"February 2026 has 28 days", "this month"},
		"Q5":                             {"There is no quarter 5", "this month"},
		"2027-01":                        {"has not begun", "this month"},
		"2026-11-22":                     {"has not begun", "this month"},
		"tomorrow":                       {"has not begun", "this month"},
		"next month by user":             {"has not begun", "this month by user"},
		"since tomorrow":                 {"has not begun", "this month"},
		"from 2026-10-15 to 2026-10-01":  {"write the earlier time first", "this month"},
		"from 1526 to 2026":              {"too long", "this month"},
		"1526":                           {"too long ago", "this month"},
		"last 0 days":                    {"“0 days” is no time at all", "this month"},
		"last -3 weeks":                  {"is no time at all", "this month"},
		"last 99999999999999999999 days": {"the most is 1825 days", "this month"},
		"last 6 years":                   {"the most is 5 years", "this month"},
		"all time by model":              {"5 years", "last 5 years by model"},
		"last 24 hours":                  {"whole days", "this month"},
		"today last month":               {"one period: today or last month", "today; last month"},
		"last summer":                    {"last summer", "this month"},
		"10/3/2026":                      {"can be two days", "this month"},
		"1 to 5":                         {"I don't know “1", "this month"},
		"5 to 1 november":                {"write the earlier time first", "this month"},
		"1 to 31 november":               {"November has no day 31.", "this month"},
		"november 0 to 5":                {"November has no day 0.", "this month"},
		"28 to 29 february":              {"February 2026 has 28 days", "this month"},
		"november 1 to 5 2028":           {"has not begun", "this month"},
		"'; DROP TABLE ledger; --":       {"I don't know “DROP TABLE ledger", "this month"},
		"for everyone for <@U1>":         {"two questions", ""},
		"this":                           {"Which costs do you mean?", "this month for this thread; this month"},
		"last week by user on the moon":  {"I don't know “moon”", "last week by user"},
		`"strange name"`:                 {"strange name", "this month"},
		strings.Repeat("by user ", 1000): {"too long", "this month"},
	} {
		_, err := Parse(said, o)
		var p *ParseError
		if !errors.As(err, &p) {
			t.Errorf("Parse(%q) gave %v, want a ParseError", said, err)
			continue
		}
		var nearest []string
		for _, q := range p.Nearest {
			nearest = append(nearest, q.String())
		}
		if got := strings.Join(nearest, "; "); !strings.Contains(p.Sentence, want.says) || got != want.nearest || !utf8.ValidString(p.Error()) {
			t.Errorf("Parse(%q) says %q, nearest %q; want %q, %q", said, p.Sentence, got, want.says, want.nearest)
		}
	}
}

func TestWithoutAnAskerOrAThread(t *testing.T) {
	t.Parallel()
	o := Context{Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	for _, text := range []string{"for me", "this thread"} {
		if q, err := Parse(text, o); err == nil {
			t.Errorf("Parse(%q) = %s", text, q)
		}
	}
	// Without lists, names are believed behind their nouns, and only there.
	q := mustParse(t, `project Billing, project "a ""b"" c" and model gpt-5 today`, o)
	if want := `today for project Billing for project "a ""b"" c" for model gpt-5`; q.String() != want {
		t.Errorf("got %s", q)
	}
	if q := mustParse(t, `project "jan-mar"`, o); q.String() != `this month for project jan-mar` {
		t.Errorf("a name that looks like a range: %s", q)
	}
	if q, err := Parse("invoicing", o); err == nil {
		t.Errorf("a bare name was believed: %s", q)
	}
}

// texts makes questions from pieces of the grammar and from noise.
func texts(t *rapid.T) string {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"today", "yesterday", "this week", "last week", "this month", "last month", "this quarter", "last quarter", "this year", "last year",
			"October", "last October", "3 October", "Monday", "last Friday", "2025", "2025-12", "2026-Q1", "last 7 days", "last 20 weeks",
			"last 60 months", "last 2 years", "since Monday", "since 2026-02-28", "from November to February", "from 2024-02-29 to 2026-11-21",
			"2026-10-01..2026-12-31", "from 2026-10 to 2026-11", "1-5 november", "between 20 and 30 november", "november 28 to 5", "from the 1st to 29 February",
			"mon–wed", "dec-feb", "1", "2024", "to 5",
		}),
		rapid.SampledFrom([]string{"by user", "per channels", "by project", "by model", "by thread", "daily", "by month"}),
		rapid.SampledFrom([]string{
			"for <@U1>", "<@U2|bob>", "for me", "for <#C9|x y>", "for everyone", "this thread", "project web", "for project api and web",
			"model opus", "for sonnet", "model claude-haiku-4-5", "with csv", "as csv",
		}),
		rapid.SampledFrom([]string{",", "and", "for", "the", "costs", "please", "?", "by", "from", "to", "last", "\"", "“x y”"}),
		rapid.StringN(0, 6, 12),
	)
	return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), " ")
}

func TestACanonicalQuestionParsesBack(t *testing.T) {
	t.Parallel()
	base := saturday(t)
	zones := []*time.Location{base.Location, time.UTC, zone(t, "America/Havana"), zone(t, "Asia/Kolkata"), zone(t, "Pacific/Apia")}
	rapid.Check(t, func(t *rapid.T) {
		o := base
		o.Location = rapid.SampledFrom(zones).Draw(t, "zone")
		o.Now = o.Now.Add(time.Duration(rapid.IntRange(0, 3*365*24).Draw(t, "hours later")) * time.Hour)
		if rapid.Bool().Draw(t, "no lists") {
			o.Projects, o.Models = nil, nil
		}
		checkQuestion(t, texts(t), o)
	})
}

// checkQuestion holds what is true of every text, understood or not.
func checkQuestion(t interface {
	Fatalf(format string, args ...any)
}, text string, o Context,
) {
	q, err := Parse(text, o)
	if err != nil {
		var p *ParseError
		if !errors.As(err, &p) || p.Sentence == "" || !utf8.ValidString(p.Sentence) || len(p.Sentence) > 2000 {
			t.Fatalf("Parse(%q) fails with %#v", text, err)
		}
		for _, q := range p.Nearest { // they are buttons
			if _, err := Parse(q.String(), o); err != nil {
				t.Fatalf("Parse(%q) offers %q: %v", text, q, err)
			}
		}
		return
	}
	again, err := Parse(q.String(), o)
	if err != nil {
		t.Fatalf("Parse(%q) = %q, which does not parse: %v", text, q, err)
	}
	if !reflect.DeepEqual(q, again) {
		t.Fatalf("Parse(%q) = %q, which parses as %q:\n%+v\n%+v", text, q, again, q, again)
	}
	p := q.Period
	tomorrow := startOfDay(civilDay(o.Now, o.location()).AddDate(0, 0, 1), o.location())
	if !p.From.Before(p.To) || p.To.After(tomorrow) || p.Name == "" || p.Days() < 1 || p.Days() > 5*366 {
		t.Fatalf("Parse(%q) has the period %+v", text, p)
	}
	if before := p.Previous(); !before.From.Before(before.To) || before.To.After(p.From) || before.Name == "" {
		t.Fatalf("Parse(%q) has the period %s and before it %s", text, p.Name, before.Name)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "last month by user", "from 2026-10-01 to 2026-10-15 for <@U1|x> in <#C1|y>", "since Monday per model with csv",
		"last 7 days for project \"a b\", api and model opus 4.5", "lost month", "2026-13", "30 February", "last 0 days", "2026-10..2026-11 for me",
		"from from to", "“", "for everyone <@U1>", "„a” ‘b’ «c»", "Q3 2026", "3rd of October, 2025",
	} {
		f.Add(text, int64(0), true)
	}
	base := saturday(f)
	f.Fuzz(func(t *testing.T, text string, hours int64, lists bool) {
		o := base
		o.Now = o.Now.Add(time.Duration(hours%(20*365*24)) * time.Hour)
		if !lists {
			o.Projects, o.Models = nil, nil
		}
		if o.Now.Year() < 2007 {
			return // five years back would be before the first year
		}
		checkQuestion(t, text, o)
	})
}
