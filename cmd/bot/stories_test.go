package main

import "testing"

// sharing runs stories that keep out of each other's way in threads of one team at once:
// as it is where people work, and for the price of one bot.
func sharing(t *testing.T, w *world, stories map[string]func(*testing.T, *world)) {
	t.Helper()
	t.Run("together", func(t *testing.T) {
		for name, story := range stories {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				own := *w
				own.t = t
				story(t, &own)
			})
		}
	})
}

type story struct {
	name string
	tell func(*testing.T, *world)
}

// inOneThread tells stories one after another in one thread, whose CLI goes on: most of
// what a story costs is the start of one.
func inOneThread(stories []story) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		for _, s := range stories {
			if !t.Run(s.name, func(t *testing.T) {
				w.t = t
				s.tell(t, w)
			}) {
				return
			}
		}
	}
}

// TestStoriesOfOneTeam are those that the demo's own configuration is enough for. When
// they have ended, all of their costs are the bill, and the audit is whole.
func TestStoriesOfOneTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sharing(t, w, map[string]func(*testing.T, *world){
		"DenyWithAReason":                   denyWithAReason,
		"AskedByShortcuts":                  askedByShortcuts,
		"AskedInLate":                       askedInLate,
		"SecretsStay":                       secretsStay,
		"SessionsPostFiles":                 sessionsPostFiles,
		"ALongPaste":                        aLongPaste,
		"AlwaysAllow":                       alwaysAllow,
		"AChangedCommand":                   aChangedCommand,
		"EditsBelowAFolder":                 editsBelowAFolder,
		"ApproveForThisSession":             approveForThisSession,
		"ARequestInADirectMessage":          aRequestInADirectMessage,
		"OneCardForSeveralRequests":         oneCardForSeveralRequests,
		"ReportOnApproving":                 reportOnApproving,
		"WhatTheSlashCommandAndTheHomeShow": slashAndHome,
		"AnswersAndTools": inOneThread([]story{
			{"FilesReachTheModel", filesReachTheModel},
			{"AQuestionIsAnswered", aQuestionIsAnswered},
			{"TheModelCannotShout", theModelCannotShout},
			{"ASubagent", aSubagent},
			{"ToolsThatActByAParameterAreAsked", toolsThatActByAParameterAreAsked},
		}),
		"OneDecisionAfterAnother": inOneThread([]story{
			{"TheWholeInputIsOneClickAway", theWholeInputIsOneClickAway},
			{"ADenialReachesTheModel", aDenialReachesTheModel},
			{"TwoClicksAtOnce", twoClicksAtOnce},
			{"ApproveByCode", approveByCode},
		}),
	})
	w.assertLedgerEqualsBill()
	w.auditIsWhole()
}

// TestStoriesOfATeamWithRules are those about a policy with a quorum, with what is
// dangerous, and with what is denied.
func TestStoriesOfATeamWithRules(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, quorumOfTwo)
	t.Run("PolicyCommands", func(t *testing.T) { // which count what is recorded
		own := *w
		own.t = t
		policyCommands(t, &own)
	})
	sharing(t, w, map[string]func(*testing.T, *world){
		"TheTwoStepsOfSomethingDangerous": theTwoStepsOfSomethingDangerous,
		"RulesDecide":                     rulesDecide,
	})
	t.Run("Quorum", func(t *testing.T) { // which kills the bot
		own := *w
		own.t = t
		quorum(t, &own)
		*w = own
		w.t = t
	})
	w.t = t
}

// TestCosts are the stories of who asks what of costs, in a team whose days are those of
// whoever asks.
func TestCosts(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, "time_zone: Asia/Tokyo\nreports: {time_zone: asker}\n")
	thread := w.spent()
	for _, story := range []struct {
		name string
		run  func(t *testing.T, w *world, thread string)
	}{
		{"InAThread", costsInAThread},
		{"AskedBack", askedBack},
		{"StopInOtherWords", stopInOtherWords},
		{"AsAFile", costsAsAFile},
		{"DaysOfTheAsker", daysOfTheAsker},
		{"Home", homeCosts},
		{"WhereChartsAreRefused", costsWhereChartsAreRefused},
	} {
		t.Run(story.name, func(t *testing.T) {
			own := *w
			own.t = t
			story.run(t, &own, thread)
		})
	}
}
