#!/bin/sh
# Installs the pinned Claude Code CLI into a per-version cache outside the
# checkout and prints the path of the program to run.
#
#   deploy/claude/install.sh            the version pinned in package.json
#   deploy/claude/install.sh 2.1.37     another version, for compatibility runs
#
# DECKHAND_CACHE overrides the cache folder (default: $XDG_CACHE_HOME/deckhand,
# or ~/.cache/deckhand). A warm cache needs no network. Install scripts never
# run: from 2.1.150 on the native program of the platform package is used
# directly; older versions are a cli.js, run through a small node wrapper.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
pinned=$(sed -n 's/.*"@anthropic-ai\/claude-code": *"\([^"]*\)".*/\1/p' "$here/package.json")
version=${1:-$pinned}
cache=${DECKHAND_CACHE:-${XDG_CACHE_HOME:-${HOME:?install.sh: HOME is not set: set DECKHAND_CACHE to a folder for the CLI}/.cache}/deckhand}
dir=$cache/claude/$version

program() {
	case "$(uname -s)" in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) os=unsupported ;;
	esac
	case "$(uname -m)" in
	x86_64 | amd64) arch=x64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) arch=unsupported ;;
	esac
	libc=
	if [ "$os" = linux ] && ls /lib/ld-musl-* >/dev/null 2>&1; then libc=-musl; fi
	native=$dir/node_modules/@anthropic-ai/claude-code-$os-$arch$libc/claude
	script=$dir/node_modules/@anthropic-ai/claude-code/cli.js
	if [ -x "$native" ]; then
		echo "$native"
	elif [ -f "$script" ]; then
		printf '#!/bin/sh\nexec node "%s" "$@"\n' "$script" >"$dir/claude"
		chmod +x "$dir/claude"
		echo "$dir/claude"
	else
		return 1
	fi
}

if [ -f "$dir/.complete" ] && program; then exit 0; fi

if ! command -v npm >/dev/null 2>&1; then
	echo "install.sh: npm is needed once to fetch Claude Code $version: install Node.js 20 or newer (Debian/Ubuntu: apt-get install npm, macOS: brew install node) and run this again" >&2
	exit 1
fi

mkdir -p "$cache/claude"
staging=$(mktemp -d "$cache/claude/.staging-XXXXXX")
trap 'rm -rf "$staging"' EXIT
if [ "$version" = "$pinned" ]; then
	cp "$here/package.json" "$here/package-lock.json" "$staging/"
	(cd "$staging" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
else
	echo '{"private":true}' >"$staging/package.json"
	(cd "$staging" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error "@anthropic-ai/claude-code@$version" >&2)
fi
# npm before version 10 does not tell C libraries apart and fetches both: 340 MB.
if [ -d "$staging/node_modules/@anthropic-ai" ] && ! ls /lib/ld-musl-* >/dev/null 2>&1; then
	rm -rf "$staging"/node_modules/@anthropic-ai/claude-code-linux-*-musl
fi
touch "$staging/.complete"
rm -rf "$dir"
mv "$staging" "$dir"
trap - EXIT
chmod 755 "$dir"
program || {
	echo "install.sh: Claude Code $version has no program for $(uname -s) $(uname -m)" >&2
	exit 1
}
