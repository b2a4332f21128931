#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The man pages are well formed (mandoc), and each has the sections that readers look for.
set -eu
cd "$(dirname "$0")/../.."
failed=0
for page in man/*.[1-8]; do
	[ -e "$page" ] || continue
	for section in NAME SYNOPSIS EXAMPLES DESCRIPTION "EXIT STATUS"; do
		case $page in
		*.1) ;;
		*) break ;; # formats and the like have other sections
		esac
		if ! grep -q "^\.Sh $section\(\\\\&\)\{0,1\}\$" "$page"; then
			echo "$page: no section $section"
			failed=1
		fi
	done
done
if ! command -v mandoc > /dev/null; then
	echo "tests/lint/man.sh: skipped: mandoc is not installed"
	[ "${CI-}" != true ] || failed=1
	exit $failed
fi
mandoc -T lint -W warning man/*.[1-8] || failed=1
exit $failed
