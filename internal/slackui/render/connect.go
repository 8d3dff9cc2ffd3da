package render

import (
	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
)

// The buttons about a person's own accounts at forges; their values are hosts.
const (
	ActionConnect    = "connect"
	ActionDisconnect = "disconnect"
)

// CallbackConnect is the form in which a person enters a forge's token, TokenField its input.
// What is sent by it is never stored as Slack delivers it.
const (
	CallbackConnect = "connect_token"
	TokenField      = "token"
)

// Account is a forge at which a person can connect their own account, or has; Login is empty
// for not connected, and Dead is true of a connection that has ended.
type Account struct {
	Host, Login string
	Dead        bool
}

// accountsMost is how many are listed.
const accountsMost = 5

// Accounts is what a person is told, in private, of their accounts.
func Accounts(all []Account) Page {
	p := Page{Text: "Your accounts at forges"}
	for _, a := range all[:min(len(all), accountsMost)] {
		p.Blocks = append(p.Blocks, accountBlocks(a)...)
	}
	return p
}

func accountBlocks(a Account) []slack.Block {
	host := mrkdwn.CodeWithin(a.Host, 100)
	said, connect := host+" is not connected. There Deckhand acts for you as itself, or not at all.", button(ActionConnect, a.Host, "Connect…", slack.StylePrimary)
	buttons := []slack.BlockElement{connect}
	if a.Login != "" {
		said, buttons = "✅ "+host+": you are "+mrkdwn.EscapeWithin(mrkdwn.OneLine(a.Login), 100)+". Pull requests that you ask for are opened, merged and answered by that account.", nil
		if a.Dead {
			said, buttons = "⚠️ Your connection to "+host+" has ended: the forge does not take its token any more. Nothing is done there for you until you connect again, or disconnect.", []slack.BlockElement{connect}
		}
		buttons = append(buttons, button(ActionDisconnect, a.Host, "Disconnect", slack.StyleDanger))
	}
	return []slack.Block{section("account:"+a.Host, said), slack.NewActionBlock("account:"+a.Host+":do", buttons...)}
}

// ConnectByCode is the window with the code that a person enters at the forge.
func ConnectByCode(host, address, code string) slack.ModalViewRequest {
	v := modal("Connect", "", host)
	v.Blocks.BlockSet = []slack.Block{
		section("", "Open "+mrkdwn.Link(address, host)+", and enter this code there:"),
		section("", "*"+mrkdwn.Code(mrkdwn.OneLine(code))+"*"),
		contextBlock("", "The code is for you alone: show it to nobody, and enter none that somebody sends you. Deckhand tells you in a direct message when you are connected. You can close this window."),
	}
	return v
}

// ConnectByToken is the form in which a person enters a token.
func ConnectByToken(host, address string) slack.ModalViewRequest {
	v := modal("Connect", CallbackConnect, host)
	v.Submit = plain("Connect", modalTitle)
	input := slack.NewPlainTextInputBlockElement(nil, TokenField)
	input.MaxLength = 500
	v.Blocks.BlockSet = []slack.Block{
		section("", "Make a token at "+mrkdwn.Link(address, host)+", with the scopes "+mrkdwn.Code("write:repository")+", "+mrkdwn.Code("write:issue")+" and "+mrkdwn.Code("read:user")+", and enter it here."),
		slack.NewInputBlock(TokenField, plain("Token", 2000), plain("Deckhand keeps it encrypted. Disconnect, and remove it at the forge, to end that.", 2000), input),
	}
	return v
}
