#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# rubies.sh VERSION DIR: unpacks another Debian's Ruby into DIR, to be used with chroot DIR ruby.
#
#   2.7 (bullseye)   3.1 (bookworm)   3.3 (trixie)   3.4 (experimental)
#
# For root on a Debian whose apt has a Debian mirror. apt itself finds the packages, on that mirror,
# with settings and a state of its own: the system's package lists are neither used nor changed, and
# nothing is installed. No maintainer script is run. Does nothing if DIR has that Ruby already.
set -euo pipefail

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

if [ -e "$dir" ]; then
	if runs "$dir"; then exit 0; fi
	die "$dir exists and is not Ruby $version"
fi
[ "$(id -u)" = 0 ] || die 'must be run by root'

# What this system's own release comes from.
mirror() {
	local release
	# shellcheck disable=SC1091
	release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v release="$release" '$1 == release && $2 == "main" { print $3; exit }'
}

from=$(mirror)
[ -n "$from" ] || die "apt has no source for this system's release"
arch=$(dpkg --print-architecture)

mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
state=$new/state
root=$new/root
mkdir -p "$state"/{etc,lists/partial,cache/archives/partial} "$root"

options="arch=$arch"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ ! -e $keyring ] || options+=" signed-by=$keyring"
for suite in "${suites[@]}"; do
	echo "deb [$options] $from $suite main"
done >"$state/etc/sources.list"

# An empty status: apt takes nothing for installed, and so fetches all that Ruby needs. The Release
# files of unreleased suites and of old ones expire without being renewed.
: >"$state/status"
cat >"$state/apt.conf" <<-CONF
	Dir::Etc "$state/etc";
	Dir::Etc::Parts "$state/none";
	Dir::Etc::Main "$state/none";
	Dir::State "$state";
	Dir::State::Lists "$state/lists";
	Dir::State::Status "$state/status";
	Dir::Cache "$state/cache";
	APT::Architecture "$arch";
	APT::Architectures "$arch";
	APT::Default-Release "${suites[-1]}";
	APT::Install-Recommends "false";
	APT::Sandbox::User "root";
	APT::Get::Assume-Yes "true";
	Acquire::Languages "none";
	Acquire::Check-Valid-Until "false";
	Acquire::Retries "3";
	Debug::NoLocking "true";
CONF

fetch() {
	APT_CONFIG=$state/apt.conf apt-get -qq "$@" >"$state/log" 2>&1 || {
		cat "$state/log" >&2
		die "apt-get $1 failed"
	}
}

fetch update
fetch install --download-only "ruby$version"

# Directories that base-files would make: everything in /usr, links to it from above.
mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{dev,etc,proc,srv,sys}
mkdir -m 1777 "$root/tmp"
for i in bin sbin lib lib64; do ln -s "usr/$i" "$root/$i"; done
for deb in "$state"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" |
		tar -x -C "$root" --keep-directory-symlink --exclude='./usr/share/doc/*' \
			--exclude='./usr/share/man/*' --exclude='./usr/share/locale/*'
done
# The package ruby may have come along with another version as the default.
ln -sf "ruby$version" "$root/usr/bin/ruby"

runs "$root" || die "what was unpacked does not run as Ruby $version"
mv "$root" "$dir"
echo "$dir: $(chroot "$dir" ruby -v)"
