#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The pages of timeline and heatmap in a browser: what they add up to is what `rbpf report` says. Needs
# Node and Chromium; fetches playwright-core from the npm registry into build/validate/ the first time.
#
# usage: pages.sh                PAGES_SAMPLE names the program that makes the recordings
#        SHOTS=DIR pages.sh      keep screenshots
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
	command -v $tool > /dev/null || { echo "pages.sh: skipped: no $tool"; exit 77; }
done
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -n "$CHROMIUM" ] || { echo "pages.sh: skipped: no chromium"; exit 77; }
export CHROMIUM NODE_MODULES="$out" RBPF="${RBPF:-$PWD/rbpf}"

if [ ! -d "$out/node_modules/playwright-core" ]; then
	npm install --prefix "$out" --no-save --no-audit --no-fund --silent "playwright-core@$playwright" ||
		{ echo "pages.sh: skipped: cannot install playwright-core"; exit 77; }
fi
"$PAGES_SAMPLE" "$out/pages & <b>'.data" 12
"$PAGES_SAMPLE" "$out/pages-long.data" 600
exec node tests/validate/pages.mjs "$out/pages & <b>'.data" "$out/pages-long.data" ${SHOTS:+"$SHOTS"}
