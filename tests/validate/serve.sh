#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The page of `rbpf serve` in a browser, live and of a recording, and clients that mean harm. Needs Node and Chromium; fetches
# playwright-core from the npm registry into build/validate/ the first time.
#
# usage: serve.sh                PAGES_SAMPLE names the program that makes the recording
#        SHOTS=DIR serve.sh      keep screenshots
#        SECONDS_LIVE=60 serve.sh        watch a live page for so long, not 8 s
#
# RBPF names the program, ./rbpf if unset. Prints "N passed, N failed". Exit status 77: something that it
# needs is missing.
set -eu
cd "$(dirname "$0")/../.."
. tests/validate/browser.sh
"$PAGES_SAMPLE" "$out/serve & <b>'.data" 12
if [ "$(id -u)" = 0 ] && command -v ruby > /dev/null; then
	node tests/validate/serve_live.mjs "${SECONDS_LIVE:-8}" ${SHOTS:+"$SHOTS"}
else
	echo "serve.sh: a live page: skipped: needs root and a ruby"
fi
exec node tests/validate/serve.mjs "$out/serve & <b>'.data" ${SHOTS:+"$SHOTS"}
