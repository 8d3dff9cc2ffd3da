package chat

import (
	"encoding/json"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

// Incoming is what reached us from the chat: a row of the inbox, or what never becomes one, and
// what a person did with it.
type Incoming struct {
	Row inbox.Envelope
	Deed
	// UserTeam is the team of the person who acts, as the chat says.
	UserTeam string
	// Transient ones lose nothing when they are lost: a menu that was opened, a tab that was
	// looked at. They are not stored.
	Transient bool
	// Lasts says that it is finished in the inbox, with what is told of it.
	Lasts bool
	Told  []inbox.Whisper
	// ByBot says that a bot has done it.
	ByBot bool
	// Emoji is the name of the one that somebody has put below the row's message, of [EventReact].
	Emoji string
	// State is what the page was given to keep at which somebody looks.
	State   string
	storing int // how often the database did not take it
}

// Deed is what somebody did: exactly one of its fields is set.
type Deed struct {
	Message    *Message
	Change     *Change
	Click      *Click
	Submission *Submission
	Shortcut   *Shortcut
	Command    *Command
	Event      Event
}

// Message is something that somebody has written.
type Message struct {
	// Text is as the chat delivers it, Body the same without our mention, and Said what was typed
	// of that, for commands.
	Text, Body, Said string
	// ToUs says that it mentions us, or is a direct message; ToOthers that it begins with
	// somebody's name.
	ToUs, ToOthers bool
	// Reply says that it is in a thread that it does not open.
	Reply bool
	// Found is true of one that nobody delivered, and Late if it is too old to be worked on.
	Found, Late bool
	Files       []SharedFile
	// About is the message that it asks about, if that was chosen.
	About *About
	// ForModel says that the person has said that it is work, Project the one that they chose.
	ForModel bool
	Project  string
	// AddFiles makes the payload of a message with these files of one that has none.
	AddFiles func(old json.RawMessage) (json.RawMessage, bool, error)
}

// SharedFile is what is believed of a file that comes with a message: which one it is.
// What it is, whose, and whether it is there still, is asked when it is fetched.
type SharedFile struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// About is the message that somebody asks about, in the row of their own.
type About struct {
	User string `json:"user"`
	Text string `json:"text"` // as the chat delivers it; empty if it could not be read
	// Files came with it. Who asks about it has chosen to give them.
	Files []SharedFile `json:"files,omitempty"`
}

// Change is what an author has made of a message of theirs since it was posted.
type Change struct {
	Deleted bool
	// Apply makes the payload of the message as it reads now of that of the one before, or
	// reports false if it says the same, or says what came after this edit.
	Apply func(old json.RawMessage) (json.RawMessage, bool, error)
	// Post is the message that it makes one for us: it mentions us now, and did not before.
	Post *Incoming
}

// Click is a button that was pressed or a menu that was used.
type Click struct {
	Action string // one of the actions of package view
	Value  string // of the button, or of what was chosen
	Inputs view.Inputs
	// Block names the part of the page with the button. OnHome says that the page is the
	// person's own, Window that it is a window; State is what it was given to keep.
	Block  string
	OnHome bool
	Window Window
	State  string
	// Trigger is the chat's leave to open a window.
	Trigger string
}

// Window is an open one, and its state; the zero value is none.
type Window struct{ ID, Hash string }

// Submission is a form that was sent.
type Submission struct {
	Form   string // one of the forms of package view
	State  string // what it was given to keep
	Inputs view.Inputs
}

// Shortcut is one of the app's entries in the chat's menus.
type Shortcut struct {
	Name string
	// Author and Text are of the message that it was used on, if it was one.
	Author, Text string
	Trigger      string
}

// Command is what somebody has said to us in a chat's command line.
type Command struct{ Text string }

// Event is what else somebody did.
type Event string

// What else people do: they look at their own page, whose state is in [Incoming.State], open the
// place in which they write to us, press the chat's own Stop button, and put an emoji below a
// message, which is [Incoming.Emoji].
const (
	EventHome  Event = "home"
	EventGreet Event = "greet"
	EventStop  Event = "stop"
	EventReact Event = "react"
)

func (in *Incoming) person() person {
	return person{TeamID: in.UserTeam, UserID: in.Row.UserID, ChannelID: in.Row.ChannelID, Via: string(in.Row.Kind)}
}

// at is the person where a thread is.
func (in *Incoming) at(t threads.Thread) person {
	p := in.person()
	p.Project = t.Project
	return p
}

// Trigger is the chat's leave to open a window.
func (in *Incoming) Trigger() string {
	if in.Shortcut != nil {
		return in.Shortcut.Trigger
	}
	return in.Click.Trigger
}

// postTS is the ts of the person's message, which they can give to the model instead; empty
// where there is none.
func (in *Incoming) postTS() string {
	if in.Message == nil {
		return ""
	}
	return in.Row.TS
}

// person is who does something, and where.
type person struct {
	TeamID    string // as the payload says
	UserID    string
	ChannelID string // empty for the home tab
	Project   string // empty: the channel's
	Reach     access.Reach
	Via       string // the way in: message, action, view, command, event
}

// at is the person in a channel, about a project.
func (p person) at(channel, project string) person {
	p.ChannelID, p.Project = channel, project
	return p
}

func (p person) request(act access.Act) access.Request {
	return access.Request{Act: act, Team: p.TeamID, User: p.UserID, Channel: p.ChannelID, Project: p.Project, Reach: p.Reach}
}

// Post is a message as the chat's record has it.
type Post struct {
	TS, ThreadTS string // ThreadTS is empty, or its own, for one in no thread
	User, Team   string
	Name         string // an app's
	BotID        string
	Kind         string // the chat's word for what it is; empty for a usual one
	Gone         bool   // it was deleted, and has replies
	Text         string
	Files        []SharedFile
	// Edit makes the payload of the post as it reads now of that of the one before, as in
	// [Change]; nil where its author has not edited it.
	Edit               func(old json.RawMessage) (json.RawMessage, bool, error)
	EditedBy, EditedTS string
	Waits              bool // it has our mark of one that waits
	LatestReply        string
	Replies            int
}

// Time is when it was posted.
func (p Post) Time() time.Time { return timeOf(p.TS) }
