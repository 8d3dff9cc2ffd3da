package slackui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// incoming is an envelope and what it was decoded into; exactly one of message,
// change, click, submission, shortcut, command and event is set.
type incoming struct {
	store store.Envelope
	// userTeam is the team of the person who acts, as the payload says.
	userTeam string
	// transient envelopes lose nothing when they are lost: a menu that was opened,
	// a tab that was looked at. They are not stored.
	transient bool
	// lasts says that the envelope is finished in the inbox, with what is told of it.
	lasts      bool
	told       []store.Whisper
	storing    int    // how often the database did not take it
	byBot      bool   // a bot mentions us
	found      string // [foundPost] or [latePost] of a message that was not delivered
	message    *postedMessage
	change     *changedMessage
	click      *slack.InteractionCallback
	submission *slack.InteractionCallback
	shortcut   *slack.InteractionCallback
	command    *slashCommand
	event      *otherEvent
}

// isPrompt reports whether a click is work: it becomes a row that has to be there first.
func (in *incoming) isPrompt() bool {
	if in.click == nil {
		return false
	}
	works := []string{render.ActionContinue, render.ActionSay, render.ActionOpenPull, render.ActionAddressPull, render.ActionMergePull}
	return slices.Contains(works, render.ActionOf(in.click.ActionCallback.BlockActions[0].ActionID))
}

func (in *incoming) person() person {
	return person{TeamID: in.userTeam, UserID: in.store.UserID, ChannelID: in.store.ChannelID, Via: string(in.store.Kind)}
}

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
	Files []sharedFile `json:"files"`
	// About is ours, see takeAsked: Slack's events have no such field.
	About *aboutMessage `json:"deckhand_about"`
	// ForModel is ours, too, see [store.Store.GiveToModel]: the person has said that it is work.
	ForModel bool `json:"deckhand_for_model"`
	// Project is ours, too: the one that the person has chosen.
	Project string `json:"deckhand_project"`
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
	Reaction string  `json:"reaction"`
	Item     reacted `json:"item"`
	// View is the tab as it stands, of app_home_opened.
	View struct {
		PrivateMetadata string `json:"private_metadata"`
	} `json:"view"`
}

type slashCommand struct {
	TeamID    string `json:"team_id"`
	ChannelID string `json:"channel_id"`
	UserID    string `json:"user_id"`
	Text      string `json:"text"`
}

// decode turns an envelope into what we act on, or nil for what is none of our
// business.
func decode(e envelope) (*incoming, error) {
	switch e.Type {
	case "events_api":
		return decodeEvent(e)
	case "interactive":
		return decodeInteraction(e)
	case "slash_commands":
		var c slashCommand
		if err := json.Unmarshal(e.Payload, &c); err != nil {
			return nil, fmt.Errorf("slash command: %w", err)
		}
		return &incoming{command: &c, userTeam: c.TeamID, store: store.Envelope{
			EventID: e.ID, Kind: store.KindCommand, TeamID: c.TeamID, ChannelID: c.ChannelID, UserID: c.UserID, Payload: e.Payload,
		}}, nil
	}
	return nil, nil
}

func decodeEvent(e envelope) (*incoming, error) {
	var outer struct {
		TeamID  string          `json:"team_id"`
		EventID string          `json:"event_id"`
		Event   json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(e.Payload, &outer); err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	if outer.EventID == "" {
		outer.EventID = e.ID
	}
	var m postedMessage
	if err := json.Unmarshal(outer.Event, &m); err != nil {
		return nil, fmt.Errorf("inner event: %w", err)
	}
	switch m.Type {
	case "app_mention", "message":
		switch m.SubType {
		case "", "file_share", "thread_broadcast":
		case "message_changed", "message_deleted":
			return decodeChange(outer.TeamID, outer.Event, e.Payload)
		default:
			return nil, nil
		}
		// What bots say to each other is their affair; one that gives us work is refused.
		byBot := m.BotID != ""
		if byBot && m.Type != "app_mention" || m.User == "" && !byBot || m.Hidden {
			return nil, nil
		}
		thread := m.ThreadTS
		if thread == "" {
			thread = m.TS
		}
		team := outer.TeamID
		for _, t := range []string{m.Team, m.UserTeam} {
			if t != "" {
				team = t
			}
		}
		found := ""
		for _, prefix := range []string{foundPost, latePost} {
			if strings.HasPrefix(outer.EventID, prefix) {
				found = prefix
			}
		}
		return &incoming{message: &m, found: found, byBot: byBot, userTeam: team, store: store.Envelope{
			EventID: outer.EventID, Kind: store.KindMessage, TeamID: outer.TeamID, ChannelID: m.Channel,
			TS: m.TS, ThreadTS: thread, UserID: m.User, Payload: e.Payload,
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
		lasts := o.Type == "agent_session_stopped" || o.Type == "reaction_added"
		return &incoming{event: &o, userTeam: outer.TeamID, transient: !lasts, store: store.Envelope{
			EventID: outer.EventID, Kind: store.KindEvent, TeamID: outer.TeamID, ChannelID: o.Channel,
			TS: o.Item.TS, ThreadTS: o.ThreadTS, UserID: o.User, Payload: e.Payload,
		}}, nil
	}
	return nil, nil
}

func decodeInteraction(e envelope) (*incoming, error) {
	var c slack.InteractionCallback
	if err := json.Unmarshal(e.Payload, &c); err != nil {
		return nil, fmt.Errorf("interaction: %w", err)
	}
	in := &incoming{userTeam: c.User.TeamID, store: store.Envelope{
		EventID: e.ID, TeamID: c.Team.ID, ChannelID: c.Channel.ID, UserID: c.User.ID, Payload: e.Payload,
	}}
	if in.userTeam == "" {
		in.userTeam = c.Team.ID
	}
	switch c.Type {
	case slack.InteractionTypeBlockActions:
		if len(c.ActionCallback.BlockActions) == 0 {
			return nil, nil
		}
		in.click = &c
		in.store.Kind = store.KindAction
		in.store.TS = c.Container.MessageTs
		in.store.ThreadTS = c.Container.ThreadTs
		if action := c.ActionCallback.BlockActions[0]; action.ActionID == render.ActionMore {
			action.ActionID, action.Value = render.ParseMore(action.SelectedOption.Value)
		}
		act := actions[render.ActionOf(c.ActionCallback.BlockActions[0].ActionID)]
		in.transient = !act.lasts
	case slack.InteractionTypeViewSubmission:
		in.submission = &c
		in.store.Kind = store.KindView
		if c.View.CallbackID == render.CallbackConnect { // a token, which no row may hold
			in.transient, in.store.Payload = true, nil
		}
	case slack.InteractionTypeShortcut, slack.InteractionTypeMessageAction:
		in.shortcut, in.transient = &c, true
		in.store.Kind = store.KindAction
		in.store.TS, in.store.ThreadTS = c.Message.Timestamp, cmp.Or(c.Message.ThreadTimestamp, c.Message.Timestamp)
	default:
		return nil, nil
	}
	return in, nil
}

// ours reports whether the envelope is an echo of what we posted ourselves.
func (a *App) ours(e store.Envelope) bool { return e.UserID == a.self.UserID }

// relevant reports whether a message is addressed to us: a mention, a direct
// message, or a word in a thread that we work in. The rest of a channel's talk
// is acknowledged and forgotten.
func (a *App) relevant(ctx context.Context, in *incoming) bool {
	relevant, err := a.relevantNow(ctx, in)
	return relevant || err != nil // an unreachable database is told by Receive
}

// relevantNow is relevant; its error is the database's.
func (a *App) relevantNow(ctx context.Context, in *incoming) (bool, error) {
	if in.event != nil && in.event.Type == "reaction_added" {
		return a.reactionOf(in.event) != "", nil
	}
	if in.message == nil || in.addressed(a.mention()) {
		return true, nil
	}
	if in.message.ThreadTS == "" {
		return false, nil
	}
	if addressesSomebodyElse(in.message.Text) || a.takesMention(in) {
		a.cursor.noteTalk(in.store.Key(), in.store.TS)
		return false, nil
	}
	served, begins, err := a.c.Store.Concerns(ctx, in.store.Key(), in.store.TS)
	if err == nil && !served && !begins {
		a.cursor.overhear(in.store.Key())
	}
	return served || begins, err
}

// takesMention reports whether a reply is not for us without a mention: its channel wants
// one, and it is no command about the thread, which people need when a button fails.
func (a *App) takesMention(in *incoming) bool {
	if !a.c.Access.Places.Mention[in.store.ChannelID] {
		return false
	}
	c := a.commands.find(said(in.message.Text))
	return c == nil || c.nearly || c.guessed || !c.inThread || c.steers
}

func (in *incoming) addressed(mention string) bool {
	return strings.HasPrefix(in.store.ChannelID, "D") || strings.Contains(in.message.Text, mention)
}

// addressesSomebodyElse: people talk to each other in our threads too.
func addressesSomebodyElse(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "<@")
}

// act does what the envelope asks for and says in a word or two what came of it.
func (a *App) act(ctx context.Context, in *incoming) string {
	ctx, cancel := context.WithTimeoutCause(ctx, routeLimit, fmt.Errorf("act on an envelope: no end in %s", routeLimit))
	defer cancel()
	if in.store.ThreadTS != "" {
		a.publisher.Watched(in.store.ThreadTS)
		a.frontend.visitors.heard(in.store.Key(), in.store.UserID, in.message != nil)
	}
	outcome, err := a.handle(ctx, in)
	if err != nil && in.message != nil && in.store.ID != 0 {
		return a.putOff(ctx, in, err)
	}
	if err != nil {
		a.log.Error("act on an envelope", zap.String("event", in.store.EventID), zap.String("kind", string(in.store.Kind)),
			zap.String("user", in.store.UserID), zap.Error(err), zap.NamedError("cause", context.Cause(ctx)))
		a.answer(in, sorry)
		return "failed"
	}
	return outcome
}

// handle does what an envelope is for. A fault of ours in it is an error, so that one message ends
// no bot, and is not tried for ever.
func (a *App) handle(ctx context.Context, in *incoming) (outcome string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("a fault of the bot: %v\n%s", fault, debug.Stack())
		}
	}()
	if err := a.learnBindings(ctx, in.store.ChannelID); err != nil {
		return "", err
	}
	switch {
	case in.message != nil:
		return a.onMessage(ctx, in)
	case in.click != nil:
		return a.onClick(ctx, in)
	case in.shortcut != nil:
		return a.onShortcut(ctx, in)
	case in.submission != nil:
		return a.onSubmission(ctx, in)
	case in.command != nil:
		return a.onSlash(ctx, in)
	case in.event != nil:
		return a.onEvent(ctx, in)
	}
	return "", nil
}

// finish marks the envelope as dealt with, and tells the person what is to be told of it.
func (a *App) finish(ctx context.Context, id int64, in *incoming, outcome string) {
	if outcome == waits {
		return
	}
	rows, err := a.c.Store.FinishTelling(ctx, id, outcome, in.told...)
	if err != nil {
		a.log.Error("finish an envelope", zap.Error(err))
	}
	a.outbox.tell(rows...)
	if len(rows) == 0 {
		a.tellNow(in)
	}
}

// tellNow tells the person what no row holds.
func (a *App) tellNow(in *incoming) {
	for _, w := range in.told {
		a.whisper(w.ChannelID, w.ThreadTS, w.UserID, render.Sentence(w.Sentence))
	}
}

// sorry tells a person that what they did has failed, or seems to have: a database that
// stops answering may have taken it all the same, and say so when it is back.
const sorry = "That did not work: Deckhand has trouble at the moment. If nothing changes here, try again; if it happens again, ask an admin to look at its log."

var envelopeType = map[store.EnvelopeKind]string{
	store.KindMessage: "events_api", store.KindEvent: "events_api",
	store.KindAction: "interactive", store.KindView: "interactive", store.KindCommand: "slash_commands",
}

func (a *App) onEvent(ctx context.Context, in *incoming) (outcome string, err error) {
	switch in.event.Type {
	case "app_home_opened":
		if in.event.Tab == "" || in.event.Tab == "home" {
			return a.openHome(ctx, in)
		}
		if in.event.Tab == "messages" {
			return a.suggest(ctx, in), nil
		}
	case "assistant_thread_started": // of apps that are shown beside what people look at
		return a.suggest(ctx, in), nil
	case "agent_session_stopped":
		return a.onNativeStop(ctx, in)
	case "reaction_added":
		return a.onReaction(ctx, in)
	}
	return in.event.Type, nil
}
