#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Work that is put off belongs to an issue: a marker for it names one (#N) on the same line.
#
# usage: todo.sh [ROOT]     prints file:line: message for each violation, then exits 1
set -eu
cd "${1:-$(dirname "$0")/../..}"

places=
for place in Makefile src include bpf tests vmlinux bench man doc; do
	if [ -e "$place" ]; then places="$places $place"; fi
done
[ -n "$places" ] || exit 0

# shellcheck disable=SC2086 # a list of words
found=$(grep -rnIwE 'TODO|FIXME|XXX' --exclude-dir=lint $places |
	grep -vE '^[^:]*:[0-9]+:.*#[0-9]+' |
	sed -E 's/^([^:]*:[0-9]+):.*/\1: TODO, FIXME or XXX without an issue number (#N)/') || true
[ -z "$found" ] || {
	printf '%s\n' "$found"
	exit 1
}
