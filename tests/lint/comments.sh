#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# clang-format breaks lines of comments that are too long, and may put what it breaks off right behind the star
# and join the lines of a table with it: such a comment has to be written anew.
#
# usage: comments.sh [ROOT]     prints file:line: message for each violation, then exits 1
set -eu
cd "${1:-$(dirname "$0")/../..}"

places=
for place in src include bpf tests bench; do
	if [ -e "$place" ]; then places="$places $place"; fi
done
[ -n "$places" ] || exit 0

# shellcheck disable=SC2086 # a list of words
found=$(grep -rnE --include='*.[ch]' "^ \*[^ /	*]" $places |
	sed -E 's/^([^:]*:[0-9]+):.*/\1: text right behind the star of a comment: clang-format broke its lines/') || true
[ -z "$found" ] || {
	printf '%s\n' "$found"
	exit 1
}
