package slack

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The workspace's fixed ids, so that a configuration can name them.
const (
	TeamID      = "T0PLAYGRND"
	OtherTeamID = "T0PARTNER" // the company on the other side of the shared channel

	AppID   = "A0DECKHAND"
	BotUser = "U0DECKHAND"
	BotID   = "B0DECKHAND"

	UserAda     = "U0ADA"     // administrator and approver
	UserGrace   = "U0GRACE"   // the second approver
	UserLinus   = "U0LINUS"   // an engineer: may ask, not approve
	UserMallory = "U0MALLORY" // no role at all
	UserGuest   = "U0GUEST"   // a single-channel guest
	UserConnect = "U0CONNECT" // from another company, through the shared channel

	GroupApprovers = "S0APPROVERS"
	GroupEngineers = "S0ENGINEERS"

	ChannelGeneral     = "C0GENERAL"
	ChannelEngineering = "C0ENG"
	ChannelCareful     = "C0CAREFUL"
	ChannelRandom      = "C0RANDOM"
	ChannelShared      = "C0SHARED"
	ChannelPrivate     = "G0PRIVATE"
)

const (
	teamName   = "Deckhand Playground"
	teamDomain = "deckhand-playground"
)

// workspace is what survives a restart.
type workspace struct {
	Version  int                   `json:"version"`
	BotToken string                `json:"bot_token"`
	AppToken string                `json:"app_token"`
	LastTS   int64                 `json:"last_ts"` // microseconds of the newest timestamp
	Users    []*user               `json:"users"`
	Groups   []*userGroup          `json:"groups"`
	Channels []*channel            `json:"channels"`
	Messages map[string][]*message `json:"messages"` // by channel, oldest first
	Files    map[string]*file      `json:"files"`
	Homes    map[string]*view      `json:"homes"` // published home tabs by user

	threads map[threadKey][]*message // the replies in Messages by their thread, derived
}

// threadKey names a thread.
type threadKey struct{ channel, root string }

// user is one account, a person's or the bot's.
type user struct {
	ID              string `json:"id"`
	TeamID          string `json:"team_id"`
	Name            string `json:"name"` // the handle
	RealName        string `json:"real_name"`
	Title           string `json:"title,omitempty"`
	Color           string `json:"color"` // six hexadecimal digits
	Admin           bool   `json:"admin,omitempty"`
	Bot             bool   `json:"bot,omitempty"`
	Restricted      bool   `json:"restricted,omitempty"`
	UltraRestricted bool   `json:"ultra_restricted,omitempty"`
	Stranger        bool   `json:"stranger,omitempty"`
	Deleted         bool   `json:"deleted,omitempty"`
	TZ              string `json:"tz,omitempty"`     // of the tz database; "" = defaultZone
	Locale          string `json:"locale,omitempty"` // "" = defaultLocale
	DND             dnd    `json:"dnd,omitzero"`
}

// userGroup is a mentionable group of people.
type userGroup struct {
	ID     string   `json:"id"`
	Handle string   `json:"handle"`
	Name   string   `json:"name"`
	Users  []string `json:"users"`
}

// channel is a conversation of any kind.
type channel struct {
	ID        string   `json:"id"`
	Name      string   `json:"name,omitempty"`
	Kind      string   `json:"kind"` // one of the kind constants
	Topic     string   `json:"topic,omitempty"`
	Purpose   string   `json:"purpose,omitempty"`
	Members   []string `json:"members"`
	ExtShared bool     `json:"ext_shared,omitempty"`
	Archived  bool     `json:"archived,omitempty"`
	Created   int64    `json:"created"` // Unix seconds
	Pins      []string `json:"pins,omitempty"`
}

// The kinds of conversation, by the name that events give in channel_type.
const (
	kindPublic  = "channel"
	kindPrivate = "group"
	kindIM      = "im"
)

func (c *channel) has(user string) bool { return slices.Contains(c.Members, user) }

// peer is the person in a direct message with the bot.
func (c *channel) peer() string {
	for _, m := range c.Members {
		if m != BotUser {
			return m
		}
	}
	return ""
}

// newWorkspace seeds the playground's workspace.
func newWorkspace(now time.Time) *workspace {
	w := &workspace{
		Version:  stateVersion,
		BotToken: "xoxb-playground-" + randomString(24, lowerAlnum),
		AppToken: "xapp-1-" + AppID + "-" + randomString(13, digits) + "-" + randomString(64, lowerHex),
		Users: []*user{
			{ID: BotUser, Name: "deckhand", RealName: "Deckhand", Title: "Your hand on deck", Color: "1f6f78", Bot: true},
			{ID: UserAda, Name: "ada", RealName: "Ada Admin", Title: "Keeps the ship, approves", Color: "7a4fb5", Admin: true},
			{ID: UserGrace, Name: "grace", RealName: "Grace Approver", Title: "Second pair of eyes", Color: "b5524f"},
			{ID: UserLinus, Name: "linus", RealName: "Linus Engineer", Title: "Asks, may not approve", Color: "2f7d4f"},
			{ID: UserMallory, Name: "mallory", RealName: "Mallory Stranger", Title: "No role here", Color: "5d6470"},
			{ID: UserGuest, Name: "guido", RealName: "Guido Guest", Title: "Single-channel guest", Color: "b07d2b", Restricted: true, UltraRestricted: true},
			{ID: UserConnect, TeamID: OtherTeamID, Name: "connie", RealName: "Connie Connect", Title: "From the partner company", Color: "2b6cb0", Stranger: true},
		},
		Groups: []*userGroup{
			{ID: GroupApprovers, Handle: "approvers", Name: "Approvers", Users: []string{UserAda, UserGrace}},
			{ID: GroupEngineers, Handle: "engineers", Name: "Engineers", Users: []string{UserLinus}},
		},
		Messages: map[string][]*message{},
		Files:    map[string]*file{},
		Homes:    map[string]*view{},
		threads:  map[threadKey][]*message{},
	}
	for _, u := range w.Users {
		if u.TeamID == "" {
			u.TeamID = TeamID
		}
	}
	created := now.Unix()
	team := []string{BotUser, UserAda, UserGrace, UserLinus, UserMallory}
	w.Channels = []*channel{
		{ID: ChannelGeneral, Name: "general", Kind: kindPublic, Purpose: "Everything that concerns everyone.", Members: append(slices.Clone(team), UserGuest), Created: created},
		{ID: ChannelEngineering, Name: "engineering", Kind: kindPublic, Topic: "Builds, tests, releases", Purpose: "Where the work on the sample repository is done.", Members: slices.Clone(team), Created: created},
		{ID: ChannelCareful, Name: "careful", Kind: kindPublic, Topic: "Asked at each call", Purpose: "The sample repository, with a person asked at each call.", Members: slices.Clone(team), Created: created},
		{ID: ChannelRandom, Name: "random", Kind: kindPublic, Purpose: "No project is bound to this channel.", Members: slices.Clone(team), Created: created},
		{ID: ChannelShared, Name: "partner", Kind: kindPublic, Purpose: "Shared with the partner company.", Members: append(slices.Clone(team), UserConnect), ExtShared: true, Created: created},
		{ID: ChannelPrivate, Name: "private-ops", Kind: kindPrivate, Purpose: "By invitation only.", Members: []string{BotUser, UserAda, UserGrace}, Created: created},
	}
	for _, u := range w.Users {
		if !u.Bot && !u.Stranger {
			w.openIM(u.ID, now)
		}
	}
	return w
}

// openIM finds or makes the direct message between the bot and a person.
func (w *workspace) openIM(person string, now time.Time) *channel {
	id := "D0" + strings.TrimPrefix(person, "U0")
	if c := w.channel(id); c != nil {
		return c
	}
	c := &channel{ID: id, Kind: kindIM, Members: []string{BotUser, person}, Created: now.Unix()}
	w.Channels = append(w.Channels, c)
	return c
}

func (w *workspace) user(id string) *user {
	for _, u := range w.Users {
		if u.ID == id {
			return u
		}
	}
	return nil
}

func (w *workspace) group(id string) *userGroup {
	for _, g := range w.Groups {
		if g.ID == id {
			return g
		}
	}
	return nil
}

func (w *workspace) channel(id string) *channel {
	for _, c := range w.Channels {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// channelNamed finds a channel by its name, without the #.
func (w *workspace) channelNamed(name string) *channel {
	for _, c := range w.Channels {
		if c.Name != "" && c.Name == name {
			return c
		}
	}
	return nil
}

// message finds a message by channel and timestamp.
func (w *workspace) message(channel, ts string) *message {
	list := w.Messages[channel]
	i, ok := slices.BinarySearchFunc(list, ts, func(m *message, ts string) int { return compareTS(m.TS, ts) })
	if !ok {
		return nil
	}
	return list[i]
}

// replies are the messages of a thread without its root, oldest first.
func (w *workspace) replies(channel, root string) []*message {
	return w.threads[threadKey{channel, root}]
}

// index derives what is looked up by thread.
func (w *workspace) index() {
	w.threads = map[threadKey][]*message{}
	for _, list := range w.Messages {
		for _, m := range list {
			w.indexOne(m)
		}
	}
}

func (w *workspace) indexOne(m *message) {
	if m.ThreadTS != "" {
		k := threadKey{m.Channel, m.ThreadTS}
		w.threads[k] = append(w.threads[k], m)
	}
}

// liveStreams are the messages that are being streamed.
func (w *workspace) liveStreams() []*message {
	var out []*message
	for _, list := range w.Messages {
		for _, m := range list {
			if m.Stream != nil && m.Stream.State == streamLive {
				out = append(out, m)
			}
		}
	}
	return out
}

// now is the wall clock; tests run it inside a synctest bubble.
func now() time.Time { return time.Now() }

// nextTS makes a timestamp that is unique and later than every one before.
func (w *workspace) nextTS(now time.Time) string {
	micro := now.UnixMicro()
	if micro <= w.LastTS {
		micro = w.LastTS + 1
	}
	w.LastTS = micro
	return formatTS(micro)
}

func formatTS(micro int64) string {
	return fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6)
}

// compareTS orders two timestamps. Those of different length differ in seconds.
func compareTS(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
