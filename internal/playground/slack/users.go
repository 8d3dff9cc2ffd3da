package slack

import "slices"

// wireUser renders a user as users.info does.
func (s *Server) wireUser(u *user) object {
	avatar := s.avatarURL(u.ID)
	zone, offset := now().In(u.zone()).Zone()
	profile := object{
		"title": u.Title, "phone": "", "skype": "", "real_name": u.RealName, "real_name_normalized": u.RealName,
		"display_name": u.RealName, "display_name_normalized": u.RealName, "fields": nil, "status_text": "", "status_emoji": "",
		"status_emoji_display_info": []any{}, "status_expiration": 0, "avatar_hash": "ge" + u.Color,
		"image_24": avatar, "image_32": avatar, "image_48": avatar, "image_72": avatar, "image_192": avatar, "image_512": avatar,
		"team": u.TeamID,
	}
	if !u.Bot && slices.Contains(s.scopes, "users:read.email") {
		profile["email"] = u.Name + "@boathouse.example"
	}
	o := object{
		"id": u.ID, "team_id": u.TeamID, "name": u.Name, "deleted": u.Deleted, "color": u.Color,
		"real_name": u.RealName, "tz": u.zone().String(), "tz_label": zone, "tz_offset": offset,
		"profile": profile, "is_admin": u.Admin, "is_owner": u.Admin, "is_primary_owner": u.Admin,
		"is_restricted": u.Restricted, "is_ultra_restricted": u.UltraRestricted, "is_bot": u.Bot, "is_app_user": false,
		"updated": 1732000000, "is_email_confirmed": true, "who_can_share_contact_card": "EVERYONE",
	}
	if u.Bot {
		profile["bot_id"], profile["api_app_id"], profile["always_active"] = BotID, AppID, true
	}
	if u.Stranger {
		o["is_stranger"] = true
		for _, k := range []string{"is_admin", "is_owner", "is_primary_owner", "is_restricted", "is_ultra_restricted"} {
			delete(o, k)
		}
	}
	return o
}

func (s *Server) usersInfo(c *call) (object, error) {
	u := s.ws.user(c.str("user"))
	if u == nil {
		return nil, fail("user_not_found")
	}
	o := s.wireUser(u)
	if c.flag("include_locale") {
		o["locale"] = u.locale()
	}
	return object{"user": o}, nil
}

func (s *Server) usersList(c *call) (object, error) {
	part, meta, err := page(c, s.ws.Users, 1000, 1000)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, u := range part {
		o := s.wireUser(u)
		if c.flag("include_locale") {
			o["locale"] = u.locale()
		}
		out = append(out, o)
	}
	return object{"members": out, "cache_ts": now().Unix(), "response_metadata": meta}, nil
}

func (s *Server) usersGetPresence(c *call) (object, error) {
	if who := c.str("user"); who != "" && s.ws.user(who) == nil {
		return nil, fail("user_not_found")
	}
	return object{"presence": "active", "online": true, "auto_away": false, "manual_away": false, "connection_count": 1}, nil
}

func (s *Server) usergroupsList(c *call) (object, error) {
	out := []any{}
	for _, g := range s.ws.Groups {
		o := object{
			"id": g.ID, "team_id": TeamID, "is_usergroup": true, "is_subteam": true, "name": g.Name, "description": "",
			"handle": g.Handle, "is_external": false, "date_create": 1732000000, "date_update": 1732000000,
			"date_delete": 0, "auto_type": nil, "auto_provision": false, "enterprise_subteam_id": "",
			"created_by": UserAda, "updated_by": UserAda, "deleted_by": nil,
			"prefs": object{"channels": []any{}, "groups": []any{}}, "user_count": len(g.Users),
		}
		if c.flag("include_users") {
			o["users"] = slices.Clone(g.Users)
		}
		out = append(out, o)
	}
	return object{"usergroups": out}, nil
}

func (s *Server) usergroupsUsersList(c *call) (object, error) {
	g := s.ws.group(c.str("usergroup"))
	if g == nil {
		return nil, fail("no_such_subteam")
	}
	return object{"users": slices.Clone(g.Users)}, nil
}
