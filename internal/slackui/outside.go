package slackui

import (
	"context"
	"io"

	"github.com/slack-go/slack"

	costscreen "deckhand/internal/slackui/costs"
	"deckhand/internal/slackui/publish"
)

// webAPI is what the app needs of Slack's Web API beside looking people up;
// [*slack.Client] has it. All but what opens and reads goes through the publisher.
type webAPI interface {
	publish.API
	costscreen.API
	AddReactionContext(ctx context.Context, name string, item slack.ItemRef) error
	RemoveReactionContext(ctx context.Context, name string, item slack.ItemRef) error
	DeleteMessageContext(ctx context.Context, channel, ts string) (channelID, deletedTS string, err error)
	GetUploadURLExternalContext(ctx context.Context, p slack.GetUploadURLExternalParameters) (*slack.GetUploadURLExternalResponse, error)
	UploadToURL(ctx context.Context, p slack.UploadToURLParameters) error
	CompleteUploadExternalContext(ctx context.Context, p slack.CompleteUploadExternalParameters) (*slack.CompleteUploadExternalResponse, error)

	SetAgentSessionStatusContext(ctx context.Context, p slack.AgentSessionSetStatusParameters) (*slack.AgentSessionSetStatusResponse, error)
	SetAssistantThreadsSuggestedPromptsContext(ctx context.Context, p slack.AssistantThreadsSetSuggestedPromptsParameters) error
	SetAssistantThreadsTitleContext(ctx context.Context, p slack.AssistantThreadsSetTitleParameters) error
	SetAssistantThreadsStatusContext(ctx context.Context, p slack.AssistantThreadsSetStatusParameters) error
	GetFileInfoContext(ctx context.Context, id string, count, page int) (*slack.File, []slack.Comment, *slack.Paging, error)
	GetFileContext(ctx context.Context, address string, to io.Writer) error

	OpenViewContext(ctx context.Context, triggerID string, view slack.ModalViewRequest) (*slack.ViewResponse, error)
	UpdateViewContext(ctx context.Context, view slack.ModalViewRequest, externalID, hash, viewID string) (*slack.ViewResponse, error)
	PublishViewContext(ctx context.Context, r slack.PublishViewContextRequest) (*slack.ViewResponse, error)

	GetConversationsForUserContext(ctx context.Context, p *slack.GetConversationsForUserParameters) (channels []slack.Channel, cursor string, err error)
	GetConversationRepliesContext(ctx context.Context, p *slack.GetConversationRepliesParameters) (msgs []slack.Message, more bool, cursor string, err error)
}
