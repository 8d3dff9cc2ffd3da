package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/slackui/publish"
)

// What Slack has for agents comes to workspaces one by one, and takes an app that is
// declared as an agent. Which of it is there is found out by calls about a conversation that
// does not exist: nobody sees anything of them, and the reason for which Slack refuses them
// tells. Where nothing is told the first real refusal does, see [sessions.refused].

// FeatureState says whether a workspace has a feature.
type FeatureState string

// The states of a feature.
const (
	FeatureThere   FeatureState = "there"
	FeatureMissing FeatureState = "missing"
	// FeatureUntold is what Slack has not said; it shows when the feature is used first.
	FeatureUntold FeatureState = "untold"
)

// Feature is something that Slack has for agents, as far as this workspace, and the app in
// it, has it.
type Feature struct {
	Name  string
	State FeatureState
	// Code is why it is missing, in Slack's words ("unknown_method").
	Code string
	// Without says what people do not see where it is missing.
	Without string
	// Cure says what an admin can do about it; empty where it is up to Slack.
	Cure string

	method publish.Method // the one that is left alone without it, or empty
	block  string         // the type of block that is left out without it, or empty
}

// Nobody ever has a channel with this id, and no message is as old as this.
const (
	noChannel = "C00000000"
	noMessage = "1000000000.000001"
)

// askFeature is a call whose refusal tells.
type askFeature struct {
	name   string
	method publish.Method
	call   func(context.Context, *slack.Client, identity) error
}

var askFeatures = []askFeature{
	{"titles of threads and Slack's Stop button", publish.SetSession, func(ctx context.Context, c *slack.Client, _ identity) error {
		_, err := c.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{Status: slack.AgentSessionStatusActive, ChannelID: noChannel, ThreadTS: noMessage})
		return err
	}},
	{"status lines", publish.SetStatus, func(ctx context.Context, c *slack.Client, _ identity) error {
		return c.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{ChannelID: noChannel, ThreadTS: noMessage})
	}},
	{"suggestions of what to say", publish.SetPrompts, func(ctx context.Context, c *slack.Client, _ identity) error {
		return c.SetAssistantThreadsSuggestedPromptsContext(ctx, slack.AssistantThreadsSetSuggestedPromptsParameters{
			ChannelID: noChannel, ThreadTS: noMessage, Prompts: []slack.AssistantThreadsPrompt{{Title: "Help", Message: "help"}},
		})
	}},
	{"streams with tasks", publish.StartStream, func(ctx context.Context, c *slack.Client, self identity) error {
		_, _, err := c.StartStreamContext(ctx, noChannel, slack.MsgOptionTS(noMessage), slack.MsgOptionRecipientTeamID(self.TeamID), slack.MsgOptionRecipientUserID(self.UserID))
		return err
	}},
}

// scopeFeatures need a scope and nothing else.
var scopeFeatures = []struct{ name, scope, without string }{
	{"files that people attach", "files:read", "files that people attach are not read"},
	{"files from Deckhand", "files:write", "long results, charts and CSV are not uploaded"},
}

// blockFeatures are types of blocks, with the least that there is of one.
var blockFeatures = []struct {
	name    string
	block   slack.Block
	without string
}{
	{"Markdown", slack.NewMarkdownBlock("", "x"), "answers are shown in sections of text"},
	{"tables", leastTable(), "tables are shown as text"},
	{"charts", slack.NewDataVisualizationBlock("x", slack.NewDataVisualizationBarChart(slack.NewDataVisualizationAxisConfig("x"),
		slack.NewDataVisualizationDataSeries("x", slack.NewDataVisualizationDataPoint("x", 1)))), "charts are pictures"},
	{"feedback buttons", slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement("feedback",
		slack.NewFeedbackButton(slack.NewTextBlockObject(slack.PlainTextType, "Good", false, false), "good"),
		slack.NewFeedbackButton(slack.NewTextBlockObject(slack.PlainTextType, "Bad", false, false), "bad"))), "answers are not rated"},
}

func leastTable() *slack.TableBlock {
	t := slack.NewTableBlock("")
	t.AddRow(slack.NewTableRichTextCell(slack.NewRichTextSection(slack.NewRichTextSectionTextElement("x", nil))))
	return t
}

// isThere and isMissing are what Slack says of a call about what does not exist where it has
// the feature, and where it has it not. What is in neither tells nothing.
var (
	isThere = []string{
		"ok", "channel_not_found", "thread_not_found", "message_not_found", "invalid_thread_ts", "session_not_found", "not_in_channel",
		"invalid_arguments", "invalid_channel", "cant_update_message", "missing_recipient_user_id", "missing_recipient_team_id", "user_not_in_channel", "user_not_found",
	}
	isMissing = []string{
		"unknown_method", "method_deprecated", "deprecated_endpoint", "missing_scope", "not_allowed_token_type", "no_permission", "access_denied", "not_authorized",
		"team_access_not_granted", "feature_not_enabled", "feature_disabled", "not_allowed", "streaming_not_allowed", "paid_only", "paid_teams_only", "plan_upgrade_required",
	}
)

const declareAgent = "declare the app as an agent: update it from deploy/slack-manifest.yaml (agent_view), and install it again"

// known are a workspace's features, once they have been asked for.
type known struct {
	mu       sync.Mutex
	features []Feature
}

// Features says which of what Slack has for agents is there. It makes 5 calls, none of which
// anybody sees, and remembers what it was told; what could not be reached is asked again the
// next time.
func (w *Workspace) Features(ctx context.Context) []Feature {
	w.known.mu.Lock()
	defer w.known.mu.Unlock()
	if w.known.features != nil {
		return slices.Clone(w.known.features)
	}
	var out []Feature
	whole := true
	for _, ask := range askFeatures {
		f := Feature{Name: ask.name, method: ask.method, Without: without[ask.method]}
		code, err := refusedWith(ask.call(ctx, w.client, w.self))
		whole = whole && err == nil
		switch {
		case slices.Contains(isThere, code):
			f.State = FeatureThere
		case slices.Contains(isMissing, code):
			f.State, f.Code = FeatureMissing, code
			if !w.declared() || code == "not_authorized" && ask.method != publish.StartStream {
				f.Cure = declareAgent
			}
		default:
			f.State, f.Code = FeatureUntold, code
		}
		out = append(out, f)
	}
	for _, s := range scopeFeatures {
		f := Feature{Name: s.name, State: FeatureThere, Without: s.without}
		switch {
		case w.scopes == nil:
			f.State = FeatureUntold
		case !slices.Contains(w.scopes, s.scope):
			f.State, f.Code, f.Cure = FeatureMissing, "missing_scope", "add the scope "+s.scope+" to the app, and install it again"
		}
		out = append(out, f)
	}
	blocks, err := w.blocks(ctx)
	out = append(out, blocks...)
	if whole && err == nil {
		w.known.features = slices.Clone(out)
	}
	return out
}

// declared reports whether the app is declared as an agent, as far as is known: Slack gives
// each such app the scope.
func (w *Workspace) declared() bool {
	return w.scopes == nil || slices.Contains(w.scopes, "assistant:write")
}

// blocks asks which types of blocks are there, by an edit of what does not exist. Where Slack
// looks for the message first nothing is told.
func (w *Workspace) blocks(ctx context.Context) (out []Feature, err error) {
	all := make([]slack.Block, len(blockFeatures))
	for i, b := range blockFeatures {
		all[i] = b.block
	}
	_, _, _, err = w.client.UpdateMessageContext(ctx, noChannel, noMessage, slack.MsgOptionText("x", false), slack.MsgOptionBlocks(all...))
	answer, _ := errors.AsType[slack.SlackErrorResponse](err)
	code, err := refusedWith(err)
	refused := func(i int) bool {
		return slices.ContainsFunc(answer.ResponseMetadata.Messages, func(m string) bool {
			return strings.Contains(m, "unsupported") && strings.Contains(m, "[json-pointer:/blocks/"+strconv.Itoa(i)+"/type]")
		})
	}
	named := false
	for i := range all {
		named = named || refused(i)
	}
	for i, b := range blockFeatures {
		f := Feature{Name: b.name, State: FeatureUntold, Without: b.without, block: string(b.block.BlockType())}
		switch {
		case refused(i):
			f.State, f.Code = FeatureMissing, code
		case named: // Slack has read them all
			f.State = FeatureThere
		}
		out = append(out, f)
	}
	return out, err
}

// refusedWith is the word with which Slack refused a call; an error if it has not answered.
func refusedWith(err error) (code string, _ error) {
	code = publish.Code(err)
	switch {
	case err == nil:
		return "ok", nil
	case code != "" && !publish.IsTemporary(err):
		return code, nil
	}
	return "", fmt.Errorf("ask Slack what it has: %w", err)
}

// FeaturesLine says in a line which features are there and which are not.
func FeaturesLine(features []Feature) string {
	names := map[FeatureState][]string{}
	for _, f := range features {
		name := f.Name
		if f.State == FeatureMissing {
			name += " (" + f.Code + "), so " + f.Without
		}
		names[f.State] = append(names[f.State], name)
	}
	var parts []string
	for _, p := range []struct {
		state          FeatureState
		is, separation string
	}{{FeatureThere, "available here: ", ", "}, {FeatureMissing, "not available here: ", "; "}, {FeatureUntold, "known after the first use: ", ", "}} {
		if list := names[p.state]; len(list) > 0 {
			parts = append(parts, p.is+strings.Join(list, p.separation))
		}
	}
	return "Slack's features: " + strings.Join(parts, " · ")
}

// featuresLimit bounds the calls that find out what the workspace has.
const featuresLimit = 45 * time.Second

// learnFeatures finds out what the workspace has, and leaves alone what it has not.
func (a *App) learnFeatures(ctx context.Context) {
	if a.features == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, featuresLimit)
	defer cancel()
	found := a.features(ctx)
	if ctx.Err() != nil {
		return // the first refusals tell
	}
	var blocks []string
	streams := true
	for _, f := range found {
		switch {
		case f.State != FeatureMissing:
		case f.method == publish.StartStream:
			streams = false
		case f.method != "":
			a.screen.sessions.lack(f.method)
		case f.block != "":
			blocks = append(blocks, f.block)
		}
	}
	a.screen.publisher.Without(!streams, blocks)
	a.screen.c.Log.Info(FeaturesLine(found), zap.Int("features", len(found)))
}
