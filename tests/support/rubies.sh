#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# rubies.sh VERSION DIR: unpacks another Debian's Ruby into DIR, to be used with chroot DIR ruby.
#
#   2.7 (bullseye)   3.1 (bookworm)   3.3 (trixie)   3.4 (experimental)
#
# For root on a Debian whose apt has a Debian mirror; see apt.sh. Does nothing if DIR has that Ruby
# already.
set -euo pipefail
# shellcheck source=tests/support/apt.sh
. "$(dirname "$0")/apt.sh"

die() {
	echo "rubies.sh: $*" >&2
	exit 1
}

[ $# = 2 ] || die 'usage: rubies.sh VERSION DIR'
version=$1
dir=$2
case $version in
2.7) suites=(bullseye) ;;
3.1) suites=(bookworm) ;;
3.3) suites=(trixie) ;;
3.4) suites=(sid experimental) ;; # experimental is no suite by itself
*) die "no Debian suite with Ruby $version is known" ;;
esac

runs() {
	[ -x "$1/usr/bin/ruby" ] && chroot "$1" ruby -e "exit RUBY_VERSION.start_with?('$version.')"
}

# One at a time: who runs at the same moment may want the same Ruby.
mkdir -p "$(dirname "$dir")"
exec 9>"$(dirname "$dir")/.lock"
flock 9

if [ -e "$dir" ]; then
	if runs "$dir"; then exit 0; fi
	die "$dir exists and is not Ruby $version"
fi
[ "$(id -u)" = 0 ] || die 'must be run by root'

new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
root=$new/root
apt_begin "$new/state" "$(dpkg --print-architecture)" "${suites[@]}"
apt_fetch "ruby$version"
apt_unpack "$root"
# The package ruby may have come along with another version as the default.
ln -sf "ruby$version" "$root/usr/bin/ruby"

runs "$root" || die "what was unpacked does not run as Ruby $version"
mv "$root" "$dir"
echo "$dir: $(chroot "$dir" ruby -v)"
