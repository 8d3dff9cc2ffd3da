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

# Timers run by a clock of the page's own, which is then the same in each picture. A page that
# keeps a connection open stops that clock: it is taken as it is after a while. A browser that
# hangs, as one may in gVisor, is started again, and has twice the time: it may only be slow.
for try in 1 2 3; do
	clock=--virtual-time-budget=10000
	[ "$try" -lt 3 ] || clock=--no-first-run
	timeout -k 5 $((patience << (try - 1))) "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --force-prefers-reduced-motion \
		--user-data-dir="$(mktemp -d)" --window-size=1280,800 --timeout=10000 "$clock" --screenshot="$HOME/page.png" "$url" >"$HOME/browser.log" 2>&1
	status=$?
	[ ! -s "$HOME/page.png" ] || exit 0
done
tail -c 1000 "$HOME/browser.log"
case $status in 124 | 137) exit 95 ;; esac # timeout has ended it
exit 93
