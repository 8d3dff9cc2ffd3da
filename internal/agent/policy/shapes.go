package policy

import "regexp"

// shape is a form of harmless words that is small enough to be understood: anything else is asked, even if
// harmless.
type shape struct {
	of  *regexp.Regexp
	why string // why another word is asked
}

func form(of, why string) *shape { return &shape{regexp.MustCompile(of), why} }

// plainText means nothing to a shell, a pattern or a template, except for its spaces.
const plainText = `[A-Za-z0-9_./:,@+% -]`

// A sed script is commands apart by semicolons: print, delete, line number, quit, or a substitution that prints at
// most, each after up to two addresses. No command reads, writes or runs anything, and no text spans two lines.
const (
	sedRegexp  = `(?:[^/\\\[\n]|\\[^\n]|\[\^?[^]^\\\[/\n]+\])+` // /…/ without a slash, and brackets only of the plainest kind
	sedAddress = `(?:[0-9]+|\$|/` + sedRegexp + `/)`
	sedCommand = `(?:!?[pd=]|q|s/` + sedRegexp + `/(?:[^/\\\n]|\\[^\n])*/(?:gp?|pg?|[0-9])?)`
	sedScript  = `^(?:(?:^|;) *(?:` + sedAddress + `(?:,\+?` + sedAddress + `)?)?` + sedCommand + ` *)+$`
)

// An awk program is a condition (one comparison or a pattern), a print of fields, counters and texts, or both. It
// calls and assigns nothing.
const (
	awkText      = `"[^"\\\n]*"`
	awkField     = `(?:\$(?:[0-9]+|NF)|NR|NF|` + awkText + `)`
	awkCondition = `(?:(?:\$?(?:[0-9]+|NF|NR)|` + awkText + `) ?(?:==|!=|<=|>=|<|>) ?(?:\$?(?:[0-9]+|NF|NR)|` + awkText + `)|/[^/\\\[\n]+/)`
	awkPrint     = `\{ ?print(?: ` + awkField + `(?:, ?` + awkField + `)*)? ?\}`
	awkProgram   = `^(?:` + awkCondition + `|(?:` + awkCondition + ` ?)?` + awkPrint + `)$`
)

// A jq filter is paths and a few functions without arguments, one after the other. It makes no text and names no
// variable.
const (
	jqIndex  = `(?:\[[0-9]*\])`
	jqPath   = `(?:\.(?:[A-Za-z_][A-Za-z0-9_]*)?` + jqIndex + `*(?:\.[A-Za-z_][A-Za-z0-9_]*` + jqIndex + `*)*)`
	jqStage  = `(?:` + jqPath + `|(?:keys|length|add|type|sort|unique|first|last|to_entries)` + jqIndex + `*)`
	jqFilter = `^` + jqStage + `(?: ?\| ?` + jqStage + `)*$`
)

// shapes by their names in the table.
var shapes = map[string]*shape{
	"name":        form(`^[A-Za-z0-9_][A-Za-z0-9_./:+@-]*$`, "it is not a plain name"),
	"number":      form(`^[+-]*(?:[0-9][0-9.]*[A-Za-z%]{0,3})$`, "it is not a number"),
	"sed":         form(sedScript, "the sed script is not one of the plainest"),
	"awk":         form(awkProgram, "the awk program is not one of the plainest"),
	"jq":          form(jqFilter, "the jq filter is not one of the plainest"),
	"printf":      form(`^(?:[^%]|%[-+ #0-9.]*[%diouxXeEfgGcs])*$`, "the format of printf may do more than print"), // %n stores, %(…)T asks the clock
	"clock":       form(`^\+`, "date sets the clock"),
	"pretty":      form(`^(?:[^%]|%[+ -]?(?:[HhTtPpacdDSsbBefNgnmwCr%<>|]|\((?:refname|objectname|subject|authorname|authordate|committerdate|upstream|HEAD|contents|creatordate|objecttype|if|then|else|end)[):][^%]*))*$`, "the format makes git run gpg, or is not known"),
	"key":         form(`^[A-Za-z0-9_/@:^-]*\.[A-Za-z0-9_.\-/@:^]*$`, "it is no key of git's configuration"),
	"refspec":     form(`^[A-Za-z0-9_\-./@^~{}]+(?::[A-Za-z0-9_\-./@^~{}]+)?$`, "the refspec forces, deletes or is not known"),
	"header":      form(`^[^@]`, "curl reads the file after @"),
	"glob":        form(`^(?:!|(?:.*\*)?\*\.(?:go|jsx?|tsx?|mjs|vue|svelte|py|rb|rs|java|kt|scala|c|h|cc|cpp|hpp|cs|php|swift|md|html|s?css|sql|proto|sh)$)`, "the glob may name hidden files"),
	"kind":        form(`^(?:all|pods?|po|deployments?|deploy|services?|svc|ingress|nodes?|no|namespaces?|ns|events?|jobs?|cronjobs?)(?:/[A-Za-z0-9_.-]*)?$`, "it may be a secret"),
	"expression":  form(`^\(*(?:[A-Za-z0-9_./:,+%\[\]-]| +\(*|\))*$`, "only names, and, or, not and parentheses are known"), // old pytest evaluates it
	"libtest":     form(`^(?:--(?:nocapture|exact|ignored|include-ignored|show-output|list|quiet|test-threads=[0-9]+)|[A-Za-z_][A-Za-z0-9_:]*)$`, "nothing is known of the option of the test program"),
	"lints":       form(`^(?:-[DWAF]|--(?:deny|warn|allow|forbid)|(?:-[DWAF])?[a-z_:][a-z_:-]*)$`, "only levels and names of lints are known"),
	"test-filter": form(`^(?:run|[A-Za-z0-9_-]*[./][A-Za-z0-9_./-]*)$`, "it may be a command of vitest"),
	"gradle-task": form(`^:?(?:[A-Za-z0-9_][A-Za-z0-9_.-]*:)*(?:help|projects|tasks|properties|dependencies|build|assemble|check|test|classes|testClasses|clean|jar|javadoc|compileJava|compileKotlin|compileTestJava|integrationTest|lint|ktlintCheck|ktlintFormat|spotlessCheck|spotlessApply|detekt|assembleDebug|assembleRelease|testDebugUnitTest)$`, "nothing is known of the task"),
	"recipe":      form(`^[A-Za-z0-9_][A-Za-z0-9_.:+@-]*$`, "it is not a plain name of a recipe"),
}
