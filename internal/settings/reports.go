package settings

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for images without zone files

	"deckhand/internal/chat/costs"
	"deckhand/internal/report"
)

// reportsYAML configures cost reports and digests.
type reportsYAML struct {
	// TimeZone is asker, or empty for the team's.
	TimeZone string       `yaml:"time_zone"`
	Digests  []digestYAML `yaml:"digests"`
}

// digestYAML is a daily, weekly or monthly report.
type digestYAML struct {
	Every string `yaml:"every"`
	At    string `yaml:"at"`
	// To is a channel or a person.
	To string `yaml:"to"`
	// By and For are parts of a question: "user", "project web".
	By  string `yaml:"by"`
	For string `yaml:"for"`
	CSV bool   `yaml:"csv"`
}

const askersZone = "asker"

// zone is the team's time zone.
func (d document) zone() *time.Location {
	zone, err := LoadZone(d.TimeZone)
	if err != nil {
		panic(fmt.Sprintf("the time zone %q", d.TimeZone)) // already validated
	}
	return zone
}

// LoadZone is time.LoadLocation for IANA names. It refuses "Local", Go's own name, which depends on the machine.
func LoadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("unknown time zone %s", name)
	}
	return time.LoadLocation(name)
}

// digests converts the digests for slackui.
func (d document) digests() []costs.Digest {
	var out []costs.Digest
	for _, y := range d.Reports.Digests {
		hour, minute, _ := y.clock()
		out = append(out, costs.Digest{
			Every: costs.DigestPeriod(y.Every), Hour: hour, Minute: minute, To: y.To, Question: y.question(),
		})
	}
	return out
}

func (d digestYAML) question() string {
	var parts []string
	if d.By != "" {
		parts = append(parts, "by "+d.By)
	}
	if d.For != "" {
		parts = append(parts, "for "+d.For)
	}
	if d.CSV {
		parts = append(parts, "with csv")
	}
	return strings.Join(parts, " ")
}

// Teams are the teams that projects belong to, by project, without those of none.
func (f File) Teams() map[string]string { return f.document.teams() }

func (d document) teams() map[string]string {
	out := map[string]string{}
	for name, p := range d.Projects {
		if p.Team != "" {
			out[name] = p.Team
		}
	}
	return out
}

var clockTime = regexp.MustCompile(`^([01]?[0-9]|2[0-3]):([0-5][0-9])$`)

// clock is a digest's time of day; nine in the morning by default.
func (d digestYAML) clock() (hour, minute int, ok bool) {
	m := clockTime.FindStringSubmatch(cmp.Or(d.At, "09:00"))
	if m == nil {
		return 0, 0, false
	}
	hour, _ = strconv.Atoi(m[1]) // both are digits
	minute, _ = strconv.Atoi(m[2])
	return hour, minute, true
}

var personID = regexp.MustCompile(`^[UW][A-Z0-9]{2,}$`)

func (v *validation) reports(c document) {
	if _, err := LoadZone(c.TimeZone); err != nil {
		v.add("$.time_zone", "%q is not a time zone; write a name of the IANA's, such as Europe/Berlin, or UTC", c.TimeZone)
	}
	if z := c.Reports.TimeZone; z != "" && z != askersZone {
		v.add("$.reports.time_zone", "%q is not a choice here; write asker, or nothing for the team's time_zone", z)
	}
	seen := map[digestYAML]bool{}
	for i, d := range c.Reports.Digests {
		at := fmt.Sprintf("$.reports.digests[%d]", i)
		if seen[d] {
			v.add(at, "this digest is there twice, and would be sent once")
		}
		seen[d] = true
		v.digest(at, c, d)
	}
}

func (v *validation) digest(at string, c document, d digestYAML) {
	if !slices.Contains([]string{"day", "week", "month"}, d.Every) {
		v.add(at+".every", "%q is not how often a digest comes; write day, week or month", d.Every)
	}
	if _, _, ok := d.clock(); !ok {
		v.add(at+".at", "%q is not a time of day; write hours and minutes, such as \"09:00\"", d.At)
	}
	if !channelID.MatchString(d.To) && !personID.MatchString(d.To) {
		v.add(at+".to", "%q cannot be sent to; write a channel's id (C…) or a person's (U…)", d.To)
	}
	understood := report.Context{Now: time.Now(), Projects: sorted(c.Projects), Teams: c.teams()}
	_, err := report.Parse(d.question(), understood)
	if wrong, ok := errors.AsType[*report.ParseError](err); ok {
		v.add(at, "%s", wrong.Sentence) // a suggestion has a period, which a digest has not
	} else if _, err := report.Parse("2 years "+d.question(), understood); err != nil {
		v.add(at, "by and for say no period: a digest is of the %s that has ended", d.Every)
	}
}
