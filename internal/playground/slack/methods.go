package slack

// The scopes that several methods share, as Slack's documentation has them; any one is
// enough to get at the method, which then asks for the one that its conversation's kind
// takes.
var (
	readAny    = []string{"channels:read", "groups:read", "im:read", "mpim:read"}
	historyAny = []string{"channels:history", "groups:history", "im:history", "mpim:history"}
	chatWrite  = []string{"chat:write"}
	agentAny   = []string{"assistant:write", "chat:write"}
)

// methods are all methods of the Web API that the workspace has.
var methods = map[string]method{
	"api.test":              {run: (*Server).apiTest, open: true},
	"auth.test":             {run: (*Server).authTest, limit: tierBoot},
	"apps.connections.open": {run: (*Server).connectionsOpen, app: true, limit: tierBoot},
	"bots.info":             {run: (*Server).botsInfo, scopes: []string{"users:read"}, limit: tier3},
	"team.info":             {run: (*Server).teamInfo, scopes: []string{"team:read"}, limit: tier3},

	"chat.postMessage":   {run: (*Server).chatPostMessage, scopes: chatWrite, limit: tierSpecial},
	"chat.update":        {run: (*Server).chatUpdate, scopes: chatWrite, limit: tier3},
	"chat.delete":        {run: (*Server).chatDelete, scopes: chatWrite, limit: tier3},
	"chat.postEphemeral": {run: (*Server).chatPostEphemeral, scopes: chatWrite, limit: tier4},
	"chat.getPermalink":  {run: (*Server).chatGetPermalink, limit: tierSpecial},
	"chat.startStream":   {run: (*Server).chatStartStream, scopes: chatWrite, limit: tier2},
	"chat.appendStream":  {run: (*Server).chatAppendStream, scopes: chatWrite, limit: tier4},
	"chat.stopStream":    {run: (*Server).chatStopStream, scopes: chatWrite, limit: tier2},

	"reactions.add":    {run: (*Server).reactionsAdd, scopes: []string{"reactions:write"}, limit: tier3},
	"reactions.remove": {run: (*Server).reactionsRemove, scopes: []string{"reactions:write"}, limit: tier2},
	"reactions.get":    {run: (*Server).reactionsGet, scopes: []string{"reactions:read"}, limit: tier3},
	"pins.add":         {run: (*Server).pinsAdd, scopes: []string{"pins:write"}, limit: tier2},
	"pins.remove":      {run: (*Server).pinsRemove, scopes: []string{"pins:write"}, limit: tier2},
	"pins.list":        {run: (*Server).pinsList, scopes: []string{"pins:read"}, limit: tier2},

	"conversations.list":    {run: (*Server).conversationsList, scopes: readAny, limit: tier2},
	"conversations.info":    {run: (*Server).conversationsInfo, scopes: readAny, limit: tier3},
	"conversations.members": {run: (*Server).conversationsMembers, scopes: readAny, limit: tier4},
	"conversations.history": {run: (*Server).conversationsHistory, scopes: historyAny, limit: tier3},
	"conversations.replies": {run: (*Server).conversationsReplies, scopes: historyAny, limit: tier3},
	"conversations.join":    {run: (*Server).conversationsJoin, scopes: []string{"channels:join"}, limit: tier3},
	"conversations.leave":   {run: (*Server).conversationsLeave, scopes: []string{"channels:manage", "channels:write", "groups:write"}, limit: tier3},
	"conversations.open":    {run: (*Server).conversationsOpen, scopes: []string{"channels:manage", "groups:write", "im:write", "mpim:write"}, limit: tier3},

	"users.info":            {run: (*Server).usersInfo, scopes: []string{"users:read"}, limit: tier4},
	"users.list":            {run: (*Server).usersList, scopes: []string{"users:read"}, limit: tier2},
	"users.conversations":   {run: (*Server).usersConversations, scopes: readAny, limit: tier3},
	"users.getPresence":     {run: (*Server).usersGetPresence, scopes: []string{"users:read"}, limit: tier3},
	"dnd.info":              {run: (*Server).dndInfo, scopes: []string{"dnd:read"}, limit: tier3},
	"usergroups.list":       {run: (*Server).usergroupsList, scopes: []string{"usergroups:read"}, limit: tier2},
	"usergroups.users.list": {run: (*Server).usergroupsUsersList, scopes: []string{"usergroups:read"}, limit: tier2},

	"views.open":    {run: (*Server).viewsOpen, limit: tier4},
	"views.push":    {run: (*Server).viewsPush, limit: tier4},
	"views.update":  {run: (*Server).viewsUpdate, limit: tier4},
	"views.publish": {run: (*Server).viewsPublish, limit: tier4},

	"files.getUploadURLExternal":   {run: (*Server).filesGetUploadURL, scopes: []string{"files:write"}, limit: tier4},
	"files.completeUploadExternal": {run: (*Server).filesCompleteUpload, scopes: []string{"files:write"}, limit: tier4},
	"files.info":                   {run: (*Server).filesInfo, scopes: []string{"files:read"}, limit: tier4},
	"files.delete":                 {run: (*Server).filesDelete, scopes: []string{"files:write"}, limit: tier4},
	"files.list":                   {run: (*Server).filesList, scopes: []string{"files:read"}, limit: tier4},

	"assistant.threads.setStatus":           {run: (*Server).threadsSetStatus, scopes: agentAny, limit: tierBoot},
	"assistant.threads.setTitle":            {run: (*Server).threadsSetTitle, scopes: agentAny, limit: tier4},
	"assistant.threads.setSuggestedPrompts": {run: (*Server).threadsSetPrompts, scopes: agentAny, limit: tier4},
	"agents.sessions.setStatus":             {run: (*Server).sessionsSetStatus, scopes: chatWrite, limit: tier3},
	"agents.sessions.rename":                {run: (*Server).sessionsRename, scopes: chatWrite, limit: tier3},
}

func (s *Server) apiTest(c *call) (object, error) {
	if e := c.str("error"); e != "" {
		return nil, &apiError{code: e, extra: object{"args": c.values}}
	}
	return object{"args": c.values}, nil
}

func (s *Server) authTest(*call) (object, error) {
	return object{
		"url": s.base() + "/", "team": teamName, "user": s.ws.user(BotUser).Name,
		"team_id": TeamID, "user_id": BotUser, "bot_id": BotID, "is_enterprise_install": false,
	}, nil
}

func (s *Server) connectionsOpen(c *call) (object, error) {
	return object{"url": "ws://" + c.host + "/socket?ticket=" + s.sockets.ticket() + "&app_id=" + AppID}, nil
}

func (s *Server) botsInfo(c *call) (object, error) {
	if id := c.str("bot"); id != "" && id != BotID {
		return nil, fail("bot_not_found")
	}
	p := s.botProfile()
	delete(p, "team_id")
	return object{"bot": p}, nil
}

func (s *Server) teamInfo(c *call) (object, error) {
	if id := c.str("team"); id != "" && id != TeamID {
		return nil, fail("team_not_found")
	}
	return object{"team": object{
		"id": TeamID, "name": teamName, "url": s.base() + "/", "domain": teamDomain, "email_domain": "",
		"icon": object{"image_default": true}, "avatar_base_url": s.base() + "/files/avatar/",
	}}, nil
}
