#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh: builds Rubies whose structs have other layouts than any release, and asks the live tests of each whether
# rbpf names its frames right. It may refuse one, if it says by which member. Takes minutes for each.
#
#   SEEDS='1 2 3'         each is a Ruby: what is altered, the compiler and its level (build.sh, alter.rb)
#   UNSEEN=DIR            where they are built and stay, with the source; build/unseen if not set
#   SUITE=bookworm VERSION=3.1   the Debian suite whose source package rubyVERSION is taken
#   SOURCE=DIR            a source tree to take in its stead: a checkout, say, which needs autoconf and bison
#   GC='default wbcheck'  collectors that are built as modules, each of which the tests are run with
#   LIBC=musl             built with musl instead of glibc
#   TESTS='oracle reuse gc'  live tests, by their names
#   RBPF                  the binary under test, ./rbpf if not set
#
# For root on a Debian whose apt has a Debian mirror, with gcc, clang, make and what the live tests need.
set -uo pipefail
export LC_ALL=C.UTF-8

top=$(cd "$(dirname "$0")/../.." && pwd)
here=$top/tests/unseen
dir=${UNSEEN-$top/build/unseen}
suite=${SUITE-bookworm}
version=${VERSION-3.1}
export RBPF=${RBPF-$top/rbpf}
right=0 refused=0 wrong=0
# shellcheck source=tests/support/apt.sh
. "$top/tests/support/apt.sh"

die() {
	echo "check-unseen: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || die 'must be run by root'
mkdir -p "$dir"
dir=$(realpath "$dir")

# Prints the source tree, which is fetched if it is not there yet.
get_source() {
	local tree=$dir/$suite-$version
	if [ -n "${SOURCE-}" ]; then
		realpath -e "$SOURCE"
		return
	fi
	if [ ! -e "$tree/configure" ]; then
		apt_types='deb deb-src' apt_begin "$dir/state" "$(dpkg --print-architecture)" "$suite" >&2 &&
			(cd "$dir" && apt_get source --download-only "ruby$version" >&2) || return 1
		mkdir -p "$tree"
		tar -xf "$dir/ruby$version"_*.orig.tar.* -C "$tree" --strip-components=1 || return 1
	fi
	echo "$tree"
}

# The member for which rbpf refuses the Ruby in $1, or nothing; $dir/doctor has what the doctor says. Fails if it
# does neither that nor attach.
refused_by() {
	local pid said status
	"$1/bin/ruby" --disable-gems -e 'loop { 3.times { |i| i.to_s } }' &
	pid=$!
	sleep 1
	said=$("$RBPF" dump -p "$pid" 2>&1 >"$dir/dump")
	status=$?
	"$RBPF" doctor -p "$pid" >"$dir/doctor" 2>&1
	kill "$pid"
	wait "$pid" 2>/dev/null
	[ $status != 0 ] || return 0
	sed -n "s/^rbpf: error: .*'\(.*\)'\( is unknown\)\?$/\1/p" <<<"$said" | grep . || {
		echo "$said" >&2
		return 1
	}
}

# Whether the Ruby in $1 is right, or refused by a member, as the line says that is printed and counted. $2: its name.
examine() {
	local ruby=$1 name=$2 member collector=known i tests=()
	member=$(refused_by "$ruby") || {
		echo "$name: WRONG: neither named nor refused by a member"
		wrong=$((wrong + 1))
		return
	}
	if [ -n "$member" ]; then
		echo "$name: refused by $member"
		refused=$((refused + 1))
		return
	fi
	grep -q '^collecting thread .* ok$' "$dir/doctor" || collector=unknown
	local options='-v'
	"$ruby/bin/ruby" --disable-gems -e GC.compact 2>/dev/null || options+=' --exclude /moved/'
	for i in ${TESTS-oracle reuse gc}; do
		[ "$i" != gc ] || [ "$collector" = known ] || continue
		tests+=("$top/tests/live/${i}_test.rb")
	done
	[ "$collector" = known ] || echo "$name: who collects garbage is not known"
	if ONLY=true RUBIES=$ruby TESTOPTS=${TESTOPTS-$options} "$top/tests/live/run.sh" "${tests[@]}"; then
		echo "$name: right"
		right=$((right + 1))
	else
		echo "$name: WRONG; it was altered so:"
		cat "$ruby/altered"
		wrong=$((wrong + 1))
	fi
}

source=$(get_source) || die "cannot get the source of ruby$version from $suite"
for seed in ${SEEDS-1 2 3}; do
	name=$(basename "$source")-$seed${GC:+-gc}
	"$here/build.sh" "$seed" "$source" "$dir/$name" || die "cannot build $name: see $dir/$name.tree/log"
	echo "== $name: $(tail -1 "$dir/$name/altered")"
	examine "$dir/$name" "$name"
	# A collector in a module is known by its counts, once there are some of each kind.
	for gc in ${GC-}; do
		RUBY_GC_LIBRARY=$gc RUBYOPT=-r$here/collected examine "$dir/$name" "$name, collector $gc"
	done
done
echo "right $right, refused by a member $refused, wrong $wrong"
[ $wrong = 0 ]
