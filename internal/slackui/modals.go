package slackui

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// windows are what one person sees over everything else, and their own page.
type windows struct{ *poster }

// Open implements [chat.Screen]. A trigger lives for three seconds, so it does not queue. Whoever
// clicked is told where Slack does not open it, and what to do instead.
func (a *windows) Open(ctx context.Context, in *chat.Incoming, form view.Form) (opened chat.Window, err error) {
	modal := render.Window(form, a.rendering())
	err = a.showModal(modal, func(modal slack.ModalViewRequest) error {
		response, err := a.api.OpenViewContext(ctx, in.Trigger(), modal)
		if err == nil {
			opened = chat.Window{ID: response.View.ID, Hash: response.View.Hash}
		}
		return err
	})
	return opened, a.explainModal(in, modal, err)
}

// Update implements [chat.Screen].
func (a *windows) Update(ctx context.Context, in *chat.Incoming, open chat.Window, form view.Form) error {
	modal := render.Window(form, a.rendering())
	err := a.showModal(modal, func(modal slack.ModalViewRequest) error {
		_, err := a.api.UpdateViewContext(ctx, modal, "", open.Hash, open.ID)
		return err
	})
	if open != in.Click.Window && publish.RefusedAs(err, "hash_conflict", "not_found") {
		return nil // it was closed, or shows something else already
	}
	return a.explainModal(in, modal, err)
}

// showModal sends a modal with as much of its blocks as Slack takes.
func (a *windows) showModal(modal slack.ModalViewRequest, send func(slack.ModalViewRequest) error) error {
	return a.publisher.Reduced(publish.InModal, "modal "+modal.CallbackID, render.Page{Blocks: modal.Blocks.BlockSet}, func(p render.Page) error {
		modal.Blocks.BlockSet = p.Blocks
		return send(modal)
	})
}

// explainModal tells the person who clicked why there is no modal, where they can do
// something about it.
func (a *windows) explainModal(in *chat.Incoming, modal slack.ModalViewRequest, err error) error {
	if err == nil {
		return nil
	}
	sentence := ""
	switch {
	case publish.RefusedAs(err, "expired_trigger_id"):
		sentence = "That took longer than the three seconds that Slack waits for a window. Click again."
	case publish.RefusedAs(err, "exchanged_trigger_id", "trigger_exchanged", "invalid_trigger_id"):
		sentence = "Slack opens one window for each click, and this click had one. Click again."
	case publish.RefusedAs(err, "hash_conflict", "not_found"):
		sentence = "The window has changed since, or was closed. Open it again."
	case publish.Refuses(err):
		sentence = strings.TrimSpace("Slack does not show this window: there is too much in it, or something that this workspace does not take. " + chat.InsteadOf(modal.CallbackID, modal.PrivateMetadata))
	default:
		return fmt.Errorf("show a modal: %w", err)
	}
	a.c.Log.Warn("slack does not show a modal", zap.String("modal", modal.CallbackID), zap.String("user", in.Row.UserID), zap.Error(err))
	a.chat.Answer(in, sentence)
	return nil
}

// homePages sends a home tab with as much of its blocks as Slack takes, and a small one
// where it takes none. hash is Slack's of what it has then.
func (a *windows) homePages(ctx context.Context, request slack.PublishViewContextRequest) (hash string, err error) {
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

// ShowHome implements [chat.Screen]. A refresh, at the lowest priority, takes the place
// of nothing that another replica has published since: then the tab is that one's.
func (a *windows) ShowHome(user string, home view.Home, refresh bool) {
	tab, priority := render.Home(home), publish.Normal
	if refresh {
		priority = publish.Live
	}
	raw, err := json.Marshal(tab)
	if err != nil {
		a.c.Log.Error("a home tab", zap.Error(err))
		return
	}
	if fresh := a.chat.Homes.Sent(user, sha256.Sum256(raw)); !fresh && refresh {
		return
	}
	a.publisher.Once(publish.Call{
		Method: publish.PublishView, Key: "home/" + user, Replace: true, Priority: priority, Group: user, What: "home tab",
		Do: func(ctx context.Context) error {
			request := slack.PublishViewContextRequest{UserID: user, View: tab}
			if hash := a.chat.Homes.HashOf(user); refresh && hash != "" {
				request.Hash = &hash
			}
			got, err := a.homePages(ctx, request)
			switch {
			case publish.RefusedAs(err, "hash_conflict"):
				a.chat.Homes.Has(user, "")
				return nil
			case err == nil:
				a.chat.Homes.Has(user, got)
			}
			return err
		},
	})
}
