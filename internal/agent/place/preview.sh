# shellcheck shell=bash
# In a preview's sandbox: starts what serves a page, and takes a picture of it.
run=$1 url=$2 host=$3 port=$4 path=$5 patience=$6 tree=$7 from=$8

browser=
for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
	browser=$(command -v "$name") && break
done
[ -n "$browser" ] || exit 90
[ -n "$run" ] || exit 0 # this was the question

# Of an earlier commit git has the files; what is installed beside them is the thread's.
if [ -n "$from" ]; then
	git -C "$from" ls-files -z --others --ignored --exclude-standard --directory |
		grep -zE '(^|/)(node_modules|vendor|\.?venv|\.env(\.[^/]*)?)/?$' |
		while IFS= read -rd '' it; do
			it=${it%/}
			[ -e "$tree/$it" ] || [ -L "$tree/$it" ] || { mkdir -p "$tree/$it" && rmdir "$tree/$it" && cp -a --reflink=auto "$from/$it" "$tree/$it"; } || exit 94
		done
	[ "${PIPESTATUS[2]}" != 94 ] || exit 94
fi

answers() (
	exec 3<>"/dev/tcp/$host/$port" || exit
	printf 'GET %s HTTP/1.1\r\nHost: %s:%s\r\nAccept: text/html\r\nConnection: close\r\n\r\n' "$path" "$host" "$port" >&3
	IFS= read -rt 20 line <&3 && [[ $line == HTTP/1.[01]\ [1-5]* && $line != HTTP/1.[01]\ 50[234]* ]]
) 2>/dev/null

bash -c "$run" </dev/null 2>&1 &
app=$!
until answers; do
	if [ -n "$app" ] && ! kill -0 "$app" 2>/dev/null; then
		wait "$app" || exit 91
		app= # it has put something into the background
	fi
	[ "$SECONDS" -lt $((3 * patience)) ] || exit 92
	sleep 0.2
done

# The browser is driven over a pipe, by the Chrome DevTools Protocol: each message ends in a NUL. Its
# own --screenshot does not wait for what a page does after it has loaded; with a virtual clock it
# waits for ever where a page keeps a connection open, and now and then elsewhere.
ask() { # the command $1 with the parameters $2, and its answer
	id=$((id + 1))
	printf '{"id":%d,"method":"%s","params":{%s}%s}\0' "$id" "$1" "$2" "$to" >&7
	hear "\"id\":$id," "$limit"
}
hear() { # reads until a message has the text $1 in it, for $2 seconds at most
	local end=$((SECONDS + $2))
	while [ "$SECONDS" -le "$end" ] && IFS= read -rd '' -t "$2" message <&8; do
		[[ $message != *"$1"* ]] || return 0
	done
	return 95
}
take() { # a picture, with $1 seconds for each answer
	limit=$1 id=0 to='' address=${url//\\/\\\\}
	ask Target.createTarget '"url":"about:blank"' && [[ $message =~ \"targetId\":\"([^\"]+)\" ]] || return 95
	ask Target.attachToTarget "\"targetId\":\"${BASH_REMATCH[1]}\",\"flatten\":true" && [[ $message =~ \"sessionId\":\"([^\"]+)\" ]] || return 95
	to=",\"sessionId\":\"${BASH_REMATCH[1]}\"" began=$SECONDS
	ask Page.enable '' && ask Page.addScriptToEvaluateOnNewDocument '"source":"alert = confirm = prompt = () => true"' || return # nobody answers them
	ask Page.navigate "\"url\":\"${address//\"/\\\"}\"" || return
	[[ $message != *'"errorText"'* ]] || return 93
	if hear '"Page.loadEventFired"' $((limit / 3)); then
		sleep $((3 + SECONDS - began)) # for what its scripts fetch and draw
	else
		ask Page.stopLoading '' || return # what waits for it would not be drawn
	fi
	ask Page.captureScreenshot '"format":"png"' || return
	printf %s "$message" | grep -o '"data":"[^"]*"' | cut -d '"' -f 4 | base64 -d >"$HOME/page.png"
	[ -s "$HOME/page.png" ] || return 93
}

# A browser that hangs, as one may in gVisor, is started again, and has twice the time: it may only
# be slow.
trap : PIPE # the browser may have ended
for try in 1 2 3; do
	scratch=$(mktemp -d) && mkfifo "$scratch/in" "$scratch/out" || exit 93
	"$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --force-prefers-reduced-motion --window-size=1280,800 \
		--user-data-dir="$scratch/profile" --remote-debugging-pipe 3<"$scratch/in" 4>"$scratch/out" >"$HOME/browser.log" 2>&1 &
	started=$!
	exec 7>"$scratch/in" 8<"$scratch/out"
	take $((patience << (try - 1))) 2>>"$HOME/browser.log"
	status=$?
	{ kill -0 "$started" || status=93; kill -9 "$started"; wait "$started"; } 2>/dev/null
	[ "$status" != 0 ] || exit 0
done
tail -c 1000 "$HOME/browser.log"
exit "$status"
