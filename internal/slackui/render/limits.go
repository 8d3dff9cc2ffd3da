package render

// Slack's limits, in characters unless it says otherwise, and what we allow
// ourselves below them.
const (
	sectionMax     = 3000
	contextMax     = 2000
	fallbackMax    = 3000
	headerMax      = 150
	buttonMax      = 75
	buttonValueMax = 2000
	optionMax      = 75

	modalTitle   = 24
	tableRowsMax = 100

	confirmTitle  = 100
	confirmText   = 300
	confirmButton = 30

	// messageText is how much all blocks of a message hold: Slack refuses somewhat
	// above 10,000.
	messageText   = 9500
	messageBlocks = 50

	// pageText is how much a page of a turn holds. Slack refuses messages whose
	// blocks have more than about 10,000 characters, markdown blocks in all more
	// than 12,000; the rest is for the todo list, the status and the footer.
	pageText = 7500
	// pageBlocks is how many blocks of text and tools a page of a turn holds, of
	// Slack's 50.
	pageBlocks = 40
	// pagesMax is how many messages a turn may fill before the rest goes into a file.
	pagesMax = 4
)
