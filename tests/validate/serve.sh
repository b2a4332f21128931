#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The page of `rbpf serve` in a browser, and clients that mean harm. Needs Node and Chromium; fetches
# playwright-core from the npm registry into build/validate/ the first time.
#
# usage: serve.sh                PAGES_SAMPLE names the program that makes the recording
#        SHOTS=DIR serve.sh      keep screenshots
#
# RBPF names the program, ./rbpf if unset. Prints "N passed, N failed". Exit status 77: something that it
# needs is missing.
set -eu
cd "$(dirname "$0")/../.."
out=$PWD/build/validate
mkdir -p "$out"

# 1.58 is the last one for the Node of Debian 12, which is 18.
playwright=1.58

for tool in node npm; do
	command -v $tool > /dev/null || { echo "serve.sh: skipped: no $tool"; exit 77; }
done
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -n "$CHROMIUM" ] || { echo "serve.sh: skipped: no chromium"; exit 77; }
export CHROMIUM NODE_MODULES="$out" RBPF="${RBPF:-$PWD/rbpf}"

if [ ! -d "$out/node_modules/playwright-core" ]; then
	npm install --prefix "$out" --no-save --no-audit --no-fund --silent "playwright-core@$playwright" ||
		{ echo "serve.sh: skipped: cannot install playwright-core"; exit 77; }
fi
"$PAGES_SAMPLE" "$out/serve & <b>'.data" 12
exec node tests/validate/serve.mjs "$out/serve & <b>'.data" ${SHOTS:+"$SHOTS"}
