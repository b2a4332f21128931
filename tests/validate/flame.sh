#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Flame graphs as XML and in a browser. Needs xmllint, Node and Chromium; fetches playwright-core from
# the npm registry into build/validate/ the first time.
#
# usage: flame.sh [SVG]          without SVG: the pictures of flame_sample, which FLAME_SAMPLE names
#        SHOTS=DIR flame.sh …    keep screenshots
#
# Prints "N passed, N failed" for each picture; one that failed is looked at once more. Exit status 77: something that it
# needs is missing.
set -eu
if [ $# -gt 0 ]; then
	svg=$(realpath "$1")
	set -- "$svg"
fi
cd "$(dirname "$0")/../.."
command -v xmllint > /dev/null || { echo "flame.sh: skipped: no xmllint"; exit 77; }
# shellcheck source=tests/validate/browser.sh
. tests/validate/browser.sh

if [ $# -eq 0 ]; then
	# The one that takes longest first: they are looked at side by side.
	for picture in 'rails' 'rails inverted icicle module' 'rails thread hash' 'awkward' \
		'merged' 'waits'; do
		name=$out/$(echo "$picture" | tr ' ' '-').svg
		# shellcheck disable=SC2086 # words
		"$FLAME_SAMPLE" $picture > "$name"
		set -- "$@" "$name"
	done
	for picture in 'merged both' 'rails both icicle'; do
		name=$out/$(echo "$picture" | tr ' ' '-').svg
		# shellcheck disable=SC2086 # words
		"$FLAME_SAMPLE" $picture > "$name"
		both="${both:-} $name"
	done
	"$FLAME_SAMPLE" deep > "$out/deep.svg"
	xmllint --huge --noout "$out/deep.svg"
fi

# One picture in one browser: as many at a time as there are CPUs, each one's output in one piece.
# shellcheck disable=SC2016 # for the inner shell
{
	for svg; do printf 'flame.mjs\0%s\0' "$svg"; done
	for svg in ${both:-}; do printf 'flame_both.mjs\0%s\0' "$svg"; done
} | xargs -0 -P "$(nproc)" -n 2 sh -c '
	status=0
	look() { xmllint --noout "$2" && node "tests/validate/$1" "$2" ${SHOTS:+"$SHOTS"} 2>&1; }
	output=$(look "$@") || {
		printf "%s failed, and is tried once more: %s\n" "${2##*/}" \
			"$(printf %s "$output" | grep "^FAIL" | head -3 | tr "\n" " ")"
		output=$(look "$@") || status=1
	}
	printf "== %s\n%s\n" "$2" "$output"
	exit $status' flame.sh
