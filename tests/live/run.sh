#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh [TEST.rb...]: the live tests, once for each Ruby there is. All of them if none is named.
#
#   the Ruby in PATH                Debian 12's 3.1; it runs the tests too (package ruby-minitest)
#   a 3.3 in build/rubies/3.3       put there by tests/support/rubies.sh if it is not
#   RUBIES=DIR:DIR...               others: roots that rubies.sh made, or prefixes with a bin/ruby
#
#   CI=true      a Ruby, or anything else that a test needs, that is missing is a failure
#   TESTOPTS     for minitest: -v, --name /regexp/, --seed N
#   RBPF         the binary under test, ./rbpf if not set
#
# Needs root and a kernel with BPF.
set -uo pipefail
export LC_ALL=C.UTF-8

top=$(cd "$(dirname "$0")/../.." && pwd)
rubies=$top/build/rubies
status=0

missing() {
	echo "run.sh: missing: $*" >&2
	[ "${CI-}" != true ] || status=1
}

[ "$(id -u)" = 0 ] || {
	echo 'run.sh: the live tests need root' >&2
	exit 1
}
ruby -e 'require "minitest"' 2>/dev/null || {
	echo 'run.sh: the live tests need Ruby and minitest (Debian packages ruby, ruby-minitest)' >&2
	exit 1
}

tests=()
for i in "$@"; do tests+=(-r "$(realpath "$i")"); done
if [ $# = 0 ]; then
	for i in "$top"/tests/live/*_test.rb; do tests+=(-r "$i"); done
fi

places=('')
case $(ruby -e 'print RUBY_VERSION') in
3.1.*) ;;
*) missing "Ruby 3.1 in PATH, which is $(ruby -v)" ;;
esac
if "$top/tests/support/rubies.sh" 3.3 "$rubies/3.3"; then
	places+=("$rubies/3.3")
else
	missing "Ruby 3.3 in $rubies/3.3"
fi
IFS=: read -r -a extra <<<"${RUBIES-}"
for i in ${extra[@]+"${extra[@]}"}; do
	if [ -x "$i/usr/bin/ruby" ] || [ -x "$i/bin/ruby" ]; then
		places+=("$(realpath "$i")")
	else
		missing "a Ruby in $i"
	fi
done

version() {
	if [ -x "$1/usr/bin/ruby" ] && [ -n "$1" ]; then
		chroot "$1" ruby -v
	else
		"${1:+$1/bin/}ruby" -v
	fi
}

for place in "${places[@]}"; do
	echo
	echo "== ${place:-PATH}: $(version "$place")"
	# shellcheck disable=SC2086 # TESTOPTS is a list
	TEST_RUBY=$place ruby -w "${tests[@]}" -e '' -- ${TESTOPTS-} || status=1
done
exit $status
