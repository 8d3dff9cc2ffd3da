package policy

import "strings"

// An escape is what makes a known program run another one, load code, or write
// where its arguments do not say. A prefix rule does not reach it: such a word
// must be spelt out in the pattern.
type escape struct {
	oneDash bool   // options are whole words, with one dash or two, as Go's flag package reads them
	bundle  bool   // the first operand is a cluster too, as in tar xf
	long    string // options with two dashes, also when they are abbreviated
	short   string // letters, anywhere in a cluster such as -xzf
	global  string // letters that count only before the first operand
	subs    string // first operands (subcommands)
	later   string // "submodule/foreach": an operand after a subcommand
	begins  string // beginnings of any word
	assign  bool   // NAME=value among the operands
	letter  string // "grep/O": a letter that counts after a subcommand
}

// everywhere are options that run something in whatever program knows them.
var everywhere = words("exec execute command cmd eval pager editor shell script-shell rsh proxy-command use-compress-program compress-program to-command checkpoint-action preprocessor pre plugin plugins interpreter hook filter preview run-under run_under require import loader init-script rsync-path upload-pack receive-pack")

// escapesOf is drawn from the programs' manuals and the GTFOBins list. A program
// that is not in it is checked for the options of everywhere.
var escapesOf = map[string]escape{
	"go": {
		oneDash: true,
		long:    "exec toolexec vettool o C modfile overlay pkgdir ldflags gcflags asmflags gccgoflags compiler outputdir fuzzcachedir test.outputdir test.fuzzcachedir",
		subs:    "run generate install get tool env work mod clean telemetry bug fix",
	},
	"git": {
		long:   "exec-path upload-pack receive-pack exec output output-directory ext-diff textconv open-files-in-pager config-env git-dir work-tree namespace template separate-git-dir paginate config remote upload-archive extcmd tool smtp-server sendmail-cmd to-cmd cc-cmd header-cmd file temporary-directory shallow-file reference-if-able edit interactive show-signature gpg-sign sign local-user trailer strategy",
		global: "cCpP",
		letter: "grep/O rebase/x rebase/i format-patch/o archive/o clone/c clone/u clone/j fetch/u ls-remote/u mergetool/t difftool/x difftool/t init/t add/i add/e add/p commit/e commit/S commit/F tag/s tag/u tag/F merge/s merge/S pull/s bundle/o send-email/t",
		subs: "config bisect submodule filter-branch filter-repo difftool mergetool hook daemon instaweb web--browse shell send-email send-pack fetch-pack http-backend http-fetch http-push upload-pack receive-pack upload-archive credential credential-store credential-cache maintenance remote clone init " +
			"p4 svn cvsimport cvsserver cvsexportcommit archimport fast-import gui citool gitk help rebase lfs worktree archive replace symbolic-ref update-ref update-index am imap-send quiltimport request-pull merge-file merge-index mergetool--lib sh-setup sh-i18n remote-ext remote-fd remote-http remote-https var annex flow absorb",
		later:  "bisect/run submodule/foreach submodule/update remote/add remote/set-url config/alias worktree/add stash/--patch",
		begins: "ext:: fd:: --upload-pa --exec= -oProxy",
	},
	"find":          {oneDash: true, long: "exec execdir ok okdir delete fprint fprint0 fprintf fls files0-from"},
	"tar":           {bundle: true, long: "extract get checkpoint-action to-command use-compress-program rsh-command info-script new-volume-script checkpoint absolute-names one-top-level rmt-command transform xform unlink-first directory files-from exclude-from", short: "xIFPCTMK"},
	"bsdtar":        {bundle: true, long: "extract get use-compress-program", short: "xIPCTK"},
	"zip":           {long: "unzip-command test", short: "T", begins: "-TT"},
	"rg":            {long: "pre pre-glob hostname-bin search-zip file ignore-file", short: "zf"},
	"ag":            {long: "pager path-to-ignore"},
	"ack":           {long: "pager ackrc output create-ackrc"},
	"grep":          {long: "file", short: "f"},
	"sort":          {long: "output compress-program temporary-directory files0-from", short: "oTS"},
	"shuf":          {long: "output", short: "o"},
	"uniq":          {},
	"iconv":         {long: "output", short: "o"},
	"tree":          {short: "oR"},
	"file":          {long: "compile magic-file uncompress", short: "CmzZ"},
	"wc":            {long: "files0-from"},
	"du":            {long: "files0-from"},
	"split":         {long: "filter"},
	"diff":          {long: "to-file from-file"},
	"dd":            {begins: "of="},
	"date":          {long: "set file", short: "sf"},
	"hostname":      {long: "file boot", short: "Fb"},
	"column":        {},
	"jq":            {long: "from-file library-path rawfile slurpfile run-tests", short: "fL"},
	"yq":            {long: "inplace from-file split-exp security-enable-system-operator", short: "is"},
	"curl":          {long: "output remote-name remote-name-all output-dir config upload-file engine dump-header cookie-jar trace trace-ascii libcurl stderr etag-save hsts alt-svc create-dirs form data-binary data data-raw data-urlencode json url-query netrc-file key cert unix-socket abstract-unix-socket proxy preproxy socks5 doh-url resolve connect-to interface egd-file random-file", short: "oOKTDcFdExnJ", begins: "file: dict: gopher: ldap: scp: sftp: smb: telnet: tftp: ftp: smtp: imap: pop3: rtsp:"},
	"wget":          {long: "output-document directory-prefix input-file execute config use-askpass append-output output-file post-file body-file post-data body-data method save-cookies load-cookies warc-file ca-certificate private-key base background recursive mirror no-clobber hsts-file rejected-log", short: "OPieaocbrm"},
	"rsync":         {long: "rsh rsync-path daemon config log-file files-from partial-dir temp-dir backup-dir write-batch only-write-batch remote-option", short: "eM"},
	"scp":           {short: "SoFiDJP3"},
	"sftp":          {short: "SobFiDJ"},
	"make":          {assign: true, long: "file makefile eval include-dir directory environment-overrides", short: "fCEIe"},
	"gmake":         {assign: true, long: "file makefile eval include-dir directory environment-overrides", short: "fCEIe"},
	"ninja":         {short: "Cft"},
	"cmake":         {short: "PECDGS", long: "build install open workflow preset toolchain graphviz trace-redirect"},
	"ctest":         {short: "SDTO", long: "script build-and-test test-command build-makeprogram dashboard output-log output-junit"},
	"just":          {long: "shell shell-arg justfile working-directory set command chooser dotenv-path dotenv-filename choose edit init", short: "fdcE", assign: true},
	"task":          {long: "taskfile dir global init output", short: "tdgi", assign: true},
	"rake":          {long: "rakefile libdir require execute execute-print execute-continue rakelibdir", short: "fIrepER", assign: true},
	"bazel":         {long: "run_under script_path bazelrc output_base output_user_root server_javabase host_jvm_args workspace_status_command override_repository override_module action_env shell_executable spawn_strategy", subs: "run shutdown"},
	"npm":           npm,
	"pnpm":          npm,
	"yarn":          npm,
	"cargo":         {long: "config manifest-path target-dir artifact-dir out-dir", short: "ZC", subs: "run install publish login owner yank init new add remove update fix miri xtask script", begins: "+"},
	"rustc":         {short: "oCLZ", long: "codegen sysroot out-dir emit extern"},
	"rustup":        {subs: "run self toolchain override"},
	"pytest":        {long: "rootdir confcutdir override-ini basetemp config-file import-mode pdbcls debug junitxml junit-xml log-file result-log cov-config cov-report", short: "pco"},
	"pip":           pip,
	"pip3":          pip,
	"uv":            {subs: "run tool pip add sync venv init build publish python", long: "config-file directory project python with script index-url"},
	"mypy":          {long: "python-executable config-file install-types custom-typeshed-dir cache-dir any-exprs-report html-report", assign: false},
	"pylint":        {long: "load-plugins init-hook rcfile output", assign: false},
	"ruff":          {long: "config output-file"},
	"black":         {long: "config code", short: "c"},
	"eslint":        {long: "rulesdir resolve-plugins-relative-to config plugin parser format output-file init ext cache-location cache-file", short: "cfo"},
	"prettier":      {long: "plugin plugin-search-dir config find-config-path"},
	"tsc":           {oneDash: true, long: "outDir outFile project p build b declarationDir tsBuildInfoFile generateTrace generateCpuProfile plugins init"},
	"jest":          {long: "config globalSetup globalTeardown setupFiles setupFilesAfterEnv runner testRunner transform reporters rootDir roots resolver environment env testEnvironment outputFile coverageDirectory cacheDirectory projects watchPlugins filter testSequencer moduleNameMapper preset testResultsProcessor snapshotSerializers haste", short: "c"},
	"vitest":        {long: "config globalSetup setupFiles root dir outputFile reporter environment configLoader browser execArgv", short: "cr"},
	"mocha":         {long: "require file config ui reporter package extension node-option loader import opts", short: "ru"},
	"webpack":       {long: "config require output-path", short: "co"},
	"vite":          {long: "config", short: "c"},
	"gradle":        gradle,
	"gradlew":       gradle,
	"mvn":           {long: "file settings global-settings toolchains define builder", short: "fsgtD", begins: "exec: antrun: org. com."},
	"mvnw":          {long: "file settings global-settings toolchains define builder", short: "fsgtD", begins: "exec: antrun: org. com."},
	"bundle":        {subs: "exec open config console plugin", long: "gemfile path"},
	"bundler":       {subs: "exec open config console plugin", long: "gemfile path"},
	"gem":           {subs: "install open exec push owner env update", long: "config-file"},
	"composer":      {subs: "exec run run-script global config require create-project", long: "working-dir", short: "d"},
	"phpunit":       {long: "bootstrap configuration include-path printer extension loader coverage-php log-junit prepend", short: "cd"},
	"rspec":         {long: "require default-path options out format failure-exit-code init", short: "rIOfo"},
	"rubocop":       {long: "require config plugin out format", short: "rcfo"},
	"gh":            {subs: "alias extension ext api auth secret variable ssh-key gpg-key codespace cs config repo gist release workflow", long: "editor web", short: "w"},
	"glab":          {subs: "alias api auth variable ssh-key config repo"},
	"gofmt":         {oneDash: true, long: "cpuprofile"},
	"staticcheck":   {oneDash: true, long: "debug.cpuprofile debug.memprofile debug.trace"},
	"golangci-lint": {long: "config path-prefix cpu-profile-path mem-profile-path trace-path out-format output", short: "c", subs: "custom"},
	"buf":           {subs: "generate plugin"},
	"protoc":        {long: "plugin", begins: "@ --"},
	"shellcheck":    {long: "source-path rcfile", short: "P"},
	"fzf":           {long: "preview bind execute become with-shell tmux listen"},
	"bat":           {long: "pager map-syntax", subs: "cache"},
	"cp":            {long: "target-directory"}, "mv": {long: "target-directory"},
	"test":      {begins: "-v -R"},
	"[":         {begins: "-v -R"},
	"printf":    {begins: "-v"},
	"echo":      {},
	"pwd":       {},
	"whoami":    {},
	"xxd":       {short: "r"},
	"base64":    {},
	"sha256sum": {long: "check"},
	"ps":        {},
	"top":       {},
	"kill":      {},
	"wait":      {short: "p"},
	"ip":        {subs: "netns vrf", begins: "-force -b"},
	"nmap":      {long: "script interactive datadir", short: "oS"},
	"tcpdump":   {short: "wzZ"},
	"mount":     {short: "o"},
	"ctags":     {long: "options", begins: "--_"},
	"pandoc":    {long: "filter lua-filter output extract-media data-dir pdf-engine", short: "oFL"},
	"convert":   {begins: "msl: mvg: @"},
	"ffmpeg":    {begins: "concat: -f"},
	"latex":     {long: "shell-escape output-directory", oneDash: true},
	"pdflatex":  {long: "shell-escape output-directory enable-write18", oneDash: true},
}

var (
	npm = escape{
		long:  "script-shell prefix userconfig globalconfig node-options shell shell-emulator dir cwd call package config global location registry init-module init-author-name git editor viewer cache workspace-root use-yarnrc modules-folder",
		short: "CcgL",
		subs:  "exec x explore edit config set publish install i in ins isntall add ci cit it install-test update up upgrade rebuild rb link ln init create innit dlx set-script pkg login adduser token owner access hook unpublish deprecate dist-tag profile org team version node plugin global import unplug patch patch-commit env store deploy setup self-update run-script-shell approve-builds ignored-builds uninstall rm remove un r unlink",
	}
	pip = escape{
		long: "index-url extra-index-url find-links editable requirement target prefix root config-settings global-option build-option trusted-host python cache-dir log proxy src constraint user break-system-packages",
		subs: "install download wheel config uninstall cache", short: "ierct",
	}
	gradle = escape{
		long: "init-script project-dir build-file settings-file include-build system-prop project-prop gradle-user-home project-cache-dir write-locks write-verification-metadata", short: "IpbcDPg",
	}
)

// reading are programs that only read the files they are given.
var reading = words("ls cat head tail wc grep egrep fgrep rg diff cmp stat file du df basename dirname realpath readlink nl od hexdump strings cut comm uniq sha256sum sha1sum md5sum cksum tree test [ jq which")

// escapes says which word of a command makes its program do something that a
// prefix rule does not reach. spelt reports whether the pattern has a word
// literally.
func escapes(base string, args []word, spelt func(int) bool, c *command) string {
	e, ok := escapesOf[base]
	if !ok {
		if e, ok = escapesOf[versioned(base)]; !ok {
			e = escape{}
		}
	}
	sub := ""
	for i := 1; i < len(args); i++ {
		text := args[i].text
		option := strings.HasPrefix(text, "-") && len(text) > 1
		isSub := !option && sub == ""
		if isSub {
			sub = text
		}
		if spelt(i) {
			continue
		}
		found := false
		switch {
		case hasBeginning(e.begins, text):
			found = true
		case option && e.oneDash:
			found = listed(e.long, optionName(text)) || everywhere[optionName(text)] && strings.HasPrefix(text, "--")
		case strings.HasPrefix(text, "--") && len(text) > 2:
			name := optionName(text)
			found = abbreviates(e.long, name) || everywhere[name]
		case option:
			letters := cluster(text)
			found = strings.ContainsAny(letters, e.short) && e.short != "" ||
				sub == "" && e.global != "" && strings.ContainsAny(letters, e.global) ||
				sub != "" && letterAfter(e.letter, sub, letters)
		case e.bundle && i == 1:
			found = strings.ContainsAny(text, e.short)
		case isSub:
			found = listed(e.subs, text)
		default:
			found = listed(e.later, sub+"/"+text) || e.assign && strings.Contains(text, "=")
		}
		if isSub && e.assign && strings.Contains(text, "=") {
			found = true
		}
		if found && !c.spells(text) {
			return "the argument " + text + " makes " + base + " do more than the rule says"
		}
	}
	return ""
}

// spells reports whether a word of the pattern begins with the option.
func (c *command) spells(text string) bool {
	if c == nil {
		return false
	}
	name, _, _ := strings.Cut(text, "=")
	for _, w := range c.words {
		if n, _, _ := strings.Cut(w.parts[0], "="); n == name {
			return true
		}
	}
	return false
}

func optionName(s string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(s, "-"), "=")
	return name
}

// cluster is the letters of -xvf; what follows = is no letter.
func cluster(s string) string {
	c, _, _ := strings.Cut(s[1:], "=")
	return c
}

func listed(list, name string) bool {
	if name == "" {
		return false
	}
	for w := range strings.FieldsSeq(list) {
		if w == name {
			return true
		}
	}
	return false
}

// abbreviates reports whether a long option is one of the list or the beginning
// of one, as getopt reads it.
func abbreviates(list, name string) bool {
	if name == "" {
		return false
	}
	for w := range strings.FieldsSeq(list) {
		if strings.HasPrefix(w, name) {
			return true
		}
	}
	return false
}

func hasBeginning(list, s string) bool {
	for w := range strings.FieldsSeq(list) {
		if strings.HasPrefix(s, w) {
			return true
		}
	}
	return false
}

func letterAfter(list, sub, letters string) bool {
	for w := range strings.FieldsSeq(list) {
		if s, l, _ := strings.Cut(w, "/"); s == sub && strings.Contains(letters, l) {
			return true
		}
	}
	return false
}

// quietOptions of interpreters change nothing about what runs.
var quietOptions = map[string]bool{"-u": true, "-B": true, "-q": true}

// interpreted says what is wrong with how an interpreter is given its script:
// the pattern must spell it.
func interpreted(args []word, spelt func(int) bool) string {
	base := baseName(args[0].text)
	why := base + " runs whatever it is given, so a rule must spell the script"
	for i := 1; i < len(args); i++ {
		text := args[i].text
		switch {
		case !spelt(i):
			return why
		case text == "-m" && strings.HasPrefix(base, "py"):
			if i+1 < len(args) && spelt(i+1) {
				return ""
			}
			return why
		case quietOptions[text]:
		case strings.HasPrefix(text, "-"):
			return why
		case listed("run eval exec x repl task script console tool nuget", text) && listed("deno bun dotnet php", base):
			return why
		default:
			return ""
		}
	}
	return why
}
