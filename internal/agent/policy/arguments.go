package policy

import (
	"slices"
	"strings"
)

// argumentOptions do no harm in any of the linters and test runners that a
// project's script may be, whatever comes before or after them.
var argumentOptions = map[string]bool{
	"-h": true, "--help": true, "-v": true, "--verbose": true, "-q": true, "--quiet": true, "--silent": true, "--version": true,
	"--color": true, "--no-color": true, "--colors": true, "--ci": true, "--bail": true, "-b": true, "-x": true, "--fail-fast": true, "--failfast": true,
	"--fix": true, "--check": true, "--dry-run": true, "--coverage": true, "--no-coverage": true, "--run": true, "--runInBand": true, "-i": true,
	"--watch=false": true, "--watchAll=false": true, "--no-watch": true, "--coverage=false": true, "--passWithNoTests": true, "--forceExit": true,
	"--detectOpenHandles": true, "--max-warnings=0": true, "--noEmit": true, "-t": true, "--testNamePattern": true, "--testPathPattern": true,
	"--grep": true, "-g": true, "-k": true, "--filter": true, "--headless": true, "--list": true, "--exact": true, "--nocapture": true,
}

// checkArgument is for a word that a script of the workspace is given: an option
// that is harmless everywhere, or a word of plain characters, which is a file if
// there is one of that name. Whoever hands it to a shell may quote it badly.
func checkArgument(word string) checked {
	if argumentOptions[word] {
		return checked{}
	}
	if name, value, ok := strings.Cut(word, "="); ok && argumentOptions[name] && strings.HasPrefix(name, "--") && plainText(value) {
		return checked{reads: []string{value}}
	}
	switch {
	case strings.HasPrefix(word, "-"):
		return checked{why: "a script may obey the option, and nothing is known of it"}
	case strings.Contains(word, "="):
		return checked{why: "a script may take it for a setting"}
	case !plainText(word):
		return checked{why: "a script may hand it to a shell"}
	}
	return checked{reads: []string{word}}
}

// plainText reports whether no shell, pattern or template reads anything into a
// text, even where it is not quoted, but for its spaces.
func plainText(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_./-:,@+% ", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// checkLocation is for a test as runners name it: a file or folder, and what it
// holds: tests/test_x.py::TestX::test_y[a], spec/x_spec.rb:12, spec/x_spec.rb[1:2].
func checkLocation(word string) checked {
	file, _, _ := strings.Cut(word, "::")
	if i := strings.IndexByte(file, '['); i >= 0 && strings.HasSuffix(file, "]") && strings.Trim(file[i:], "[]0123456789:,") == "" {
		file = file[:i]
	}
	for {
		i := strings.LastIndexByte(file, ':')
		if i < 0 || i == len(file)-1 || strings.Trim(file[i+1:], "0123456789") != "" {
			break
		}
		file = file[:i]
	}
	if strings.HasPrefix(file, "-") || strings.ContainsAny(file, "*?[]{}()!:") {
		return checked{why: "it is not plainly a file, with a test or lines of it"}
	}
	return checked{reads: []string{file}}
}

// checkSources is for files as linters and formatters name them: a file, a folder,
// or a pattern, which they expand themselves without following links. It reads all
// below the folder that the pattern begins with.
func checkSources(word string) checked {
	i := strings.IndexAny(word, "*?[]{}()!")
	if i < 0 {
		return checked{trees: []string{word}}
	}
	rest := word[i:]
	switch {
	case strings.ContainsAny(rest, "[]()!\\"):
		return checked{why: "only * and {a,b} are known of patterns"}
	case strings.Contains(rest, ".."), strings.Contains(rest, "{/"), strings.Contains(rest, ",/"), strings.Contains(rest, "{~"), strings.Contains(rest, ",~"):
		return checked{why: "the pattern can lead elsewhere"}
	}
	if dir := word[:strings.LastIndexByte(word[:i], '/')+1]; dir != "" {
		return checked{trees: []string{dir}}
	}
	return checked{trees: []string{"."}}
}

// checkExpression is for pytest's -k and -m: names, and, or, not, parentheses. Old
// versions evaluate it as Python, in which that calls nothing.
func checkExpression(word string) checked {
	for i := range len(word) {
		switch c := word[i]; {
		case c == '(':
			if i > 0 && word[i-1] != ' ' && word[i-1] != '(' {
				return checked{why: "parentheses after a name would call it"}
			}
		case c != ')' && !plainText(word[i:i+1]) && c != '[' && c != ']':
			return checked{why: "only names, and, or, not and parentheses are known"}
		}
	}
	return checked{}
}

// checkLibtest is for what follows -- in cargo test.
func checkLibtest(word string) checked {
	switch name, _, _ := strings.Cut(word, "="); name {
	case "--nocapture", "--no-capture", "--exact", "--ignored", "--include-ignored", "--show-output", "--list", "--quiet", "-q", "--skip", "--test-threads", "--test", "--bench":
		return checked{}
	}
	if strings.HasPrefix(word, "-") {
		return checked{why: "nothing is known of the option of the test program"}
	}
	return checked{}
}

// checkLints is for what follows -- in cargo clippy: levels of lints.
func checkLints(word string) checked {
	switch word {
	case "-D", "-W", "-A", "-F", "--deny", "--warn", "--allow", "--forbid":
		return checked{}
	}
	if len(word) > 2 && word[0] == '-' && strings.IndexByte("DWAF", word[1]) >= 0 {
		word = strings.TrimPrefix(word, word[:2])
	}
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_-:") == "" && !strings.HasPrefix(word, "-") {
		return checked{}
	}
	return checked{why: "only levels and names of lints are known"}
}

// checkTestFilter is for vitest's operands: its subcommands that run tests, and
// what files are chosen by. Two more subcommands write settings.
func checkTestFilter(word string) checked {
	return checked{why: map[string]string{"init": "it sets up a project", "complete": "it writes a script for the shell"}[word]}
}

// gradleTasks are tasks that Gradle's own plugins and well-known ones have, and that build,
// test and tell. What publishes, deploys or starts something is none of them.
var gradleTasks = strings.Fields(`help projects tasks properties dependencies dependencyInsight buildEnvironment outgoingVariants resolvableConfigurations components
	build assemble check test classes testClasses testFixturesClasses clean jar sourcesJar javadocJar javadoc bootJar shadowJar dokkaHtml
	compileJava compileTestJava compileKotlin compileTestKotlin compileGroovy compileTestGroovy compileScala compileTestScala processResources processTestResources
	integrationTest functionalTest jvmTest allTests lint ktlintCheck ktlintFormat spotlessCheck spotlessApply detekt pmdMain pmdTest
	checkstyleMain checkstyleTest spotbugsMain jacocoTestReport koverHtmlReport apiCheck
	assembleDebug assembleRelease testDebugUnitTest testReleaseUnitTest lintDebug lintRelease compileDebugKotlin compileDebugJavaWithJavac`)

// checkGradleTask is for a task: test, :core:test.
func checkGradleTask(word string) checked {
	name := word[strings.LastIndexByte(word, ':')+1:]
	switch {
	case !plainName(strings.TrimPrefix(word, ":")):
		return checked{why: "it is not a plain name of a task"}
	case !slices.Contains(gradleTasks, name):
		return checked{why: "nothing is known of the task " + name}
	}
	return checked{}
}

// rakeTasks are tasks by the names that everybody gives them, which build, test and tell.
// What releases, deploys or drops something is none of them.
var rakeTasks = strings.Fields(`default test test:all test:units test:functionals test:integration test:models test:system spec features cucumber check ci build lint rubocop standard
	clean clobber doc rdoc yard stats notes routes about compile assets:precompile zeitwerk:check
	db:migrate db:rollback db:seed db:test:prepare db:schema:load db:migrate:status db:version`)

// checkRakeTask is for a task of rake.
func checkRakeTask(word string) checked {
	if slices.Contains(rakeTasks, word) {
		return checked{}
	}
	return checked{why: "nothing is known of the task " + word}
}

// checkRecipe is for a recipe of just or a task of task: a name without a folder
// and without =, which would set a variable.
func checkRecipe(word string) checked {
	if plainName(word) && !strings.Contains(word, "/") {
		return checked{}
	}
	return checked{why: "it is not a plain name of a recipe"}
}
