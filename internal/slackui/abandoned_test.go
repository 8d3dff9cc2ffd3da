package slackui

import (
	"testing"

	"github.com/slack-go/slack"
)

// TestAMessageThatSaidNoMoreThanWhatWasDone: its turn is left, and nothing of it would remain
// but the text for notifications, which says that the turn goes on.
func TestAMessageThatSaidNoMoreThanWhatWasDone(t *testing.T) {
	t.Parallel()
	status := slack.NewContextBlock("turn:1:0:status0", slack.NewTextBlockObject(slack.MarkdownType, "💭 Thinking…", false, false))
	stop := slack.NewActionBlock("turn:1:0:stop", slack.NewButtonBlockElement("stop", "1", slack.NewTextBlockObject(slack.PlainTextType, "Stop", false, false)))
	m := slack.Message{Msg: slack.Msg{Text: "Deckhand is thinking.", Blocks: slack.Blocks{BlockSet: []slack.Block{status, stop}}}}
	page, changed := abandoned(m, true, "")
	if !changed || page.Text != "Interrupted." || len(page.Blocks) != 1 || page.Blocks[0].ID() != leftBlock {
		t.Errorf("it reads %+v, changed: %v", page, changed)
	}
}
