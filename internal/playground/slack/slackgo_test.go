package slack_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"

	"deckhand/internal/playground/slack"
)

// The tests here hold that slack-go, the bot's client, understands every answer.

func TestSlackGoReadsPeopleGroupsAndChannels(t *testing.T) {
	t.Parallel()
	withSlackGo(t, slack.Options{Scopes: append(slack.DefaultScopes(), "im:read", "team:read", "dnd:read", "im:write", "channels:join", "channels:manage")}, func(t *testing.T, b *bundle) {
		ctx := t.Context()
		ada, err := b.api.GetUserInfoContext(ctx, slack.UserAda)
		if err != nil || !ada.IsAdmin || ada.RealName != "Ada Admin" || ada.Profile.DisplayName != "Ada Admin" || ada.IsBot {
			t.Errorf("Ada: %+v, %v", ada, err)
		}
		guest, err := b.api.GetUserInfoContext(ctx, slack.UserGuest)
		if err != nil || !guest.IsRestricted || !guest.IsUltraRestricted {
			t.Errorf("guest: %+v, %v", guest, err)
		}
		stranger, err := b.api.GetUserInfoContext(ctx, slack.UserConnect)
		if err != nil || !stranger.IsStranger || stranger.TeamID != slack.OtherTeamID {
			t.Errorf("stranger: %+v, %v", stranger, err)
		}
		if _, err := b.api.GetUserInfoContext(ctx, "U0X"); err == nil || err.Error() != "user_not_found" {
			t.Errorf("nobody: %v", err)
		}
		users, err := b.api.GetUsersContext(ctx)
		if err != nil || len(users) != 7 {
			t.Errorf("%d users, %v", len(users), err)
		}
		groups, err := b.api.GetUserGroupsContext(ctx, slackgo.GetUserGroupsOptionIncludeUsers(true))
		if err != nil || len(groups) != 2 || !slices.Equal(groups[0].Users, []string{slack.UserAda, slack.UserGrace}) {
			t.Errorf("groups: %+v, %v", groups, err)
		}
		members, err := b.api.GetUserGroupMembersContext(ctx, slack.GroupEngineers)
		if err != nil || !slices.Equal(members, []string{slack.UserLinus}) {
			t.Errorf("members: %v, %v", members, err)
		}
		if _, err := b.api.GetUserGroupMembersContext(ctx, "S0X"); err == nil || err.Error() != "no_such_subteam" {
			t.Errorf("no group: %v", err)
		}
		var names []string
		for cursor := ""; ; {
			part, next, err := b.api.GetConversationsContext(ctx, &slackgo.GetConversationsParameters{Cursor: cursor, Limit: 2, Types: []string{"public_channel", "private_channel"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range part {
				names = append(names, c.Name)
			}
			if cursor = next; next == "" {
				break
			}
		}
		if diff := cmp.Diff([]string{"general", "engineering", "careful", "random", "partner", "private-ops"}, names); diff != "" {
			t.Error(diff)
		}
		shared, err := b.api.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: slack.ChannelShared, IncludeNumMembers: true})
		if err != nil || !shared.IsExtShared || shared.NumMembers != 6 || !shared.IsMember {
			t.Errorf("shared: %+v, %v", shared, err)
		}
		im, err := b.api.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: "D0ADA"})
		if err != nil || !im.IsIM || im.User != slack.UserAda {
			t.Errorf("im: %+v, %v", im, err)
		}
		in, _, err := b.api.GetUsersInConversationContext(ctx, &slackgo.GetUsersInConversationParameters{ChannelID: slack.ChannelPrivate})
		if err != nil || !slices.Equal(in, []string{slack.BotUser, slack.UserAda, slack.UserGrace}) {
			t.Errorf("private members: %v, %v", in, err)
		}
		opened, _, _, err := b.api.OpenConversationContext(ctx, &slackgo.OpenConversationParameters{Users: []string{slack.UserMallory}, ReturnIM: true})
		if err != nil || opened.ID != "D0MALLORY" {
			t.Errorf("opened: %+v, %v", opened, err)
		}
		if _, err := b.api.LeaveConversationContext(ctx, slack.ChannelRandom); err != nil {
			t.Errorf("leave: %v", err)
		}
		if c, _, _, err := b.api.JoinConversationContext(ctx, slack.ChannelRandom); err != nil || c.ID != slack.ChannelRandom {
			t.Errorf("join: %v", err)
		}
		if mine, _, err := b.api.GetConversationsForUserContext(ctx, &slackgo.GetConversationsForUserParameters{UserID: slack.UserConnect}); err != nil || len(mine) != 1 {
			t.Errorf("Connie's channels: %v, %v", mine, err)
		}
		if bot, err := b.api.GetBotInfoContext(ctx, slackgo.GetBotInfoParameters{Bot: slack.BotID}); err != nil || bot.UserID != slack.BotUser || bot.AppID != slack.AppID {
			t.Errorf("bot: %+v, %v", bot, err)
		}
		if team, err := b.api.GetTeamInfoContext(ctx); err != nil || team.ID != slack.TeamID {
			t.Errorf("team: %+v, %v", team, err)
		}
		if p, err := b.api.GetUserPresenceContext(ctx, slack.UserAda); err != nil || p.Presence != "active" {
			t.Errorf("presence: %+v, %v", p, err)
		}
		user := slack.UserAda
		if _, err := b.api.GetDNDInfoContext(ctx, &user); err != nil {
			t.Errorf("dnd: %v", err)
		}
	})
}

func TestSlackGoPostsEditsAndReads(t *testing.T) {
	t.Parallel()
	withSlackGo(t, slack.Options{NoRateLimits: true}, func(t *testing.T, b *bundle) {
		ctx := t.Context()
		root := b.say(slack.UserLinus, slack.ChannelEngineering, "go", "")
		_, ts, err := b.api.PostMessageContext(ctx, slack.ChannelEngineering, slackgo.MsgOptionText("one", false), slackgo.MsgOptionTS(root),
			slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionMetadata(slackgo.SlackMetadata{EventType: "turn", EventPayload: map[string]any{"n": 1}}))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, text, err := b.api.UpdateMessageContext(ctx, slack.ChannelEngineering, ts, slackgo.MsgOptionText("two", false)); err != nil || text != "two" {
			t.Errorf("update: %q, %v", text, err)
		}
		if _, err := b.api.PostEphemeralContext(ctx, slack.ChannelEngineering, slack.UserAda, slackgo.MsgOptionText("psst", false), slackgo.MsgOptionTS(root)); err != nil {
			t.Errorf("ephemeral: %v", err)
		}
		if link, err := b.api.GetPermalinkContext(ctx, &slackgo.PermalinkParameters{Channel: slack.ChannelEngineering, Ts: ts}); err != nil || !strings.HasPrefix(link, base+"/archives/C0ENG/p") {
			t.Errorf("permalink: %q, %v", link, err)
		}
		replies, more, _, err := b.api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{ChannelID: slack.ChannelEngineering, Timestamp: root, IncludeAllMetadata: true})
		if err != nil || more || len(replies) != 2 || replies[1].Text != "two" || replies[1].Metadata.EventType != "turn" || replies[1].Edited == nil || replies[0].ReplyCount != 1 {
			t.Errorf("replies: %+v, %v", replies, err)
		}
		history, err := b.api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{ChannelID: slack.ChannelEngineering, Limit: 1})
		if err != nil || len(history.Messages) != 1 || history.Messages[0].Timestamp != root || history.HasMore {
			t.Errorf("history: %+v, %v", history, err)
		}
		if _, _, err := b.api.DeleteMessageContext(ctx, slack.ChannelEngineering, ts); err != nil {
			t.Errorf("delete: %v", err)
		}
		_, _, err = b.api.PostMessageContext(ctx, slack.ChannelEngineering, slackgo.MsgOptionBlocks(slackgo.NewSectionBlock(slackgo.NewTextBlockObject("mrkdwn", strings.Repeat("x", 3001), false, false), nil, nil)))
		var refused slackgo.SlackErrorResponse
		if !errors.As(err, &refused) || refused.Err != "invalid_blocks" || !slices.Contains(refused.ResponseMetadata.Messages, "[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]") {
			t.Errorf("refused: %+v", err)
		}
	})
}

func TestSlackGoStreams(t *testing.T) {
	t.Parallel()
	withSlackGo(t, slack.Options{}, func(t *testing.T, b *bundle) {
		ctx := t.Context()
		root := b.say(slack.UserLinus, slack.ChannelEngineering, "go", "")
		_, ts, err := b.api.StartStreamContext(ctx, slack.ChannelEngineering, slackgo.MsgOptionTS(root), slackgo.MsgOptionRecipientTeamID(slack.TeamID),
			slackgo.MsgOptionRecipientUserID(slack.UserLinus), slackgo.MsgOptionMarkdownText("**a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.api.AppendStreamContext(ctx, slack.ChannelEngineering, ts, slackgo.MsgOptionMarkdownText("b**")); err != nil {
			t.Fatal(err)
		}
		task := slackgo.NewTaskUpdateChunk("t", "Run")
		task.Status = slackgo.TaskCardStatusComplete
		if _, _, err := b.api.AppendStreamContext(ctx, slack.ChannelEngineering, ts, slackgo.MsgOptionChunks(task, slackgo.NewMarkdownTextChunk("c"), slackgo.NewBlocksChunk(slackgo.NewDividerBlock()))); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.api.StopStreamContext(ctx, slack.ChannelEngineering, ts, slackgo.MsgOptionMarkdownText("d")); err != nil {
			t.Fatal(err)
		}
		thread := b.control("messages?channel=C0ENG&thread_ts="+root, nil)
		if dig(t, thread, "messages/1/text") != "**ab**cd" || dig(t, thread, "messages/1/stream/state") != "stopped" || dig(t, thread, "messages/1/blocks/1/status") != "complete" {
			t.Errorf("thread: %v", thread)
		}
		if err := b.api.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{ChannelID: slack.ChannelEngineering, ThreadTS: root, Status: "is reading"}); err != nil {
			t.Errorf("status: %v", err)
		}
		if err := b.api.SetAssistantThreadsTitleContext(ctx, slackgo.AssistantThreadsSetTitleParameters{ChannelID: slack.ChannelEngineering, ThreadTS: root, Title: "x"}); err != nil {
			t.Errorf("title: %v", err)
		}
		p := slackgo.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: slack.ChannelEngineering, ThreadTS: root}
		p.AddPrompt("a", "b")
		if err := b.api.SetAssistantThreadsSuggestedPromptsContext(ctx, p); err != nil {
			t.Errorf("prompts: %v", err)
		}
		if got, err := b.api.SetAgentSessionStatusContext(ctx, slackgo.AgentSessionSetStatusParameters{Status: slackgo.AgentSessionStatusProcessing, ChannelID: slack.ChannelEngineering, ThreadTS: root, Title: "x"}); err != nil || got.AgentStatus != "processing" {
			t.Errorf("session: %+v, %v", got, err)
		}
		if got, err := b.api.RenameAgentSessionContext(ctx, slackgo.AgentSessionRenameParameters{ChannelID: slack.ChannelEngineering, ThreadTS: root, Title: "y"}); err != nil || got.Title != "y" {
			t.Errorf("rename: %+v, %v", got, err)
		}
	})
}

func TestSlackGoUploadsAndDownloads(t *testing.T) {
	t.Parallel()
	withSlackGo(t, slack.Options{Scopes: append(slack.DefaultScopes(), "files:read")}, func(t *testing.T, b *bundle) {
		ctx := t.Context()
		root := b.say(slack.UserLinus, slack.ChannelEngineering, "go", "")
		content := strings.Repeat("line\n", 10000)
		sum, err := b.api.UploadFileContext(ctx, slackgo.UploadFileParameters{
			Filename: "out.txt", FileSize: len(content), Reader: strings.NewReader(content), Title: "Output",
			Channel: slack.ChannelEngineering, ThreadTimestamp: root, InitialComment: "see", AltTxt: "output",
		})
		if err != nil {
			t.Fatal(err)
		}
		f, _, _, err := b.api.GetFileInfoContext(ctx, sum.ID, 0, 0)
		if err != nil || f.Title != "Output" || f.Size != len(content) || f.Mimetype != "text/plain" || !slices.Contains(f.Channels, slack.ChannelEngineering) {
			t.Errorf("info: %+v, %v", f, err)
		}
		var got bytes.Buffer
		if err := b.api.GetFileContext(ctx, f.URLPrivateDownload, &got); err != nil || got.String() != content {
			t.Errorf("download: %d bytes, %v", got.Len(), err)
		}
		if err := b.api.DeleteFileContext(ctx, sum.ID); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
}

func TestSlackGoSeesRateLimits(t *testing.T) {
	t.Parallel()
	withSlackGo(t, slack.Options{}, func(t *testing.T, b *bundle) {
		b.control("faults", obj{"method": "chat.postMessage", "status": 429, "retry_after": 7})
		_, _, err := b.api.PostMessageContext(t.Context(), slack.ChannelEngineering, slackgo.MsgOptionText("x", false))
		var limited *slackgo.RateLimitedError
		if !errors.As(err, &limited) || limited.RetryAfter != 7*time.Second {
			t.Errorf("429: %v", err)
		}
		b.control("faults", obj{"method": "chat.postMessage", "status": 500})
		var status slackgo.StatusCodeError
		if _, _, err := b.api.PostMessageContext(t.Context(), slack.ChannelEngineering, slackgo.MsgOptionText("x", false)); !errors.As(err, &status) || status.Code != 500 {
			t.Errorf("500: %v", err)
		}
	})
}

func TestSlackGoReconnectsAfterADisconnect(t *testing.T) {
	t.Parallel()
	withSlackGo(t, slack.Options{}, func(t *testing.T, b *bundle) {
		a := b.connect()
		b.control("faults", obj{"disconnect": "refresh_requested"})
		ts := b.say(slack.UserAda, "D0ADA", "still there?", "")
		if e := a.next(); !strings.Contains(string(e.Request.Payload), ts) {
			t.Errorf("event: %s", e.Request.Payload)
		}
	})
}

// BenchmarkPost measures one chat.postMessage over HTTP, as an app sees it.
func BenchmarkPost(b *testing.B) {
	for _, connected := range []bool{false, true} {
		name := map[bool]string{false: "alone", true: "with an event to a socket"}[connected]
		b.Run(name, func(b *testing.B) {
			bun := newBenchBundle(b)
			if connected {
				bun.serve()
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := bun.api.PostMessageContext(b.Context(), slack.ChannelEngineering, slackgo.MsgOptionText("hello", false)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
