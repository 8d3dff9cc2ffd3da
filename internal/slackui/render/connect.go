package render

import (
	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// accountsMost is how many are listed.
const accountsMost = 5

// Accounts is what a person is told, in private, of their accounts.
func Accounts(all []view.Account) Page {
	p := Page{Text: "Your accounts"}
	for _, a := range all[:min(len(all), accountsMost)] {
		p.Blocks = append(p.Blocks, accountBlocks(a)...)
	}
	return p
}

// OfferConnection tells a person a sentence, with the button by which they connect.
func OfferConnection(sentence, host string) Page {
	p := Sentence(sentence)
	p.Blocks = append(p.Blocks, slack.NewActionBlock("account:"+host+":do", button(view.ActionConnect, host, "Connect…", slack.StylePrimary)))
	return p
}

func accountBlocks(a view.Account) []slack.Block {
	host := mrkdwn.CodeWithin(a.Host, 100)
	said, connect := host+" is not connected. There Deckhand acts for you as itself, or not at all.", button(view.ActionConnect, a.Host, "Connect…", slack.StylePrimary)
	does := "Pull requests that you ask for are opened, merged and answered by that account."
	if a.Server {
		said, does = host+" is not connected. The tools of that MCP server are missing in work that you ask for.", "In work that you ask for, its tools act as you."
	}
	buttons := []slack.BlockElement{connect}
	if a.Login != "" {
		said, buttons = "✅ "+host+": you are "+mrkdwn.EscapeWithin(plaintext.OneLine(a.Login), 100)+". "+does, nil
		if a.Dead {
			said, buttons = "⚠️ Your connection to "+host+" has ended: its token is not taken there any more. Nothing is done there for you until you connect again, or disconnect.", []slack.BlockElement{connect}
		}
		buttons = append(buttons, button(view.ActionDisconnect, a.Host, "Disconnect", slack.StyleDanger))
	}
	return []slack.Block{section("account:"+a.Host, said), slack.NewActionBlock("account:"+a.Host+":do", buttons...)}
}

// ConnectByCode is the window with the code that a person enters at the forge.
func ConnectByCode(host, address, code string) slack.ModalViewRequest {
	v := modal("Connect", "Send", "", host)
	v.Blocks.BlockSet = []slack.Block{
		section("", "Open "+mrkdwn.Link(address, host)+", and enter this code there:"),
		section("", "*"+mrkdwn.Code(plaintext.OneLine(code))+"*"),
		contextBlock("", "The code is for you alone: show it to nobody, and enter none that somebody sends you. Deckhand tells you in a direct message when you are connected. You can close this window."),
	}
	return v
}

// ConnectByToken is the form in which a person enters a token.
func ConnectByToken(host, address string, server bool) slack.ModalViewRequest {
	v := modal("Connect", "Connect", view.CallbackConnect, host)
	input := slack.NewPlainTextInputBlockElement(nil, view.TokenField)
	input.MaxLength = 500
	say := "Make a token at " + mrkdwn.Link(address, host) + ", with the scopes " + mrkdwn.Code("write:repository") + ", " + mrkdwn.Code("write:issue") + " and " + mrkdwn.Code("read:user") + ", and enter it here."
	switch {
	case server && address == "":
		say = "Make a token for " + mrkdwn.CodeWithin(host, 100) + " there, and enter it here. The MCP server is called with it in work that you ask for."
	case server:
		say = "Make a token at " + mrkdwn.Link(address, host) + ", and enter it here. The MCP server is called with it in work that you ask for."
	}
	v.Blocks.BlockSet = []slack.Block{
		section("", say),
		slack.NewInputBlock(view.TokenField, plain("Token", 2000), plain("Deckhand keeps it encrypted. Disconnect, and remove it where you have made it, to end that.", 2000), input),
	}
	return v
}
