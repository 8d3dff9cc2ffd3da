package main

import "testing"

// TestStoriesOfOneTeam are stories that keep out of each other's way, in threads of
// one team at once: as it is where people work, and for the price of one bot.
func TestStoriesOfOneTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, story := range map[string]func(*testing.T, *world){
		"DenyWithAReason":             denyWithAReason,
		"TheWholeInputIsOneClickAway": theWholeInputIsOneClickAway,
		"AQuestionIsAnswered":         aQuestionIsAnswered,
		"TheModelCannotShout":         theModelCannotShout,
		"SecretsStay":                 secretsStay,
		"ApproveByCode":               approveByCode,
		"ADenialReachesTheModel":      aDenialReachesTheModel,
		"TwoClicksAtOnce":             twoClicksAtOnce,
		"ALongPaste":                  aLongPaste,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *w
			own.t = t
			story(t, &own)
		})
	}
}
