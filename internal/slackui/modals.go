package slackui

import (
	"context"
	"fmt"
	"strings"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// open shows a modal. A trigger lives for three seconds, so it does not queue. Whoever
// clicked is told where Slack does not open it, and what to do instead.
func (a *App) open(ctx context.Context, in *incoming, view slack.ModalViewRequest) error {
	_, err := a.openView(ctx, in, view)
	return err
}

// openView is open, for who goes on with the modal as Slack has it; it is nil where Slack
// did not open it.
func (a *App) openView(ctx context.Context, in *incoming, view slack.ModalViewRequest) (opened *slack.View, err error) {
	err = a.showModal(view, func(view slack.ModalViewRequest) error {
		response, err := a.api.OpenViewContext(ctx, in.trigger(), view)
		if err == nil {
			opened = &response.View
		}
		return err
	})
	return opened, a.explainModal(in, view, err)
}

// trigger is Slack's leave to open a modal.
func (in *incoming) trigger() string {
	if in.shortcut != nil {
		return in.shortcut.TriggerID
	}
	return in.click.TriggerID
}

// updateModal shows another state of the modal that was clicked in.
func (a *App) updateModal(ctx context.Context, in *incoming, view slack.ModalViewRequest) error {
	err := a.showModal(view, func(view slack.ModalViewRequest) error {
		_, err := a.api.UpdateViewContext(ctx, view, "", in.click.View.Hash, in.click.View.ID)
		return err
	})
	return a.explainModal(in, view, err)
}

// showModal sends a modal with as much of its blocks as Slack takes.
func (a *App) showModal(view slack.ModalViewRequest, send func(slack.ModalViewRequest) error) error {
	return a.publisher.Reduced(publish.InModal, "modal "+view.CallbackID, render.Page{Blocks: view.Blocks.BlockSet}, func(p render.Page) error {
		view.Blocks.BlockSet = p.Blocks
		return send(view)
	})
}

// explainModal tells the person who clicked why there is no modal, where they can do
// something about it.
func (a *App) explainModal(in *incoming, view slack.ModalViewRequest, err error) error {
	if err == nil {
		return nil
	}
	sentence := ""
	switch {
	case refusedAs(err, "expired_trigger_id"):
		sentence = "That took longer than the three seconds that Slack waits for a window. Click again."
	case refusedAs(err, "exchanged_trigger_id"), refusedAs(err, "trigger_exchanged"), refusedAs(err, "invalid_trigger_id"):
		sentence = "Slack opens one window for each click, and this click had one. Click again."
	case refusedAs(err, "hash_conflict"), refusedAs(err, "not_found"):
		sentence = "The window has changed since, or was closed. Open it again."
	case publish.Refuses(err):
		sentence = strings.TrimSpace("Slack does not show this window: there is too much in it, or something that this workspace does not take. " + insteadOfModal(view))
	default:
		return fmt.Errorf("show a modal: %w", err)
	}
	a.log.Warn("slack does not show a modal", zap.String("modal", view.CallbackID), zap.String("user", in.store.UserID), zap.Error(err))
	a.answer(in, sentence)
	return nil
}

// insteadOfModal says how to do what a modal is for without it. The forms about an approval
// have its id as their metadata.
func insteadOfModal(view slack.ModalViewRequest) string {
	code := strings.ToUpper(view.PrivateMetadata[:min(5, len(view.PrivateMetadata))])
	if reply := forms[view.CallbackID].reply; reply != "" {
		return "Reply “" + fmt.Sprintf(reply, code) + "” in the request's thread."
	}
	return ""
}

// homePages sends a home tab with as much of its blocks as Slack takes, and a small one
// where it takes none. hash is Slack's of what it has then.
func (a *App) homePages(ctx context.Context, request slack.PublishViewContextRequest) (hash string, err error) {
	send := func(p render.Page) error {
		request.View.Blocks.BlockSet = p.Blocks
		published, err := a.api.PublishViewContext(ctx, request)
		if err == nil {
			hash = published.Hash
		}
		return err
	}
	err = a.publisher.Reduced(publish.InHome, "home tab", render.Page{Blocks: request.View.Blocks.BlockSet}, send)
	if publish.Refuses(err) {
		err = send(render.SmallHome())
	}
	return hash, err
}
