#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh [TEST.rb...]: the live tests, once for each Ruby there is. All of them if none is named, but some
# with the first Ruby alone, and some with the first and the last one.
#
#   the Ruby in PATH                Debian 12's 3.1; it runs the tests too (package ruby-minitest)
#   2.7, 3.3, 3.4 in build/rubies   put there by tests/support/rubies.sh if they are not; with 3.3 what 3.4 does not show
#   RUBIES=DIR:DIR...               others: roots that rubies.sh made, prefixes with a bin/ruby, or
#                                   folders of such
#   ONLY=true                       those of RUBIES alone
#
#   CI=true      a Ruby, or anything else that a test needs, that is missing is a failure
#   TESTOPTS     for minitest: -v, --name /regexp/, --seed N; -v if not set and CI=true, so that the log tells
#                which test is running
#   SHARE=1, 2, 3   one share of the tests, so that some can run at a time: 1 and 2 have those of the first Ruby, 2 some
#                of them that care little what else runs; 3 has the other Rubies
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

# What says something of rbpf, and nothing of a Ruby: with the first Ruby alone, if none is named.
once=' annotate_native_test.rb attach_test.rb harmless_test.rb longest_requests_test.rb native_test.rb puma_test.rb rails_test.rb request_costs_test.rb serve_test.rb spans_test.rb spawns_test.rb system_wide_test.rb top_screen_test.rb top_test.rb views_test.rb '
# What is of processes, of time and of native code more than of a Ruby: with the first and the last one.
ends=' accuracy_test.rb brief_test.rb doctor_test.rb family_test.rb idle_test.rb native_oracle_test.rb templates_test.rb '
# What is the same in 3.3 and in 3.4: not with 3.3.
as34=' blockers_test.rb dump_requests_test.rb embed_test.rb fibers_test.rb ledger_test.rb ractor_test.rb states_test.rb '
# Of the first.
share2=' annotate_native_test.rb longest_requests_test.rb rails_test.rb request_costs_test.rb spans_test.rb views_test.rb '
tests=() later=() between=() of33=()
for i in "$@"; do tests+=(-r "$(realpath "$i")"); done
later=("${tests[@]}") between=("${tests[@]}") of33=("${tests[@]}")
if [ $# = 0 ]; then
	for i in "$top"/tests/live/*_test.rb; do
		case ${SHARE-}$share2 in
		1*" ${i##*/} "*) continue ;;
		2*" ${i##*/} "*) ;;
		2*) continue ;;
		esac
		tests+=(-r "$i")
		[[ $once == *" ${i##*/} "* ]] || later+=(-r "$i")
		[[ $once$ends == *" ${i##*/} "* ]] || between+=(-r "$i")
		[[ $once$ends$as34 == *" ${i##*/} "* ]] || of33+=(-r "$i")
	done
fi

[ "${CI-}" != true ] || TESTOPTS=${TESTOPTS--v}

places=()
if [ "${ONLY-}" != true ]; then
	places+=('')
	case $(ruby -e 'print RUBY_VERSION') in
	3.1.*) ;;
	*) missing "Ruby 3.1 in PATH, which is $(ruby -v)" ;;
	esac
	for i in 2.7 3.3 3.4; do
		[ "${SHARE-}" != 2 ] || break
		if "$top/tests/support/rubies.sh" $i "$rubies/$i"; then
			places+=("$rubies/$i")
		else
			missing "Ruby $i in $rubies/$i"
		fi
	done
fi
is_ruby() {
	[ -x "$1/usr/bin/ruby" ] || [ -x "$1/bin/ruby" ]
}
IFS=: read -r -a extra <<<"${RUBIES-}"
for i in ${extra[@]+"${extra[@]}"}; do
	found=
	for k in "$i" "$i"/*; do
		is_ruby "$k" || continue
		found=true
		places+=("$(realpath "$k")")
		[ "$k" != "$i" ] || break
	done
	[ -n "$found" ] || missing "a Ruby in $i"
done

version() {
	if [ -x "$1/usr/bin/ruby" ] && [ -n "$1" ]; then
		chroot "$1" ruby -v
	else
		"${1:+$1/bin/}ruby" -v
	fi
}

last=$((${#places[@]} - 1))
case ${SHARE-} in
1 | 2) places=("${places[0]}") ;;
3) unset 'places[0]' ;;
esac
for i in "${!places[@]}"; do
	place=${places[i]}
	if [ "$i" != 0 ]; then
		tests=("${between[@]}")
		[ "$place" != "$rubies/3.3" ] || tests=("${of33[@]}")
		[ "$i" != $last ] || tests=("${later[@]}")
	fi
	echo
	echo "== ${place:-PATH}: $(version "$place")"
	# shellcheck disable=SC2086 # TESTOPTS is a list
	TEST_RUBY=$place ruby -w "${tests[@]}" -e '' -- ${TESTOPTS-} || status=1
done
exit $status
