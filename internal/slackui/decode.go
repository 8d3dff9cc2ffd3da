package slackui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
)

// A post that was found, not delivered, has one of these before its event id.
const (
	foundPost = "found/" // it is worked on
	latePost  = "late/"  // it is too old for that; its author is told
)

// postedMessage is the inner event of app_mention and message.
type postedMessage struct {
	Type     string `json:"type"`
	SubType  string `json:"subtype"`
	User     string `json:"user"`
	BotID    string `json:"bot_id"`
	Text     string `json:"text"`
	TS       string `json:"ts"`
	ThreadTS string `json:"thread_ts"`
	Channel  string `json:"channel"`
	Hidden   bool   `json:"hidden"`
	// Team and UserTeam name the author's team where it may differ from ours.
	Team     string `json:"team"`
	UserTeam string `json:"user_team"`
	// Files came with it.
	Files []chat.SharedFile `json:"files"`
	// The others are ours: Slack's events have no such fields. See [record.Payload] and
	// [store.Store.GiveToModel].
	About    *chat.About `json:"deckhand_about"`
	ForModel bool        `json:"deckhand_for_model"`
	Project  string      `json:"deckhand_project"`
}

type otherEvent struct {
	Type     string `json:"type"`
	User     string `json:"user"`
	Channel  string `json:"channel"`
	ThreadTS string `json:"thread_ts"`
	Tab      string `json:"tab"`
	// Thread is the one of assistant_thread_started, which says who and where in it.
	Thread struct {
		User    string `json:"user_id"`
		Channel string `json:"channel_id"`
		TS      string `json:"thread_ts"`
	} `json:"assistant_thread"`
	// Reaction and Item are of reaction_added: an emoji's name, and what it was put below.
	Reaction string `json:"reaction"`
	Item     struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
	// View is the tab as it stands, of app_home_opened.
	View struct {
		PrivateMetadata string `json:"private_metadata"`
	} `json:"view"`
}

// does says what somebody did.
func (o otherEvent) does() chat.Event {
	switch {
	case o.Type == "app_home_opened" && (o.Tab == "" || o.Tab == "home"):
		return chat.EventHome
	case o.Type == "app_home_opened" && o.Tab == "messages", o.Type == "assistant_thread_started": // of apps that are shown beside what people look at
		return chat.EventGreet
	case o.Type == "agent_session_stopped":
		return chat.EventStop
	case o.Type == "reaction_added":
		return chat.EventReact
	}
	return chat.Event(o.Type)
}

type slashCommand struct {
	TeamID    string `json:"team_id"`
	ChannelID string `json:"channel_id"`
	UserID    string `json:"user_id"`
	Text      string `json:"text"`
}

// envelopeType is how Slack calls what is in the inbox.
var envelopeType = map[inbox.Kind]string{
	inbox.Message: "events_api", inbox.Event: "events_api",
	inbox.Action: "interactive", inbox.View: "interactive", inbox.Command: "slash_commands",
}

// decode turns an envelope into what is acted on, or nil for what is none of our
// business.
func (a *record) decode(e envelope) (*chat.Incoming, error) {
	switch e.Type {
	case "events_api":
		return a.decodeEvent(e)
	case "interactive":
		return a.decodeInteraction(e)
	case "slash_commands":
		var c slashCommand
		if err := json.Unmarshal(e.Payload, &c); err != nil {
			return nil, fmt.Errorf("slash command: %w", err)
		}
		return &chat.Incoming{Deed: chat.Deed{Command: &chat.Command{Text: c.Text}}, UserTeam: c.TeamID, Row: inbox.Envelope{
			EventID: e.ID, Kind: inbox.Command, TeamID: c.TeamID, ChannelID: c.ChannelID, UserID: c.UserID, Payload: e.Payload,
		}}, nil
	}
	return nil, nil
}

func (a *record) decodeEvent(e envelope) (*chat.Incoming, error) {
	var outer struct {
		TeamID  string          `json:"team_id"`
		EventID string          `json:"event_id"`
		Event   json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(e.Payload, &outer); err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	outer.EventID = cmp.Or(outer.EventID, e.ID)
	var m postedMessage
	if err := json.Unmarshal(outer.Event, &m); err != nil {
		return nil, fmt.Errorf("inner event: %w", err)
	}
	switch m.Type {
	case "app_mention", "message":
		switch m.SubType {
		case "", "file_share", "thread_broadcast":
		case "message_changed", "message_deleted":
			return a.decodeChange(outer.TeamID, outer.Event, e.Payload)
		default:
			return nil, nil
		}
		// What bots say to each other is their affair; one that gives us work is refused.
		byBot := m.BotID != ""
		if byBot && m.Type != "app_mention" || m.User == "" && !byBot || m.Hidden {
			return nil, nil
		}
		return &chat.Incoming{Deed: chat.Deed{Message: a.message(m, outer.EventID)}, ByBot: byBot, UserTeam: cmp.Or(m.UserTeam, m.Team, outer.TeamID), Row: inbox.Envelope{
			EventID: outer.EventID, Kind: inbox.Message, TeamID: outer.TeamID, ChannelID: m.Channel,
			TS: m.TS, ThreadTS: cmp.Or(m.ThreadTS, m.TS), UserID: m.User, Payload: e.Payload,
		}}, nil
	case "app_home_opened", "agent_session_stopped", "assistant_thread_started", "reaction_added":
		var o otherEvent
		if err := json.Unmarshal(outer.Event, &o); err != nil {
			return nil, fmt.Errorf("inner event: %w", err)
		}
		if o.Type == "assistant_thread_started" {
			o.User, o.Channel, o.ThreadTS = o.Thread.User, o.Thread.Channel, o.Thread.TS
		}
		if o.Type == "reaction_added" {
			if o.Item.Type != "message" {
				return nil, nil
			}
			o.Channel = o.Item.Channel
		}
		does := o.does()
		lasts := does == chat.EventStop || does == chat.EventReact
		return &chat.Incoming{Deed: chat.Deed{Event: does}, Emoji: o.Reaction, State: o.View.PrivateMetadata, UserTeam: outer.TeamID, Transient: !lasts, Row: inbox.Envelope{
			EventID: outer.EventID, Kind: inbox.Event, TeamID: outer.TeamID, ChannelID: o.Channel,
			TS: o.Item.TS, ThreadTS: o.ThreadTS, UserID: o.User, Payload: e.Payload,
		}}, nil
	}
	return nil, nil
}

// message is what somebody has written, of an event.
func (a *record) message(m postedMessage, eventID string) *chat.Message {
	late := strings.HasPrefix(eventID, latePost)
	return &chat.Message{
		Text: m.Text, Body: strings.ReplaceAll(m.Text, a.mention(), ""), Said: a.Said(m.Text), ToUs: access.IsDirect(m.Channel) || a.Mentions(m.Text), ToOthers: a.ToOthers(m.Text), Reply: m.ThreadTS != "",
		Late: late, Found: late || strings.HasPrefix(eventID, foundPost), Files: m.Files, About: m.About, ForModel: m.ForModel, Project: m.Project,
		AddFiles: m.addFiles,
	}
}

func (a *record) decodeInteraction(e envelope) (*chat.Incoming, error) {
	var c slack.InteractionCallback
	if err := json.Unmarshal(e.Payload, &c); err != nil {
		return nil, fmt.Errorf("interaction: %w", err)
	}
	in := &chat.Incoming{UserTeam: cmp.Or(c.User.TeamID, c.Team.ID), Row: inbox.Envelope{
		EventID: e.ID, TeamID: c.Team.ID, ChannelID: c.Channel.ID, UserID: c.User.ID, Payload: e.Payload,
	}}
	switch c.Type {
	case slack.InteractionTypeBlockActions:
		if len(c.ActionCallback.BlockActions) == 0 {
			return nil, nil
		}
		in.Row.Kind, in.Row.TS, in.Row.ThreadTS = inbox.Action, c.Container.MessageTs, c.Container.ThreadTs
		in.Click = clickOf(&c)
		in.Transient = !a.chat.Changes(in.Click.Action)
	case slack.InteractionTypeViewSubmission:
		in.Row.Kind = inbox.View
		in.Submission = &chat.Submission{Form: c.View.CallbackID, State: c.View.PrivateMetadata}
		if c.View.State != nil {
			in.Submission.Inputs = inputsOf(c.View.State.Values)
		}
		if in.Submission.Form == view.CallbackConnect { // a token, which no row may hold
			in.Transient, in.Row.Payload = true, nil
		}
	case slack.InteractionTypeShortcut, slack.InteractionTypeMessageAction:
		in.Shortcut, in.Transient = &chat.Shortcut{Name: c.CallbackID, Author: c.Message.User, Text: c.Message.Text, Trigger: c.TriggerID}, true
		in.Row.Kind = inbox.Action
		in.Row.TS, in.Row.ThreadTS = c.Message.Timestamp, cmp.Or(c.Message.ThreadTimestamp, c.Message.Timestamp)
	default:
		return nil, nil
	}
	return in, nil
}

func clickOf(c *slack.InteractionCallback) *chat.Click {
	pressed := c.ActionCallback.BlockActions[0]
	click := &chat.Click{
		Action: view.ActionOf(pressed.ActionID), Value: cmp.Or(pressed.SelectedOption.Value, pressed.Value), Block: pressed.BlockID,
		OnHome: c.View.Type == slack.VTHomeTab, State: c.View.PrivateMetadata, Trigger: c.TriggerID,
	}
	if click.Action == view.ActionMore {
		click.Action, click.Value = view.ParseMore(click.Value)
	}
	if !click.OnHome {
		click.Window = chat.Window{ID: c.View.ID, Hash: c.View.Hash}
	}
	if c.BlockActionState != nil {
		click.Inputs = inputsOf(c.BlockActionState.Values)
	}
	return click
}

func inputsOf(values map[string]map[string]slack.BlockAction) view.Inputs {
	out := view.Inputs{}
	for block, inputs := range values {
		out[block] = map[string]view.Input{}
		for name, v := range inputs {
			in := view.Input{Value: v.Value}
			if one := cmp.Or(v.SelectedOption.Value, v.SelectedConversation); one != "" {
				in.Chosen = append(in.Chosen, one)
			}
			for _, o := range v.SelectedOptions {
				in.Chosen = append(in.Chosen, o.Value)
			}
			out[block][name] = in
		}
	}
	return out
}

// Decode implements [chat.Screen].
func (a *record) Decode(row inbox.Envelope) (*chat.Incoming, error) {
	return a.decode(envelope{ID: row.EventID, Type: envelopeType[row.Kind], Payload: row.Payload})
}
