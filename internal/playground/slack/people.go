package slack

import (
	"net/http"
	"regexp"
	"time"

	_ "time/tzdata" // people's zones, on machines that have none
)

// What people live by until somebody says otherwise.
const (
	defaultZone   = "Europe/Amsterdam"
	defaultLocale = "en-US"
)

// dnd is when a person's devices keep quiet.
type dnd struct {
	Until int64  `json:"until,omitempty"` // Unix seconds; paused until then
	From  string `json:"from,omitempty"`  // HH:MM in the person's zone, every day; "" = never
	To    string `json:"to,omitempty"`
}

// zone is where a person lives.
func (u *user) zone() *time.Location {
	name := u.TZ
	if name == "" {
		name = defaultZone
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return loc
}

func (u *user) locale() string {
	if u.Locale == "" {
		return defaultLocale
	}
	return u.Locale
}

// quietHours are those that contain t, or else the next ones. False where a person has none.
func (u *user) quietHours(t time.Time) (from, to time.Time, ok bool) {
	if u.DND.From == "" {
		return time.Time{}, time.Time{}, false
	}
	local := t.In(u.zone())
	at := func(day int, clock string) time.Time {
		hour, _ := time.Parse("15:04", clock) // checked when it was set
		return time.Date(local.Year(), local.Month(), local.Day()+day, hour.Hour(), hour.Minute(), 0, 0, local.Location())
	}
	for day := -1; ; day++ {
		from, to = at(day, u.DND.From), at(day, u.DND.To)
		if !to.After(from) {
			to = at(day+1, u.DND.To)
		}
		if to.After(t) {
			return from, to, true
		}
	}
}

// snoozed says whether a person has paused their notifications at t.
func (u *user) snoozed(t time.Time) bool { return t.Unix() < u.DND.Until }

// quiet says whether a person's devices show nothing at t.
func (u *user) quiet(t time.Time) bool {
	if u.snoozed(t) {
		return true
	}
	from, _, ok := u.quietHours(t)
	return ok && !from.After(t)
}

func (s *Server) dndInfo(c *call) (object, error) {
	u := s.ws.user(c.str("user"))
	if u == nil {
		if c.str("user") != "" {
			return nil, fail("user_not_found")
		}
		u = s.ws.user(BotUser)
	}
	t := now()
	o := object{"dnd_enabled": false, "next_dnd_start_ts": 1, "next_dnd_end_ts": 1, "snooze_enabled": u.snoozed(t)}
	if from, to, ok := u.quietHours(t); ok {
		o["dnd_enabled"], o["next_dnd_start_ts"], o["next_dnd_end_ts"] = true, from.Unix(), to.Unix()
	}
	if u.snoozed(t) {
		o["snooze_endtime"], o["snooze_remaining"], o["snooze_is_indefinite"] = u.DND.Until, u.DND.Until-t.Unix(), false
	}
	return o, nil
}

var (
	clockForm  = regexp.MustCompile(`^(?:[01]\d|2[0-3]):[0-5]\d$`)
	localeForm = regexp.MustCompile(`^[a-z]{2}-[A-Z]{2}$`)
)

// maxSnooze is how long a person can pause notifications for, in minutes.
const maxSnooze = 7 * 24 * 60

// postPerson sets what a person sets in their own Slack: the language, the time zone, and when
// their devices keep quiet. What is not given stays.
func (s *Server) postPerson(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User   string  `json:"user"`
		TZ     *string `json:"tz"`
		Locale *string `json:"locale"`
		Snooze *int64  `json:"snooze_minutes"` // 0 ends it
		From   *string `json:"dnd_from"`       // "" = no quiet hours
		To     *string `json:"dnd_to"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.ws.user(in.User)
	if u == nil || u.Bot {
		return nil, refuse("user %q: a person of GET /_control/state is needed", in.User)
	}
	next := *u
	if in.TZ != nil {
		if _, err := time.LoadLocation(*in.TZ); err != nil || *in.TZ == "" || *in.TZ == "Local" {
			return nil, refuse("tz %q: a name of the tz database is needed, such as Asia/Tokyo", *in.TZ)
		}
		next.TZ = *in.TZ
	}
	if in.Locale != nil {
		if !localeForm.MatchString(*in.Locale) {
			return nil, refuse("locale %q: one like en-US is needed", *in.Locale)
		}
		next.Locale = *in.Locale
	}
	if in.Snooze != nil {
		if *in.Snooze < 0 || *in.Snooze > maxSnooze {
			return nil, refuse("snooze_minutes %d: 0 to %d are possible", *in.Snooze, maxSnooze)
		}
		next.DND.Until = now().Unix() + *in.Snooze*60
	}
	if (in.From == nil) != (in.To == nil) {
		return nil, refuse("dnd_from and dnd_to go together")
	}
	if in.From != nil {
		if none := *in.From == "" && *in.To == ""; !none && (!clockForm.MatchString(*in.From) || !clockForm.MatchString(*in.To) || *in.From == *in.To) {
			return nil, refuse("dnd_from %q, dnd_to %q: two different times like 22:00 are needed, or two that are empty", *in.From, *in.To)
		}
		next.DND.From, next.DND.To = *in.From, *in.To
	}
	*u = next
	s.touch()
	s.live.publish(liveEvent{kind: "person", user: u.ID, body: object{"user": u.ID}})
	return object{"user": s.shownUser(u)}, nil
}

// shownUser is a user as GET /_control/state gives them.
func (s *Server) shownUser(u *user) object {
	in := []any{}
	for _, g := range s.ws.Groups {
		for _, m := range g.Users {
			if m == u.ID {
				in = append(in, g.ID)
			}
		}
	}
	o := object{
		"id": u.ID, "name": u.Name, "real_name": u.RealName, "title": u.Title, "team_id": u.TeamID, "color": u.Color,
		"avatar": "/files/avatar/" + u.ID + ".svg", "groups": in, "admin": u.Admin, "bot": u.Bot,
		"guest": u.Restricted || u.UltraRestricted, "stranger": u.Stranger, "deleted": u.Deleted,
		"tz": u.zone().String(), "locale": u.locale(),
	}
	if !u.Bot {
		t := now()
		o["dnd"] = object{"quiet": u.quiet(t), "snoozed_until": max(0, u.DND.Until), "from": u.DND.From, "to": u.DND.To}
	}
	return o
}
