package access

// Reach is how far what somebody does reaches, and so whose roles count for it.
type Reach string

// The reaches, narrowest first.
const (
	ReachPlace   Reach = ""        // the place alone: the roles of its channel and project
	ReachProject Reach = "project" // every channel of the project: no channel's roles count
	ReachTeam    Reach = "team"    // everything: the team's own roles alone
)

// ReachOfBudget is how far it reaches to raise a budget, by what the budget is for. Who
// administers one channel does not decide what a whole project may spend, and who
// administers a project not what a person may, who works in others, too. What is not
// known is the team's.
func ReachOfBudget(scope string) Reach {
	switch scope {
	case "thread", "channel":
		return ReachPlace
	case "project":
		return ReachProject
	}
	return ReachTeam
}

// Administrators are the users and groups who administer what reaches so far from a
// place. project is empty for the channel's.
func (r Rules) Administrators(reach Reach, project, channel string) []string {
	_, members := r.at(Request{Reach: reach, Project: project, Channel: channel}).Members(Administer)
	return members
}
