#!/bin/sh
# Installs Slack's Node SDK and the official MCP server of tests, as locked beside this script, into a cache outside
# the checkout and prints the folder that holds node_modules.
#
# DECKHAND_CACHE overrides the cache folder (default: $XDG_CACHE_HOME/deckhand,
# or ~/.cache/deckhand). There is one folder for each lock file, so a warm cache
# needs no network. Install scripts never run.
#
#   install.sh            installs if need be
#   install.sh --cached   only prints the folder; exit status 1 if it is not there
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${DECKHAND_CACHE:-${XDG_CACHE_HOME:-${HOME:?install.sh: HOME is not set: set DECKHAND_CACHE to a folder for the SDK}/.cache}/deckhand}
hash=$(cksum <"$here/package-lock.json" | tr ' ' '-')
dir=$cache/bolt/$hash

if [ -f "$dir/.complete" ]; then
	echo "$dir"
	exit 0
fi
if [ "${1:-}" = --cached ]; then
	echo "install.sh: Slack's Node SDK is not in $cache/bolt: run $0 once" >&2
	exit 1
fi

if ! command -v npm >/dev/null 2>&1; then
	echo "install.sh: npm is needed once to fetch Slack's Node SDK: install Node.js 20 or newer (Debian/Ubuntu: apt-get install npm, macOS: brew install node) and run this again" >&2
	exit 1
fi

mkdir -p "$cache/bolt"
staging=$(mktemp -d "$cache/bolt/.staging-XXXXXX")
trap 'rm -rf "$staging"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$staging/"
(cd "$staging" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
touch "$staging/.complete"
chmod 755 "$staging"
if [ ! -f "$dir/.complete" ]; then # another start may have been faster
	rm -rf "$dir"
	mv "$staging" "$dir"
fi
echo "$dir"
