package slack_test

import (
	"testing"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	"deckhand/internal/playground/slack"
)

func TestAMentionIsAnsweredAndAButtonOpensAModal(t *testing.T) {
	t.Parallel()
	withSlackGo(t, slack.Options{}, func(t *testing.T, b *bundle) {
		who, err := b.api.AuthTestContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if who.UserID != slack.BotUser || who.TeamID != slack.TeamID || who.BotID != slack.BotID {
			t.Errorf("auth.test: %+v", who)
		}
		a := b.connect()
		ts := b.say(slack.UserLinus, slack.ChannelEngineering, "@deckhand fix the <failing> test & tell @Ada", "")
		var mention *slackevents.AppMentionEvent
		for range 2 {
			e := a.next()
			outer := e.Data.(slackevents.EventsAPIEvent)
			if m, ok := outer.InnerEvent.Data.(*slackevents.AppMentionEvent); ok {
				mention = m
			}
		}
		if mention == nil {
			t.Fatal("no app_mention")
		}
		if want := "<@U0DECKHAND> fix the &lt;failing&gt; test &amp; tell <@U0ADA>"; mention.Text != want || mention.TimeStamp != ts || mention.User != slack.UserLinus {
			t.Errorf("mention: %+v", mention)
		}
		if err := b.api.AddReactionContext(t.Context(), "eyes", slackgo.NewRefToMessage(slack.ChannelEngineering, ts)); err != nil {
			t.Fatal(err)
		}
		button := slackgo.NewButtonBlockElement("approve", "id-1", slackgo.NewTextBlockObject("plain_text", "Approve", false, false))
		_, card, err := b.api.PostMessageContext(t.Context(), slack.ChannelEngineering, slackgo.MsgOptionTS(ts), slackgo.MsgOptionText("Approve?", false),
			slackgo.MsgOptionBlocks(
				slackgo.NewSectionBlock(slackgo.NewTextBlockObject("mrkdwn", "*Run* `go test`?", false, false), nil, nil),
				slackgo.NewActionBlock("card", button),
			))
		if err != nil {
			t.Fatal(err)
		}
		if own := a.next().Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.ReactionAddedEvent); own.Reaction != "eyes" || own.Item.Timestamp != ts {
			t.Errorf("the app's own reaction: %+v", own)
		}
		if own := a.next().Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(*slackevents.MessageEvent); own.BotID != slack.BotID {
			t.Errorf("the app's own message: %+v", own)
		}
		a.respond(func(e socketmode.Event) (any, bool) {
			if cb, ok := e.Data.(slackgo.InteractionCallback); ok && cb.Type == slackgo.InteractionTypeBlockActions {
				go func() {
					view := slackgo.ModalViewRequest{
						Type: "modal", Title: slackgo.NewTextBlockObject("plain_text", "Why?", false, false),
						Submit: slackgo.NewTextBlockObject("plain_text", "Send", false, false),
						Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{slackgo.NewInputBlock("why", slackgo.NewTextBlockObject("plain_text", "Reason", false, false), nil,
							slackgo.NewPlainTextInputBlockElement(nil, "text"))}},
					}
					if _, err := b.api.OpenViewContext(t.Context(), cb.TriggerID, view); err != nil {
						t.Errorf("open view: %v", err)
					}
				}()
			}
			return nil, true
		})
		got := b.control("actions", obj{"user": slack.UserAda, "channel": slack.ChannelEngineering, "message_ts": card, "action_id": "approve"})
		if got["acked"] != true {
			t.Fatalf("click not acknowledged: %v", got)
		}
		cb := a.next().Data.(slackgo.InteractionCallback)
		if cb.User.ID != slack.UserAda || cb.Channel.ID != slack.ChannelEngineering || cb.Message.Timestamp != card || cb.ActionCallback.BlockActions[0].Value != "id-1" || cb.Container.MessageTs != card || cb.Container.ThreadTs != ts {
			t.Errorf("callback: %+v", cb)
		}
		id := dig(t, got, "views/0/id").(string)
		a.respond(func(e socketmode.Event) (any, bool) {
			if cb, ok := e.Data.(slackgo.InteractionCallback); ok && cb.View.State.Values["why"]["text"].Value == "no" {
				return slackgo.NewErrorsViewSubmissionResponse(map[string]string{"why": "Say more."}), true
			}
			return nil, true
		})
		if got := b.control("views/"+id+"/submit", obj{"user": slack.UserAda, "values": obj{"text": "no"}}); dig(t, got, "errors/why") != "Say more." {
			t.Errorf("errors: %v", got)
		}
		if got := b.control("views/"+id+"/submit", obj{"user": slack.UserAda, "values": obj{"why": obj{"text": "because"}}}); got["cleared"] != true || got["view"] != nil {
			t.Errorf("submit: %v", got)
		}
		thread := b.control("messages?channel="+slack.ChannelEngineering+"&thread_ts="+ts, nil)
		if dig(t, thread, "messages/0/reactions/0/name") != "eyes" || dig(t, thread, "messages/1/text") != "Approve?" || dig(t, thread, "messages/0/reply_count") != 1.0 {
			t.Errorf("thread: %v", thread)
		}
	})
}
