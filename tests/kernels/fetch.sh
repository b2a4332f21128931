#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the guests of run.sh are made of, as Debian packages that are only fetched and unpacked.
#
# fetch.sh kernel SUITE ARCH DIR             the newest cloud kernel of SUITE: DIR/kernel,
#                                            DIR/initramfs (without /init), DIR/release
# fetch.sh root SUITE ARCH DIR PACKAGE...    the files of PACKAGEs and of all they depend on: DIR/root,
#                                            and as a file system, DIR/image
#
# A DIR that is there is left as it is: remove it for newer ones. Needs no root.
set -euo pipefail
# shellcheck source=tests/support/apt.sh
. "$(dirname "$0")/../support/apt.sh"
PATH=$PATH:/usr/sbin:/sbin # mke2fs, depmod, modprobe

die() {
	echo "fetch.sh: $*" >&2
	exit 1
}

[ $# -ge 4 ] || die 'usage: fetch.sh kernel SUITE ARCH DIR | root SUITE ARCH DIR PACKAGE...'
what=$1 suite=$2 arch=$3 dir=$4
shift 4
[ ! -e "$dir" ] || exit 0
mkdir -p "$(dirname "$dir")"
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT

word() { # FILE OFFSET: 32 bits
	od -An -tu4 -j "$2" -N 4 "$1" | tr -d ' '
}

# arm64's kernel may be an EFI program that holds the compressed Image, which is what QEMU wants:
# "MZ", 0, 0, "zimg", offset, length, 0, 0, name of the compression (the kernel's zboot-header.S).
copy_kernel() { # FILE
	local with
	if [ "$(head -c 8 "$1" | tail -c 4 | tr -d '\0')" != zimg ]; then
		cp "$1" "$new/done/kernel"
		return
	fi
	with=$(tail -c +25 "$1" | head -c 8 | tr -d '\0')
	case $with in
	gzip | xz | zstd | lz4 | lzma) ;;
	*) die "$1: compression $with is not known" ;;
	esac
	tail -c +$(($(word "$1" 8) + 1)) "$1" | head -c "$(word "$1" 12)" | $with -dc >"$new/done/kernel"
}

# Files of modules of the root that was unpacked, each after those that it needs; none of what is
# built in.
modules() { # RELEASE NAME...
	local release=$1
	shift
	depmod -b "$new/root" "$release"
	modprobe -d "$new/root" -S "$release" --show-depends -a "$@" |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

fetch_kernel() {
	local packages release i n=100
	# That of the suite depends on that of the newest version, which in newer suites is in parts.
	apt_get -s install "linux-image-cloud-$arch"
	packages=$(awk '/^Inst linux-(image|binary|modules|base)-[0-9]/ { print $2 }' "$apt_state/log")
	[ -n "$packages" ] || die "$suite has no cloud kernel for $arch"
	# shellcheck disable=SC2086
	apt_fetch_only $packages busybox-static
	apt_unpack "$new/root"
	release=$(ls "$new/root/usr/lib/modules")
	copy_kernel "$(find "$new/root" -type f -name 'vmlinuz*')"
	mkdir -p "$new"/initramfs/{bin,mod,dev,proc,sys,root}
	cp "$new/root/usr/bin/busybox" "$new/initramfs/bin"
	for i in $(modules "$release" virtio_pci virtio_blk ext4); do
		n=$((n + 1))
		case $i in
		*.xz) xz -dc "$i" ;;
		*.zst) zstd -dc "$i" ;;
		*) cat "$i" ;;
		esac >"$new/initramfs/mod/$n-$(basename "${i%.ko*}")"
	done
	(cd "$new/initramfs" && find . | cpio --quiet -o -H newc) >"$new/done/initramfs"
	echo "$release" >"$new/done/release"
}

fetch_root() { # PACKAGE...
	apt_fetch "$@"
	apt_unpack "$new/done/root"
	# With room for what the tests write. No checksums: the kernel would want a module for them.
	mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -d "$new/done/root" "$new/done/image" 1G >"$new/log"
}

mkdir "$new/done"
apt_begin "$new/state" "$arch" "$suite"
"fetch_$what" "$@"
mv "$new/done" "$dir"
