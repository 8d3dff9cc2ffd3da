package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
)

// asksHost has a turn run in which people are asked about a host.
func asksHost(s *stage, host string) (p *playedProcess, id string) {
	s.prompt(here)
	p = s.process(here)
	p.connect(host)
	synctest.Wait()
	s.heard()
	return p, s.pending(here)
}

// rows are the approvals of the thread, each as its host and how it ended.
func (s *stage) rows() string {
	var out []string
	for _, a := range s.store.Approvals() {
		out = append(out, fmt.Sprintf("%s %s via %q, delivered %t", ask.HostOf(a), a.Status, a.DecidedVia, a.Delivered))
	}
	return strings.Join(out, "\n")
}

// What becomes of a connection that waits for people, and of the next to the same host.
func TestAHostIsAskedOnceInATurn(t *testing.T) {
	t.Parallel()
	const reached = "write.example reached"
	for name, tt := range map[string]struct {
		host  string
		then  func(s *stage, p *playedProcess, id string)
		first string // of what the connection is told
		next  string // what the next one is told; empty: it waits
		rows  string
		state string
	}{
		"allowed": {
			hostWrite, func(s *stage, _ *playedProcess, id string) { s.decide(id, approvals.Allowed) }, reached, reached,
			`write.example:443 allowed via "button", delivered true`, "running",
		},
		"denied": {
			hostWrite, func(s *stage, _ *playedProcess, id string) { s.decide(id, approvals.Denied) },
			"write.example refused: The person denied this. Do not try", "write.example refused: The person denied this. Do not try",
			`write.example:443 denied via "button", delivered true`, "running",
		},
		"allowed elsewhere": {hostWrite, func(s *stage, _ *playedProcess, id string) {
			s.decided(s.store.Decide(context.Background(), approvals.Decision{ApprovalID: id, Status: approvals.Allowed, By: "U3", Via: "button"}))
		}, reached, reached, `write.example:443 allowed via "button", delivered true`, "running"},
		"it has left, and it is allowed": {hostWrite, func(s *stage, p *playedProcess, id string) {
			p.disconnect()
			synctest.Wait()
			s.decide(id, approvals.Allowed)
		}, "", reached, `write.example:443 allowed via "button", delivered false`, "running"},
		"it has left, and it is denied elsewhere": {hostWrite, func(s *stage, p *playedProcess, id string) {
			p.disconnect()
			synctest.Wait()
			s.decided(s.store.Decide(context.Background(), approvals.Decision{ApprovalID: id, Status: approvals.Denied, By: "U3", Via: "button"}))
		}, "", "write.example refused: The person denied this", `write.example:443 denied via "button", delivered false`, "running"},
		"it has left": {hostWrite, func(_ *stage, p *playedProcess, _ string) { p.disconnect() }, "", "", `write.example:443 pending via "", delivered false`, "awaiting"},
		"it has left and come back": {hostWrite, func(s *stage, p *playedProcess, id string) {
			p.disconnect()
			p.connect(hostWrite)
			synctest.Wait()
			s.decide(id, approvals.Allowed)
		}, reached, reached, `write.example:443 allowed via "button", delivered true`, "running"},
		"silence is a no": {
			hostWait, func(s *stage, _ *playedProcess, id string) { s.expire(id) },
			"wait.example refused: Nobody decided about wait.example:443 within 1h0m0s, and this team's policy takes that as a no", "wait.example refused: Nobody decided about",
			`wait.example:443 expired via "", delivered false`, "running",
		},
		"silence": {
			hostWrite, func(s *stage, _ *playedProcess, id string) { s.expire(id) },
			"write.example refused: Nobody decided within 1h0m0s. The turn is paused.", "write.example refused: network: of project web does not list write.example:443, and no turn is running",
			`write.example:443 expired via "", delivered false`, "ready",
		},
		"stopped": {
			hostWrite, func(s *stage, _ *playedProcess, _ string) { stop(s) },
			"write.example refused: The turn is being stopped.", "write.example refused: network: of project web does not list write.example:443, and no turn is running",
			`write.example:443 cancelled via "", delivered false`, "ready",
		},
		"the turn ends": {
			hostWrite, func(_ *stage, p *playedProcess, _ string) { p.result(claude.Result{}) },
			"write.example refused: The turn is over.", "write.example refused: network: of project web does not list write.example:443, and no turn is running",
			`write.example:443 cancelled via "", delivered false`, "ready",
		},
		"the process ends": {
			hostWrite, func(_ *stage, p *playedProcess, _ string) { p.die(claude.ExitCrashed) }, "", "",
			`write.example:443 interrupted via "", delivered false`, "cold",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(staged)
				p, id := asksHost(s, tt.host)
				tt.then(s, p, id)
				synctest.Wait()
				told := strings.Join(s.heard()[p.name], "\n")
				if tt.first == "" && strings.Contains(told, tt.host) || !strings.Contains(told, tt.first) {
					t.Errorf("it was told %q, not %q", told, tt.first)
				}
				if s.state(here) == "running" || s.state(here) == "ready" || s.state(here) == "awaiting" {
					p.connect(tt.host)
					synctest.Wait()
				}
				if told := strings.Join(s.heard()[p.name], "\n"); tt.next == "" && told != "" || !strings.Contains(told, tt.next) {
					t.Errorf("the next was told %q, not %q", told, tt.next)
				}
				if got := s.rows(); got != tt.rows {
					t.Errorf("the books: %s", got)
				}
				if got := s.state(here); got != tt.state {
					t.Errorf("it is %s", got)
				}
				for _, broken := range s.close() {
					t.Error(broken)
				}
			})
		})
	}
}

// What a person allowed for a turn is not allowed in the next, and a connection that lives
// on ends with the turn.
func TestAHostIsAllowedForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		p, id := asksHost(s, hostWrite)
		span := s.worker(here).turn.span
		s.decide(id, approvals.Allowed)
		p.result(claude.Result{})
		synctest.Wait()
		if span.Err() == nil {
			t.Error("connections outlive their turn")
		}
		_, again := asksHost(s, hostWrite)
		if again == "" || again == id {
			t.Errorf("%q was asked in the next turn", again)
		}
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}

// Under a grant each connection is looked at, and one row tells of it in a turn. A
// revocation holds for the next.
func TestAGrantForAHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		grant := s.store.Grant("T1", "web", policy.NetworkTool, ofHost(hostBuild), "U2")
		s.prompt(here)
		p := s.process(here)
		for range 3 {
			p.connect(hostBuild)
			synctest.Wait()
		}
		if got := s.rows(); got != `build.example:443 allowed via "grant", delivered true` {
			t.Errorf("the books: %s", got)
		}
		if told := s.heard()[p.name]; strings.Count(strings.Join(told, "\n"), "build.example reached") != 3 {
			t.Errorf("%q", told)
		}
		if _, _, err := s.store.RevokeGrant(context.Background(), "T1", grant, "U2"); err != nil {
			t.Fatal(err)
		}
		p.connect(hostBuild)
		synctest.Wait()
		if s.pending(here) == "" {
			t.Error("nobody is asked after a revocation")
		}
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}

// A revocation while the maker of a grant is looked up holds, also where the grant has
// allowed a connection of the turn before.
func TestAGrantThatIsRevokedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		grant := s.store.Grant("T1", "web", policy.NetworkTool, ofHost(hostBuild), "U2")
		s.prompt(here)
		p := s.process(here)
		p.connect(hostBuild)
		synctest.Wait()
		s.who.hold(true)
		p.connect(hostBuild)
		synctest.Wait()
		if _, _, err := s.store.RevokeGrant(context.Background(), "T1", grant, "U2"); err != nil {
			t.Fatal(err)
		}
		s.heard()
		s.who.hold(false)
		synctest.Wait()
		if told := s.heard()[p.name]; len(told) != 0 || s.pending(here) == "" {
			t.Errorf("%q, asked %q", told, s.pending(here))
		}
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}

// A program that tries thousands of hosts makes few cards and few rows.
func TestAFloodOfHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		s.prompt(here)
		p := s.process(here)
		for i := range 2000 {
			p.connect(fmt.Sprintf("h%d.example", i))
		}
		synctest.Wait()
		if n := len(s.store.Approvals()); n != 20 {
			t.Errorf("%d rows", n)
		}
		told := strings.Join(s.heard()[p.name], "\n")
		if want := "h20.example refused: People were asked about 20 hosts in this turn, and are asked about no more before the next message: h20.example:443 is not reached."; !strings.Contains(told, want) {
			t.Errorf("no %q in\n%.2000s", want, told)
		}
		if want := "h1999.example refused: This turn has tried 500 hosts that network: of project web does not list"; !strings.Contains(told, want) {
			t.Errorf("no %q", want)
		}
		if n := strings.Count(told, "refused"); n != 2000-20 {
			t.Errorf("%d were refused", n)
		}
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}

// After a restart the turn goes on in another process, once there is a decision: it asks again,
// and is given the decision that nobody had been told.
func TestAHostIsAskedAcrossARestart(t *testing.T) {
	t.Parallel()
	for _, decided := range []bool{false, true} {
		t.Run(fmt.Sprint(decided), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(staged)
				p, id := asksHost(s, hostWrite)
				if decided { // while who asked has left
					p.disconnect()
					synctest.Wait()
					s.decide(id, approvals.Allowed)
				}
				s.restart()
				time.Sleep(staged.Poll)
				synctest.Wait()
				s.heard()
				if !decided {
					if again := s.process(here); again != nil && again != p {
						t.Error("a process waits for the decision")
					}
					s.decide(id, approvals.Allowed)
				}
				again := s.process(here)
				if again == nil || again == p {
					t.Fatal("the turn does not go on")
				}
				s.heard()
				again.connect(hostWrite)
				synctest.Wait()
				if told := s.heard()[again.name]; len(told) != 1 || told[0] != "write.example reached" {
					t.Errorf("%q", told)
				}
				if got := s.rows(); got != `write.example:443 allowed via "button", delivered true` {
					t.Errorf("the books: %s", got)
				}
				for _, broken := range s.close() {
					t.Error(broken)
				}
			})
		})
	}
}
