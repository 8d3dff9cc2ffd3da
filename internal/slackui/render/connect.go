package render

import (
	"net/url"

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
func ConnectByToken(f view.ConnectByToken) slack.ModalViewRequest {
	say := "Make a token at " + mrkdwn.Link(f.Address, f.Host) + ", with the scopes " + mrkdwn.Code("write:repository") + ", " + mrkdwn.Code("write:issue") + " and " + mrkdwn.Code("read:user") + ", and enter it here."
	switch {
	case f.Server && f.Address == "":
		say = "Make a token for " + mrkdwn.CodeWithin(f.Host, 100) + " there, and enter it here. The MCP server is called with it in work that you ask for."
	case f.Server:
		say = "Make a token at " + mrkdwn.Link(f.Address, f.Host) + ", and enter it here. The MCP server is called with it in work that you ask for."
	}
	if f.Why != "" {
		say = mrkdwn.EscapeWithin(f.Why, 500) + ". " + say
	}
	return connecting(f.Host, "Token", "Deckhand keeps it encrypted. Disconnect, and remove it where you have made it, to end that.", 500, section("", say))
}

// ConnectByLink is the form with the link by which a person agrees, into which they paste where their browser was sent.
func ConnectByLink(f view.ConnectByLink) slack.ModalViewRequest {
	at := f.Host
	if u, err := url.Parse(f.Link); err == nil {
		at = u.Host
	}
	return connecting(f.Host+"\n"+f.Kept, "Address of that page", "The form works for ten minutes. Deckhand keeps the token encrypted, and calls the MCP server with it in work that you ask for.", 3000,
		section("", "1. Open "+mrkdwn.Link(f.Link, at)+", and agree there that Deckhand uses "+mrkdwn.CodeWithin(f.Host, 100)+" as you."),
		section("", "2. After you agree, your browser shows a page that does not load. Copy its address and paste it here."),
		contextBlock("", "The address is for this form alone: show it to nobody, and open no such link that somebody sends you."))
}

// connecting is a form with one input.
func connecting(state, label, hint string, most int, above ...slack.Block) slack.ModalViewRequest {
	v := modal("Connect", "Connect", view.CallbackConnect, state)
	input := slack.NewPlainTextInputBlockElement(nil, view.TokenField)
	input.MaxLength = most
	v.Blocks.BlockSet = append(above, slack.NewInputBlock(view.TokenField, plain(label, 2000), plain(hint, 2000), input))
	return v
}
