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
. tests/validate/browser.sh
"$PAGES_SAMPLE" "$out/pages & <b>'.data" 12
"$PAGES_SAMPLE" "$out/pages-long.data" 600
exec node tests/validate/pages.mjs "$out/pages & <b>'.data" "$out/pages-long.data" ${SHOTS:+"$SHOTS"}
