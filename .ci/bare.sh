# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# To be sourced: a bare Debian 12, as debootstrap makes it, in a directory. It has no compiler, no make, no
# Ruby; what is carried over from this machine is only what apt and npm need here to reach their
# registries.
#
# Root only, and in a mount namespace of one's own: then the kernel unmounts what bare_make() mounts when
# the last process ends, whatever ends it, and removing the directory cannot reach /dev or /sys.

bare_release=bookworm

# Of this machine's apt: "URI SUITE" of Debian 12's main archive, updates and security updates.
bare_sources() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v suite="$bare_release" '
			$3 == "main" && ($2 == suite || index($2, suite "-") == 1) { print $1, $2 }' | sort -u
}

# bare_make DIR
bare_make() {
	local dir=$1 mirror sources include=
	sources=$(bare_sources)
	mirror=$(awk -v suite="$bare_release" '$2 == suite { print $1; exit }' <<<"$sources")
	[ -n "$mirror" ] || {
		echo "apt has no source for Debian 12 ($bare_release) here" >&2
		return 1
	}
	case $mirror in
	https:*) include=--include=ca-certificates ;;
	esac
	debootstrap --variant=minbase $include "$bare_release" "$dir" "$mirror" >"$dir.log" 2>&1 || {
		tail -n 20 "$dir.log" >&2
		return 1
	}
	rm -f "$dir.log"
	# So that its / is a mount, as a system's is, and a test can keep its own mounts to itself.
	mount --bind "$dir" "$dir"
	awk '{ print "deb", $0, "main" }' <<<"$sources" >"$dir/etc/apt/sources.list"
	bare_carry "$dir"
	mount -t proc proc "$dir/proc"
	for i in sys dev; do
		mount --rbind "/$i" "$dir/$i"
		mount --make-rslave "$dir/$i"
	done
}

# What apt, npm and the resolver are told here: proxies, credentials, certificates.
bare_carry() {
	local dir=$1 i
	apt-config dump --format '%F "%v";%n' Acquire |
		grep -vE '^Acquire::(IndexTargets|Changelogs|CompressionTypes|Languages|cdrom)' \
			>"$dir/etc/apt/apt.conf.d/99carried"
	for i in /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/resolv.conf /etc/hosts; do
		[ ! -e $i ] || cp -rL $i "$dir${i%/*}"
	done
	for i in /etc/npmrc "$HOME/.npmrc"; do
		[ ! -f "$i" ] || grep -v '^cafile' "$i" >>"$dir/root/.npmrc" || true
	done
	i=${NODE_EXTRA_CA_CERTS:-${SSL_CERT_FILE:-}}
	if [ -f "$i" ]; then
		mkdir -p "$dir/opt"
		cp -L "$i" "$dir/opt/certificates.crt"
	fi
}

# bare_run DIR PLACE COMMAND...: run a command there, in the directory PLACE, as a login of root would.
bare_run() {
	local dir=$1 place=$2 i variables=()
	shift 2
	for i in http_proxy https_proxy no_proxy; do
		[ -z "${!i-}" ] || variables+=("$i=${!i}")
	done
	[ ! -f "$dir/opt/certificates.crt" ] ||
		variables+=(NODE_EXTRA_CA_CERTS=/opt/certificates.crt)
	# shellcheck disable=SC2016
	env -i HOME=/root TERM="${TERM:-dumb}" CI="${CI-}" ${variables[@]+"${variables[@]}"} \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		chroot "$dir" /bin/sh -c 'cd "$0" && exec "$@"' "$place" "$@" </dev/null
}

# bare_kill DIR: end the processes that have DIR for their root.
bare_kill() {
	local i
	for i in /proc/[0-9]*; do
		[ ! "$i/root" -ef "$1" ] || kill -KILL "${i#/proc/}" 2>/dev/null || true
	done
}
