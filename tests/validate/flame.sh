#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Flame graphs as XML and in a browser. Needs xmllint, Node and Chromium; fetches playwright-core from
# the npm registry into build/validate/ the first time.
#
# usage: flame.sh [SVG]          without SVG: the pictures of flame_sample
#        SHOTS=DIR flame.sh …    keep screenshots
#
# Prints "N passed, N failed" for each picture. Exit status 77: something that it needs is missing.
set -eu
if [ $# -gt 0 ]; then
	svg=$(realpath "$1")
	set -- "$svg"
fi
cd "$(dirname "$0")/../.."
out=$PWD/build/validate
mkdir -p "$out"

# 1.58 is the last one for the Node of Debian 12, which is 18.
playwright=1.58

for tool in xmllint node npm; do
	command -v $tool > /dev/null || { echo "flame.sh: skipped: no $tool"; exit 77; }
done
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -n "$CHROMIUM" ] || { echo "flame.sh: skipped: no chromium"; exit 77; }
export CHROMIUM NODE_MODULES="$out"

if [ ! -d "$out/node_modules/playwright-core" ]; then
	npm install --prefix "$out" --no-save --no-audit --no-fund --silent "playwright-core@$playwright" ||
		{ echo "flame.sh: skipped: cannot install playwright-core"; exit 77; }
fi

if [ $# -eq 0 ]; then
	${CC:-cc} -std=gnu11 -O1 -D_GNU_SOURCE -DRBPF_VERSION='"0.0.0"' -Isrc -Iinclude -Itests \
		-o "$out/flame_sample" tests/validate/flame_sample.c src/profile/profile.c \
		src/profile/counters.c src/base/*.c src/view/*.c src/export/*.c -lm
	for picture in 'rails' 'rails icicle module' 'rails inverted' 'rails thread hash' 'awkward' \
		'woven'; do
		name=$out/$(echo "$picture" | tr ' ' '-').svg
		# shellcheck disable=SC2086 # words
		"$out/flame_sample" $picture > "$name"
		set -- "$@" "$name"
	done
	for picture in 'woven both' 'woven both icicle' 'rails both'; do
		name=$out/$(echo "$picture" | tr ' ' '-').svg
		# shellcheck disable=SC2086 # words
		"$out/flame_sample" $picture > "$name"
		both="${both:-} $name"
	done
	"$out/flame_sample" deep > "$out/deep.svg"
	xmllint --huge --noout "$out/deep.svg"
fi

status=0
for svg; do
	echo "== $svg"
	xmllint --noout "$svg" || status=1
	node tests/validate/flame.mjs "$svg" ${SHOTS:+"$SHOTS"} || status=1
done
for svg in ${both:-}; do
	echo "== $svg"
	xmllint --noout "$svg" || status=1
	node tests/validate/flame_both.mjs "$svg" ${SHOTS:+"$SHOTS"} || status=1
done
exit $status
