package chat

import "testing"

// stopSayings mean stop, and nothing else.
var stopSayings = []string{
	// Of these 18, 4 stopped a running turn before and 14 were work.
	"stop", "Stop!", "STOP", "stop now", "please stop", "stop please", "stop it", "stop that", "halt", "cancel", "wait", "abort", "arrête", "стоп", "停止", "🛑", "✋", "hold on",
	":octagonal_sign:", ":stop_sign:", ":raised_hand:", ":raised_hand::skin-tone-3:", "✋🏽", ":no_entry: stop", "⏹️", "stop 🛑",
	"stop stop stop", "no, stop", "ok stop", "wait, stop!", "Deckhand, stop", "stop, Claude", "could you please stop", "stop everything now", "cancel this task", "abort the turn", "stop working", "stop running", "wait…", "*stop*", "`stop`", "_halt_",
	"wait a minute", "enough!", "kill it", "cancel that please", "quit", "/stop", "/halt", "/stop please", " /stop!",
	"stopp", "bitte anhalten", "Halt bitte", "abbrechen", "Warte mal", "hör auf", "Hör bitte auf", "aufhören!", "sofort stoppen",
	"para", "¡Para!", "para por favor", "detente", "cancela", "espera", "¡Alto!", "basta ya",
	"arrete", "Arrêtez !", "arrête-toi", "arrête s'il te plaît", "annule", "attends", "stop svp",
	"fermati", "Ferma tutto", "annulla", "aspetta per favore", "smettila",
	"pára", "pare por favor", "cancelar", "espere aí", "chega",
	"止めて", "やめてください", "ストップ", "中止してください", "待って", "ちょっと待って", "キャンセル", "停止してください",
	"멈춰", "멈춰 주세요", "중지", "그만해주세요", "취소해줘", "잠깐만요",
	"停", "请停止", "停下来", "停止!", "取消", "等一下", "請停止", "暫停", "停下來",
	"стой", "Остановись, пожалуйста", "отмена", "подожди", "хватит",
	"dur", "İPTAL", "lütfen dur", "przestań", "proszę zatrzymaj", "stop aub", "hou op", "wacht even", "avbryt", "sluta",
}

// noStops have a word that means stop, and are work.
var noStops = []string{
	"stop using tabs", "stop using tabs in main.go", "wait for the tests to pass before you push", "cancel the subscription endpoint",
	"stop the server", "stop the container", "stop at the first error", "stop on errors", "why did you stop?", "don't stop", "do not stop", "never stop", "stop words table",
	"wait for CI", "wait until it is green", "what happens on cancel?", "cancel button is broken", "add a cancel button", "abort() leaks", "abort on error", "implement pause", "pause the video player",
	"halt and catch fire, explain", "stop()", "stop.go does not compile", "stop-the-world pauses", "`stop` does not return", "\"stop\" is what he said", "> stop", "stop\nfix the test", "/stop/api", "/tmp/stop", "/", "/stop-words", "/stop the server",
	"quit smoking app", "enough tests?", "hold on to the lock longer", "para que sirve esto", "arrête les tests de charge", "warte auf die Tests", "alto nivel", "停止按钮坏了", "取消订阅接口", "待って関数を直して", "취소 버튼을 고쳐줘", "стоп-слова", "cancela la suscripción",
	"please", "ok", "no", "now", "thanks", "🎉", ":tada:", "", "fix the test", "the turn", "stop stop stop stop stop stop stop",
}

func TestStopMeansStop(t *testing.T) {
	t.Parallel()
	list := allCommands(nil)
	for _, said := range stopSayings {
		if s := list.find(said); s == nil || s.name != "stop" || s.nearly {
			t.Errorf("%q does not stop: %+v", said, s)
		}
	}
	for _, said := range noStops {
		if s := list.find(said); s != nil && s.name == "stop" {
			t.Errorf("%q stops", said)
		}
	}
	t.Logf("%d ways to say stop, %d that are work", len(stopSayings), len(noStops))
}
