package access

// Call is how those who may decide about a request learn that it waits for them.
type Call string

// The ways to call people. Where the thread is a direct message nobody else can see it, and
// others are called as by [CallDirect].
const (
	CallAuto    Call = "auto"    // CallDirect where few are called, and read the channel; else CallThread
	CallThread  Call = "thread"  // the card in the thread names them, and they follow it from then on
	CallChannel Call = "channel" // so it does, and the channel shows it too
	CallDirect  Call = "dm"      // each gets the card as a direct message
)

// Calls are the ways, as they are written in deckhand.yaml.
var Calls = []string{string(CallAuto), string(CallThread), string(CallDirect), string(CallChannel)}

// Called are the users and groups to be called to decide under the terms: the person who
// asked about a question, those whom the policy names, or the approvers; the admins, who
// may as well, only where there are none.
func (r Rules) Called(t Terms, project, channel string) []string {
	switch roles := r.In(project, channel); {
	case t.Question:
		return []string{t.Requester}
	case len(t.Approvers) > 0:
		return t.Approvers
	case len(roles.Approvers) > 0:
		return roles.Approvers
	default:
		return roles.Admins
	}
}
