package policy

// The bot's own tools, of package tools. Those that act at the forge leave the sandbox: they are
// asked about in every posture unless a rule decides, and no grant covers them, since each is
// for what people were shown.
const (
	ownServer = "deckhand"
	ownMerge  = "mcp__" + ownServer + "__merge_pull_request"
	// A file that is posted in its own thread is decided as one that is read.
	ownPosts = "mcp__" + ownServer + "__post_file"
	// A page is started and looked at in a sandbox of its own, which reaches nothing.
	ownPreview = "mcp__" + ownServer + "__preview"
)

var (
	ownReads = words("mcp__" + ownServer + "__read_pull_request mcp__" + ownServer + "__read_thread mcp__" + ownServer + "__skill")
	ownExits = words("mcp__" + ownServer + "__open_pull_request " + ownMerge + " mcp__" + ownServer + "__reply_to_review")
)

var dangerMerge = Danger{"merge", "It merges into a branch that others build on and release from. What follows from it cannot be taken back."}

const defaultOwn = "default: reading the thread and its own pull request is allowed"
