package chat

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A message of few words that means stop stops, in the languages that Slack speaks and
// some more. Every word of it has to stand in these tables: “stop using tabs”, “wait for
// the tests” and “cancel the subscription” are work.

// stopPhrases mean stop. Case, accents and marks do not count.
var stopPhrases = folded(
	// English, British and American.
	"stop", "stopp", "halt", "cancel", "abort", "quit", "cease", "desist", "wait", "pause", "enough", "hold on", "hold it", "hang on", "kill it",
	"wait a minute", "wait a second", "wait a sec", "wait a moment", "one moment", "not so fast", "cut it out", "knock it off", "give up", "whoa", "freeze", "never mind", "nevermind", "forget it",
	// German.
	"anhalten", "abbrechen", "abbruch", "warte", "warten", "warte mal", "moment", "moment mal", "aufhören", "hör auf", "brich ab", "stoppen", "genug", "schluss", "lass es",
	// Spanish, of Spain and Latin America.
	"para", "parar", "pare", "para ya", "parad", "detente", "deténgase", "detén", "detener", "alto", "cancela", "cancelar", "aborta", "abortar", "espera", "espere", "esperen", "basta", "frena",
	// French.
	"arrête", "arrêtez", "arrêter", "arrête-toi", "arrête ça", "annule", "annuler", "annulez", "attends", "attendez", "stoppe", "ça suffit", "assez",
	// Italian.
	"ferma", "fermati", "fermate", "fermo", "fermare", "annulla", "annullare", "aspetta", "aspettate", "interrompi", "smetti", "smettila", "piantala",
	// Portuguese.
	"pára", "pare já", "parem", "cancele", "interrompa", "interromper", "espere aí", "espera aí", "chega", "aguarde",
	// Russian and Ukrainian.
	"стоп", "остановись", "остановитесь", "останови", "остановить", "стой", "стойте", "хватит", "отмена", "отмени", "отменить", "прекрати", "прекратить", "подожди", "подождите", "погоди",
	"зупинись", "зупини", "зачекай", "досить", "скасуй",
	// Polish and Czech.
	"przestań", "zatrzymaj", "zatrzymaj się", "przerwij", "anuluj", "czekaj", "poczekaj", "zastav", "zruš", "počkej", "přestaň",
	// Turkish.
	"dur", "durdur", "durun", "iptal", "iptal et", "bekle", "yeter",
	// Dutch.
	"stoppen", "hou op", "ophouden", "afbreken", "annuleer", "annuleren", "wacht", "wacht even", "genoeg",
	// Swedish, Norwegian, Danish, Finnish.
	"stanna", "sluta", "avbryt", "vänta", "stans", "avbryt det", "vent", "vent litt", "afbryd", "lopeta", "seis", "keskeytä", "odota",
	// Others.
	"oprește", "așteaptă", "σταμάτα", "ακύρωση", "περίμενε", "توقف", "قف", "إلغاء", "انتظر", "עצור", "תפסיק", "בטל", "חכה", "रुको", "रुकिए", "बंद करो", "หยุด", "ยกเลิก", "dừng", "dừng lại", "hủy", "berhenti", "batal", "batalkan", "tunggu",
	// Japanese.
	"停止", "中止", "中断", "取消", "キャンセル", "ストップ", "止めて", "とめて", "やめて", "やめろ", "止まれ", "止まって", "とまって", "待って", "ちょっと待って", "待った", "中止して", "停止して", "中断して", "キャンセルして", "ストップして",
	// Korean.
	"정지", "중지", "중단", "멈춰", "멈춤", "멈추세요", "그만", "그만해", "그만둬", "취소", "취소해", "중지해", "중단해", "정지해", "스톱", "기다려", "잠깐", "잠깐만", "잠시만",
	// Chinese, simplified and traditional.
	"停", "停下", "停下来", "停下來", "停一下", "停吧", "快停", "别做了", "別做了", "住手", "打住", "取消吧", "等等", "等一下", "等一等", "稍等", "终止", "終止", "中止吧", "暂停", "暫停", "够了", "夠了",
)

// stopEmoji mean stop, as Slack names them and as they are.
var stopEmoji = map[string]bool{
	"octagonal_sign": true, "stop_sign": true, "raised_hand": true, "hand": true, "raised_back_of_hand": true, "no_entry": true, "no_entry_sign": true,
	"black_square_for_stop": true, "stop_button": true, "double_vertical_bar": true, "pause_button": true,
	"🛑": true, "✋": true, "🤚": true, "⛔": true, "🚫": true, "⏹": true, "⏸": true,
}

// besideStop are words that may stand beside one that means stop, and change nothing.
var besideStop = folded(
	"please", "pls", "plz", "now", "right", "immediately", "at", "once", "it", "that", "this", "everything", "all", "the", "your", "turn", "task", "work", "working", "running", "run",
	"ok", "okay", "no", "hey", "oh", "just", "thanks", "thank", "you", "can", "could", "for", "sake", "already", "there", "deckhand", "claude", "bot",
	"bitte", "sofort", "jetzt", "das", "es", "alles", "damit", "mal", "nein", "danke", "halt",
	"por", "favor", "ya", "ahora", "todo", "eso", "esto", "gracias",
	"stp", "svp", "s'il te plaît", "s'il vous plaît", "tout", "ça", "cela", "maintenant", "merci", "non", "te", "vous", "plait", "s", "il", "immédiatement",
	"per", "favore", "tutto", "subito", "ora", "adesso", "grazie", "agora", "tudo", "isso", "já", "obrigado", "obrigada",
	"пожалуйста", "сейчас", "немедленно", "это", "всё", "будь", "ласка", "proszę", "teraz", "to", "prosím", "lütfen", "hemen", "şimdi", "alstublieft", "alsjeblieft", "aub", "nu", "alles", "ermee",
	"snälla", "tack", "nå", "vær", "så", "snill",
	"请", "請", "麻烦", "お願い", "お願いします", "どうか", "今すぐ", "주세요", "제발", "지금", "당장", "좀",
)

// polite begins or ends words of languages that have no blanks between them.
var polite = []string{"请", "請", "快", "马上", "馬上", "立即", "了", "吧", "啊", "ください", "下さい", "お願いします", "해주세요", "해 주세요", "주세요", "해줘", "해요", "하세요", "요"}

// stopMost is how many words such a message has at most.
const stopMost = 6

func folded(words ...string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words {
		set[strings.Join(stopWord.FindAllString(fold(w), -1), " ")] = true
	}
	return set
}

// fold takes case and accents away.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(strings.ReplaceAll(s, "ı", "i")))
}

var (
	// stopWord is a word, or an emoji by its name.
	stopWord = regexp.MustCompile(`:[a-z0-9_+-]+:|[\p{L}\p{Mc}\p{N}]+|[\p{So}⏸⏹]`)
	// noTalk are the marks of code and quotations.
	noTalk = regexp.MustCompile("[(){}\\[\\]<>=/\\\\$\"“”„«»`#@%|]|[.][\\p{L}]|\n")
	tone   = regexp.MustCompile(`:skin-tone-[2-6]:|[🏻-🏿]`)
)

// saysStop reports whether a text means stop, and nothing else. A slash in front, as before commands of Claude Code's,
// changes nothing.
func saysStop(text string) bool {
	text = strings.TrimPrefix(tone.ReplaceAllString(fold(strings.TrimSpace(text)), ""), "/")
	if noTalk.MatchString(text) {
		return false
	}
	words := stopWord.FindAllString(text, -1)
	if len(words) == 0 || len(words) > stopMost || stopPhrases[strings.Join(words, " ")] {
		return len(words) > 0 && len(words) <= stopMost
	}
	stops := false
	words = slices.DeleteFunc(words, func(w string) bool {
		stop := stopEmoji[strings.Trim(w, ":")] || stopPhrases[w] || stopPhrases[unpolite(w)]
		stops = stops || stop
		return stop || besideStop[w]
	})
	if len(words) == 0 {
		return stops
	}
	return stopPhrases[strings.Join(words, " ")]
}

// unpolite takes away what is said for politeness in one word with the rest.
func unpolite(w string) string {
	for _, p := range polite {
		p = fold(p)
		w = strings.TrimPrefix(strings.TrimSuffix(w, p), p)
	}
	return w
}
