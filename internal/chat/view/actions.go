package view

import "strings"

// What buttons, menus and inputs of ours do. Of those about a request the value is the approval's
// id, of those that allow it its [Ref].
const (
	ActionApprove       = "approve"        // of a dangerous call it opens a window to confirm
	ActionApproveTicked = "approve_ticked" // value: the Refs of all rows that could be ticked
	ActionTick          = "tick"           // which rows of a card; see [Ticked]
	ActionDeny          = "deny"
	ActionDenyAll       = "deny_all" // value: as of ActionApproveTicked
	ActionDenyReason    = "deny_reason"
	ActionAnswer        = "answer"
	ActionAnswerOther   = "answer_other"
	ActionPick          = "pick"  // an answer to a question
	ActionOther         = "other" // one in words of their own
	ActionEdit          = "edit_input"
	ActionAlways        = "always"
	ActionEditsBelow    = "edits_below"
	ActionViewInput     = "view_input"
	ActionViewPage      = "view_page" // value: an [InputPage]
	ActionMore          = "more"      // a menu of others; see [ParseMore]

	ActionSay         = "say"          // value: the command that it stands for
	ActionInstead     = "ask_claude"   // value: the ts of the message that is given to the model
	ActionPickProject = "pick_project" // value: the message's ts, its author, and the project or nothing
	ActionStop        = "stop"         // value: the turn
	ActionContinue    = "continue"     // value: the turn
	ActionSendNow     = "send_now"     // value: the inbox's row of the prompt
	ActionDrop        = "drop"         // value: the same

	ActionFeedback  = "feedback"   // value: see [ParseFeedback]
	ActionDiff      = "diff"       // below a turn; value: a [DiffPage]
	ActionDiffPage  = "diff_page"  // in the window
	ActionSteps     = "steps"      // below a turn; value: a [StepsPage]
	ActionStepsPage = "steps_page" // in the window
	ActionStep      = "step"       // beside a step in the window
	ActionStepsBack = "steps_back" // from a step to the list
	ActionStepPage  = "step_page"  // in a step

	ActionOpenPull    = "pull_open"    // value: the turn
	ActionAddressPull = "pull_address" // value: the pull request
	ActionMergePull   = "pull_merge"   // value: the pull request
	ActionConnect     = "connect"      // value: a forge's host
	ActionDisconnect  = "disconnect"   // value: a forge's host

	ActionRevoke      = "revoke"       // value: the grant
	ActionBudgetRaise = "budget_raise" // value: the notice
	ActionBudgetModel = "budget_model" // value: the notice
	ActionBudgetLeave = "budget_leave" // value: the notice

	ActionHomeWhose   = "home_whose"
	ActionHomeState   = "home_state"
	ActionHomeProject = "home_project"
	ActionHomeEarlier = "home_earlier"
	ActionHomeLater   = "home_later"
)

// The forms and windows. What one is given to keep is the [Ref] of its approval, where nothing
// else is said.
const (
	CallbackDenyReason = "deny_reason" // the approval's id
	CallbackAnswer     = "answer_other"
	CallbackConfirm    = "confirm"
	CallbackGrant      = "grant"
	CallbackEdit       = "edit_input"
	CallbackInput      = "input" // an [InputPage]
	CallbackDiff       = "diff"  // a [DiffPage]
	CallbackSteps      = "steps" // a [StepsPage]
	CallbackAsk        = "ask"   // an [AskPlace]
	CallbackBudget     = "budget"
	CallbackFeedback   = "feedback"      // the turn
	CallbackConnect    = "connect_token" // the forge's host. What is sent by it is never stored
)

// ActionOf is what a button does: where several of a block do the same, a number or a word after
// a colon tells them apart, since their ids must differ.
func ActionOf(id string) string {
	action, _, _ := strings.Cut(id, ":")
	return action
}

// Asks reports whether a button tells that a card waits: each card that does has such a one.
func Asks(action string) bool {
	return action == ActionApprove || action == ActionDeny || action == ActionDenyReason || action == ActionAnswer
}

// Stays reports whether a button stays below a turn that is over or was left: it shows, and changes nothing.
func Stays(action string) bool { return action == ActionSteps || action == ActionDiff }

// ParseMore is the action and the value of an entry of the menu beside a request's buttons.
func ParseMore(entry string) (action, value string) {
	action, value, _ = strings.Cut(entry, " ")
	return action, value
}

// HomeBlock names the part of somebody's own page that holds the buttons of an approval. A click
// from there comes from no other.
func HomeBlock(approvalID string) string { return "home:" + approvalID }
