# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# To be sourced: packages of any Debian suite and architecture, only fetched and unpacked.
#
# apt itself finds them, on the mirror that this system's own release comes from, with settings and
# a state of its own: the system's package lists are neither used nor changed, nothing is
# installed, no maintainer script is run.

# What this system's own release comes from; fails if apt has no such source.
apt_mirror() {
	local release
	# shellcheck disable=SC1091
	release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v release="$release" '
			$1 == release && $2 == "main" { print $3; found = 1; exit }
			END { exit !found }'
}

# apt_begin STATE ARCH SUITE...: makes the directory STATE and in it what the others need. The last
# SUITE is the one that packages are taken from, the others are for what they depend on. $apt_types is
# 'deb deb-src' if source packages are wanted, too.
apt_begin() {
	local from options suite type keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	apt_state=$(realpath -m "$1")
	options="arch=$2"
	from=$(apt_mirror) || {
		echo "apt has no source for this system's release" >&2
		return 1
	}
	mkdir -p "$apt_state"/{etc,lists/partial,cache/archives/partial}
	[ ! -e $keyring ] || options+=" signed-by=$keyring"
	for suite in "${@:3}"; do
		for type in ${apt_types:-deb}; do echo "$type [$options] $from $suite main"; done
	done >"$apt_state/etc/sources.list"
	# An empty status: apt takes nothing for installed, and so fetches all that is needed. The
	# Release files of unreleased suites and of old ones expire without being renewed.
	: >"$apt_state/status"
	cat >"$apt_state/apt.conf" <<-CONF
		Dir::Etc "$apt_state/etc";
		Dir::Etc::Parts "$apt_state/none";
		Dir::Etc::Main "$apt_state/none";
		Dir::State "$apt_state";
		Dir::State::Lists "$apt_state/lists";
		Dir::State::Status "$apt_state/status";
		Dir::Cache "$apt_state/cache";
		APT::Architecture "$2";
		APT::Architectures "$2";
		APT::Default-Release "${*: -1}";
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		APT::Get::Assume-Yes "true";
		Acquire::Languages "none";
		Acquire::Check-Valid-Until "false";
		Acquire::Retries "3";
		Debug::NoLocking "true";
	CONF
	apt_get update
}

# apt-get with that state; silent unless it fails.
apt_get() {
	APT_CONFIG=$apt_state/apt.conf apt-get -qq "$@" >"$apt_state/log" 2>&1 || {
		cat "$apt_state/log" >&2
		echo "apt-get $1 failed" >&2
		return 1
	}
}

# Fetches packages and all that they depend on.
apt_fetch() {
	apt_get install --download-only "$@"
}

# Fetches only these packages.
apt_fetch_only() {
	(cd "$apt_state/cache/archives" && apt_get download "$@")
}

# apt_unpack ROOT: puts the files of what was fetched into ROOT, with the directories and links that
# base-files would make: everything in /usr, links to it from above.
apt_unpack() {
	local i
	mkdir -p "$1"/usr/{bin,sbin,lib,lib64} "$1"/{dev,etc,proc,run,srv,sys}
	mkdir -m 1777 "$1/tmp"
	for i in bin sbin lib lib64; do ln -s "usr/$i" "$1/$i"; done
	for i in "$apt_state"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$i" |
			tar -x -C "$1" --keep-directory-symlink --exclude='./usr/share/doc/*' \
				--exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' || return 1
	done
}
