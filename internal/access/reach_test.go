package access

import (
	"fmt"
	"testing"
)

// TestWhoRaisesABudget: those who administer all that it is for, and nobody else. They
// are the ones whom its card names.
func TestWhoRaisesABudget(t *testing.T) {
	t.Parallel()
	everybody := []string{"U0ADMIN", "U0WEBADMIN", "U0OPSADMIN", "U0APPROVER", "U0USER", "U0API", "U1"}
	for _, tt := range []struct {
		scope, project, channel, want string
	}{
		{"thread", "web", "C0OPS", "[U0ADMIN U0WEBADMIN U0OPSADMIN]"},
		{"channel", "web", "C0OPS", "[U0ADMIN U0WEBADMIN U0OPSADMIN]"},
		{"channel", "web", "C0WEB", "[U0ADMIN U0WEBADMIN]"},
		{"channel", "api", "C0API", "[U0ADMIN]"},
		{"thread", "api", "C0OPS", "[U0ADMIN U0OPSADMIN]"}, // a thread of a project that the channel had once
		{"project", "web", "C0OPS", "[U0ADMIN U0WEBADMIN]"},
		{"project", "web", "C0API", "[U0ADMIN U0WEBADMIN]"},
		{"project", "", "C0OPS", "[U0ADMIN U0WEBADMIN]"},
		{"person", "web", "C0OPS", "[U0ADMIN]"},
		{"workspace", "web", "C0OPS", "[U0ADMIN]"},
		{"", "web", "C0OPS", "[U0ADMIN]"},
		{"galaxy", "web", "C0OPS", "[U0ADMIN]"},
	} {
		reach := ReachOfBudget(tt.scope)
		may := []string{}
		for _, user := range everybody {
			w := &world{groups: map[string]Group{"S0ADMINS": {}}}
			q := Request{Act: Administer, Team: us, User: user, Channel: tt.channel, Project: tt.project, Reach: reach}
			if w.decide(t, us, func(f Facts) Answer { return house.Authorise(q, f) }).Allowed {
				may = append(may, user)
			}
		}
		if got := fmt.Sprint(may); got != tt.want {
			t.Errorf("%q of %s in %s: %s may, want %s", tt.scope, tt.project, tt.channel, got, tt.want)
		}
		named := []string{}
		for _, m := range house.Administrators(reach, tt.project, tt.channel) {
			if m != "S0ADMINS" {
				named = append(named, m)
			}
		}
		if got := fmt.Sprint(named); got != tt.want {
			t.Errorf("%q of %s in %s: the card names %s, want %s", tt.scope, tt.project, tt.channel, got, tt.want)
		}
	}
}
