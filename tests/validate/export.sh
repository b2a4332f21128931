#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Exports as their real consumers read them: each gives back the samples and times of `rbpf report`.
# Needs Node; fetches what it needs of the npm registry into build/validate/ the first time.
#
# usage: export.sh [RECORDING]...    without any: those of export_sample, which EXPORT_SAMPLE names
#        ONLY=pprof export.sh …      one format
#
# RBPF names the program, ./rbpf if unset. Prints "N passed, N failed" and what was skipped. Exit
# status 77: something that it needs is missing.
set -eu
cd "$(dirname "$0")/../.."
out=$PWD/build/validate
mkdir -p "$out"

# The last ones for the Node of Debian 12, which is 18.
packages="playwright-core@1.58 speedscope@1.25.0 ajv@8.17.1"

for tool in node npm; do
	command -v $tool > /dev/null || { echo "export.sh: skipped: no $tool"; exit 77; }
done
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -n "$CHROMIUM" ] || { echo "export.sh: skipped: no chromium"; exit 77; }
export CHROMIUM NODE_MODULES="$out" RBPF="${RBPF:-$PWD/rbpf}"

for package in $packages; do
	[ -d "$out/node_modules/${package%@*}" ] && continue
	# shellcheck disable=SC2086 # words
	npm install --prefix "$out" --no-save --no-audit --no-fund --silent $packages ||
		{ echo "export.sh: skipped: cannot install $packages"; exit 77; }
done

# The Firefox Profiler needs a Node of its own, which is kept apart so that all else uses the system's.
export FIREFOX_NODE="$out/firefox"
[ -d "$FIREFOX_NODE/node_modules/node" ] ||
	npm install --prefix "$FIREFOX_NODE" --no-save --no-audit --no-fund --silent \
		@firefox-devtools/profiler-cli@0.10.0 node@24.9.0 || rm -rf "$FIREFOX_NODE"

if [ $# -eq 0 ]; then
	for recording in awkward merged random gc states; do
		"$EXPORT_SAMPLE" $recording "$out/$recording.data"
		set -- "$@" "$out/$recording.data"
	done
fi
exec node tests/validate/export.mjs "$@"
